/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation. The thread that calls wss_record() owns the file and reports to the caller.
 * Everything that asks libvirt or QEMU, which may hang, is done in steps: one that chooses the
 * method, one for each window, and one that restores the guest. Each step runs in a worker
 * (base/worker.h) with the target's deadline, and the thread waits for it. A worker that is late,
 * or that has not restored the guest WSS_WORKER_CANCEL_NS after a stop request, is left behind and
 * owns the guest from then on. The recording then ends with the windows that are in the file.
 */
#include "recording/recording.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/worker.h"
#include "measure/measure.h"
#include "measure/residency.h"
#include "pages/pageset.h"

/*
 * How long to trust the last check for huge pages, on which the accuracy of written pages
 * depends.
 */
#define MEMORY_AGE_NS (10 * WSS_NS_PER_S)
/*
 * Few polls suffice with a recorder: they check that the guest lives and that KVM has no large
 * entries.
 */
#define POLL_NS WSS_NS_PER_S
/*
 * Windows at least this far apart get a dirty log each: the gap leaves time to start it, and
 * the guest is mapped large for most of the time.
 */
#define CHAIN_REST_NS (10 * WSS_NS_PER_S)
/* What these windows could not record, those of the next hours would not either. */
#define FIRST_WINDOWS 3
/* QEMU's longest dirty-rate calculation, plus some seconds for it to end. */
#define BUSY_NS (65 * WSS_NS_PER_S)

/* Data of the steps. If a worker is left behind, it owns them. */
struct record_guest {
	struct wss_target *target;
	struct wss_measure_options options;
	struct wss_measure *measure;
	const struct wss_tracker_ops *method;
	uint64_t until_ns; /* the window must be armed before, a time of wss_clock_now_ns() */
	/* Results of the last step: */
	int result; /* 0; 1: the window could not be armed before until_ns; -1: error */
	bool armed; /* the window was armed */
	struct wss_sample sample;
	struct wss_error error;
};

struct record {
	const struct wss_record_options *options;
	const struct wss_record_events *events;
	void *opaque;
	const struct wss_cancel *cancel;
	struct record_guest *guest; /* NULL: it was left to its worker */
	struct wss_session *session;
	bool follows_balloon; /* the pages that it takes can be determined */
	/* That the host held when it was last looked at; NULL: never. */
	struct wss_pageset *resident;
	uint64_t balloon_bytes; /* then */
	uint64_t begun_ns;	/* a time of wss_clock_now_ns() */
	uint64_t first_ns;	/* start of the first window, likewise; 0: there was none yet */
	/* A time of wss_clock_now_ns(); UINT64_MAX: when it is cancelled, or not known before the first window. */
	uint64_t end_ns;
	bool said_waiting;
	char why_not[WSS_MARK_TEXT_MAX]; /* why the last windows are missing, at the end */
};

void wss_record_options_init(struct wss_record_options *options)
{
	*options = (struct wss_record_options){
		.window = WSS_WINDOW_OPTIONS_INIT,
		.interval_ns = WSS_RECORD_INTERVAL_NS,
		.length_ns = WSS_RECORD_LENGTH_NS,
	};
	options->window.track.window_ns = 0;
	options->window.track.granularity = WSS_GRANULARITY_4K;
	options->window.track.recorder = WSS_RECORDER_PAGES;
	options->window.memory_age_ns = MEMORY_AGE_NS;
}

static bool record_cancelled(const struct record *record)
{
	return wss_cancel_requested(record->cancel);
}

/* --- in a worker --- */

static void record_guest_free(void *opaque)
{
	struct record_guest *guest = opaque;

	wss_measure_close(guest->measure);
	wss_target_free(guest->target);
	free(guest);
}

static void step_open(void *opaque)
{
	struct record_guest *guest = opaque;

	guest->result = wss_measure_open(guest->target, &guest->options, NULL, &guest->measure,
					 &guest->method, &guest->error);
}

static void step_window(void *opaque)
{
	struct record_guest *guest = opaque;

	guest->result = wss_measure_arm(guest->measure, guest->until_ns, &guest->error);
	guest->armed = guest->result == 0;
	if (guest->armed && (wss_measure_poll(guest->measure, UINT64_MAX, &guest->error) < 0 ||
			     wss_measure_read(guest->measure, &guest->sample, &guest->error) < 0))
		guest->result = -1;
}

static void step_close(void *opaque)
{
	struct record_guest *guest = opaque;

	wss_measure_close(guest->measure);
	guest->measure = NULL;
}

/* --- in the thread that records --- */

/*
 * Runs a step and waits for it, after a stop request for cancel_ns. On failure the step has not
 * run, or did not end in time: then record->guest is NULL and err is WSS_ERR_TIMEOUT.
 */
static int record_step(struct record *record, void (*step)(void *opaque), uint64_t cancel_ns,
		       struct wss_error *err)
{
	struct record_guest *guest = record->guest;
	const struct wss_work work = {step, record_guest_free, guest, &guest->target->deadline};

	wss_error_clear(&guest->error);
	if (wss_work_run(&work, cancel_ns, err) == 0)
		return 0;
	if (err->code == WSS_ERR_TIMEOUT)
		record->guest = NULL;
	return -1;
}

/* Restores the guest, in a worker if possible. */
static void record_leave_guest(struct record *record)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (record->guest && record_step(record, step_close, WSS_WORKER_CANCEL_NS, &error) < 0)
		wss_debug("restoring the guest: %s", error.text);
	if (record->guest)
		record_guest_free(record->guest);
	record->guest = NULL;
}

/*
 * Reads which pages the host holds if the balloon's size has changed; otherwise they are not known.
 * An error ends these checks but not the recording.
 */
static struct wss_pages look_at_balloon(struct record *record)
{
	struct wss_guest *guest = record->guest->target->guest;
	struct wss_error error = WSS_ERROR_INIT;

	if (!record->follows_balloon || !guest->balloon_bytes.known ||
	    guest->balloon_bytes.value == record->balloon_bytes)
		return (struct wss_pages){.known = false};
	record->balloon_bytes = guest->balloon_bytes.value;
	wss_pageset_free(record->resident);
	record->resident = NULL;
	record->follows_balloon = wss_residency_read(guest, &record->resident, &error) == 0;
	if (record->follows_balloon)
		return wss_pages_of_set(record->resident);
	wss_debug("%s", error.text);
	return (struct wss_pages){.known = false};
}

static int record_add_window(struct record *record, struct wss_error *err)
{
	const struct wss_sample *sample = &record->guest->sample;
	struct wss_window *observed = wss_measure_window(record->guest->measure);
	uint64_t start_ns = wss_window_start_ns(observed);
	const struct wss_session_window window = {
		.start_ns = start_ns,
		.end_ns = start_ns + sample->window_ns.value,
		.sample = sample,
		.pages = wss_window_pages(observed),
		.resident = look_at_balloon(record),
	};

	/* The recording's time begins here, however long it took to start the first window. */
	if (!record->first_ns && record->options->length_ns)
		record->end_ns = start_ns + record->options->length_ns;
	if (!record->first_ns)
		record->first_ns = start_ns;
	return wss_session_add(record->session, &window, err);
}

/*
 * Records one window. Returns 1 if it was written or there was nothing to write; 0 if it could
 * not be taken, with the reason in err; -1 if the recording cannot go on.
 */
static int record_window(struct record *record, struct wss_error *err)
{
	struct record_guest *guest = record->guest;
	int r = 0;

	guest->until_ns = record->end_ns;
	if (record_step(record, step_window, WSS_WORKER_CANCEL_NS, err) < 0)
		return -1;
	if (guest->result > 0)
		return 1;
	if (guest->result < 0 && guest->error.code != WSS_ERR_INTERRUPTED) {
		*err = guest->error;
		return 0;
	}
	if (guest->result == 0)
		r = record_add_window(record, err);
	else if (guest->armed)
		/* The pages of a part of a window do not compare with those of whole ones. */
		wss_session_note_stop(record->session);
	return r < 0 ? -1 : 1;
}

/*
 * Waits before the first window until a dirty log left running by an earlier recording ends by itself.
 */
static bool wait_while_busy(const struct wss_error *error, struct record *record)
{
	if (error->code != WSS_ERR_BUSY || wss_clock_now_ns() >= record->begun_ns + BUSY_NS)
		return false;
	if (!record->said_waiting && record->events->waiting)
		record->events->waiting(error, record->opaque);
	record->said_waiting = true;
	return true;
}

/*
 * Whether the recording can go on after an error: a guest that is paused or busy now may be
 * recorded later.
 */
static bool error_passes(const struct wss_error *error, struct record *record)
{
	struct wss_session_progress progress;

	wss_session_progress(record->session, &progress);
	if (!progress.windows)
		return wait_while_busy(error, record);
	return error->code == WSS_ERR_FAILED || error->code == WSS_ERR_BUSY ||
	       error->code == WSS_ERR_TIMEOUT;
}

/*
 * Whether another window fits. Windows are whole, so the last one ends up to half a window
 * before or after the end of the time.
 */
static bool fits_one_more(const struct record *record)
{
	uint64_t half_ns = record->guest->options.window.track.window_ns / 2;

	return wss_clock_now_ns() + half_ns < record->end_ns;
}

static void record_tell_progress(const struct record *record)
{
	struct wss_session_progress progress;

	if (!record->events->progress)
		return;
	wss_session_progress(record->session, &progress);
	record->events->progress(&progress, record->opaque);
}

static bool record_is_in_vain(const struct record *record)
{
	struct wss_session_progress progress;

	wss_session_progress(record->session, &progress);
	return !progress.windows && progress.gaps >= FIRST_WINDOWS;
}

static int record_windows(struct record *record, struct wss_error *err)
{
	uint64_t next_ns = wss_clock_now_ns();

	record->begun_ns = next_ns;
	record->end_ns = UINT64_MAX;
	while (!record_cancelled(record) && fits_one_more(record) && !record_is_in_vain(record)) {
		struct wss_error error = WSS_ERROR_INIT;
		bool begun = record->first_ns != 0;
		uint64_t now_ns;
		int r = record_window(record, &error);

		if (r < 0 || (r == 0 && !error_passes(&error, record))) {
			wss_session_note(record->session, error.text);
			*err = error;
			return -1;
		}
		if (r == 0) {
			wss_debug("lost a window: %s", error.text);
			wss_session_note(record->session, error.text);
		}
		record_tell_progress(record);
		if (!begun && record->first_ns)
			next_ns = record->first_ns;
		/* Windows that were missed are not taken later. */
		next_ns += record->options->interval_ns;
		now_ns = wss_clock_now_ns();
		if (next_ns < now_ns)
			next_ns = now_ns;
		if (next_ns > record->end_ns)
			next_ns = record->end_ns;
		wss_cancel_sleep_until_ns(record->cancel, next_ns);
	}
	return 0;
}

static void choose_window(struct record *record)
{
	const struct wss_record_options *options = record->options;
	struct wss_measure_options *measure = &record->guest->options;
	struct wss_track_options *track = &measure->window.track;

	*measure = (struct wss_measure_options){
		.window = options->window,
		.method = options->method,
		.count = 1,
		.interval_ns = options->interval_ns,
	};
	if (!track->window_ns)
		track->window_ns = options->interval_ns;
	if (options->length_ns && track->window_ns > options->length_ns)
		track->window_ns = options->length_ns;
	track->chain_ns = 0;
	if (options->interval_ns - track->window_ns < CHAIN_REST_NS)
		track->chain_ns =
			options->length_ns ? options->length_ns + track->window_ns / 2 : UINT64_MAX;
	measure->poll_ns = track->window_ns / 2 < POLL_NS ? track->window_ns / 2 : POLL_NS;
}

static int open_session(struct record *record, struct wss_error *err)
{
	const struct wss_target *target = record->guest->target;
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);
	char boot_id[WSS_HOST_BOOT_ID_MAX];

	wss_host_boot_id(wss_test_sysroot(), boot_id);
	if (wss_session_open(record->options->path, target->guest, record->guest->method->name,
			     boot_id, record->options->interval_ns,
			     record->guest->options.window.track.window_ns, &record->session,
			     err) < 0)
		return -1;
	wss_session_set_host(record->session, host->name);
	record->follows_balloon = target->guest->config.has_balloon;
	return 0;
}

static int record_run(struct record *record, struct wss_error *err)
{
	choose_window(record);
	/* Nothing has been changed that would have to be restored. */
	if (record_step(record, step_open, 0, err) < 0)
		return -1;
	if (record->guest->result < 0) {
		*err = record->guest->error;
		return -1;
	}
	return open_session(record, err) < 0 ? -1 : record_windows(record, err);
}

/* Ends the file, and sets *ret_progress. */
static int record_end_session(struct record *record, struct wss_session_progress *ret_progress,
			      struct wss_error *err)
{
	if (record->session)
		snprintf(record->why_not, sizeof(record->why_not), "%s",
			 wss_session_why_not(record->session));
	wss_pageset_free(record->resident);
	return wss_session_close(record->session, wss_clock_now_ns(), ret_progress, err);
}

int wss_record(struct wss_target *target, const struct wss_record_options *options,
	       const struct wss_record_events *events, void *opaque,
	       struct wss_session_progress *ret_progress, struct wss_error *err)
{
	struct record record = {.options = options,
				.events = events,
				.opaque = opaque,
				.cancel = target->cancel.parent,
				.guest = calloc(1, sizeof(*record.guest))};
	int r;

	*ret_progress = (struct wss_session_progress){0};
	if (!record.guest) {
		wss_target_free(target);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	record.guest->target = target;
	r = record_run(&record, err);
	/* A guest that hung when the recording was stopped makes no difference to the file. */
	if (r < 0 && !record.guest && record_cancelled(&record)) {
		wss_error_clear(err);
		if (record.session)
			wss_session_note_stop(record.session);
		r = 0;
	}
	record_leave_guest(&record);
	if (record_end_session(&record, ret_progress, r < 0 ? NULL : err) < 0 || r < 0)
		return -1;
	if (!ret_progress->windows)
		return wss_error_set(
			err, record_cancelled(&record) ? WSS_ERR_INTERRUPTED : WSS_ERR_FAILED,
			"no window could be recorded%s%s", *record.why_not ? ": " : "",
			record.why_not);
	if (record_cancelled(&record) && options->length_ns)
		return wss_error_set(err, WSS_ERR_INTERRUPTED,
				     "interrupted: %llu window%s so far, in %s",
				     (unsigned long long)ret_progress->windows,
				     wss_plural(ret_progress->windows), options->path);
	return 0;
}
