/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/recording.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "service/measure.h"
#include "track/residency.h"
#include "wss/pageset.h"

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
/* QEMU's longest dirty-rate calculation, plus some seconds for it to end. */
#define BUSY_NS (65 * WSS_NS_PER_S)

struct record {
	const struct wss_record_options *options;
	const struct wss_record_events *events;
	void *opaque;
	struct wss_target *target;
	struct wss_measure_options measure_options;
	struct wss_measure *measure;
	struct wss_session *session;
	/* NULL if the pages that the balloon takes cannot be determined */
	struct wss_pageset *resident;
	uint64_t balloon_bytes; /* when resident was read */
	uint64_t begun_ns;	/* a time of wss_clock_now_ns() */
	/* A time of wss_clock_now_ns(); UINT64_MAX: when it is cancelled. */
	uint64_t end_ns;
	bool said_waiting;
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
	return wss_cancel_requested(&record->target->cancel);
}

static void record_set_end(struct record *record, uint64_t now_ns)
{
	record->end_ns = record->options->length_ns ? now_ns + record->options->length_ns
						    : UINT64_MAX;
}

/*
 * Reads which pages the host holds if the balloon's size has changed; otherwise returns NULL.
 * An error ends these checks but not the recording.
 */
static const struct wss_pageset *look_at_balloon(struct record *record)
{
	const struct wss_guest *guest = record->target->guest;
	struct wss_error error = WSS_ERROR_INIT;

	if (!record->resident || !guest->balloon_bytes.known ||
	    guest->balloon_bytes.value == record->balloon_bytes)
		return NULL;
	record->balloon_bytes = guest->balloon_bytes.value;
	if (wss_residency_read(guest, wss_session_recording(record->session), record->resident,
			       &error) == 0)
		return record->resident;
	wss_debug("%s", error.text);
	wss_pageset_free(record->resident);
	record->resident = NULL;
	return NULL;
}

static int add_window(struct record *record, const struct wss_sample *sample,
		      struct wss_error *err)
{
	struct wss_window *observed = wss_measure_window(record->measure);
	uint64_t start_ns = wss_window_start_ns(observed);
	const struct wss_session_window window = {
		.start_ns = start_ns,
		.end_ns = start_ns + sample->window_ns.value,
		.sample = sample,
		.pages = wss_window_pages(observed),
		.resident = look_at_balloon(record),
	};

	return wss_session_add(record->session, &window, err);
}

/*
 * Records one window. Returns 1 if it was written or there was nothing to write; 0 if it could
 * not be taken, with the reason in err; -1 if the recording cannot go on.
 */
static int record_window(struct record *record, struct wss_error *err)
{
	struct wss_window *window = wss_measure_window(record->measure);
	struct wss_sample sample;
	int r = wss_measure_arm(record->measure, record->end_ns, err);

	if (r > 0 || (r < 0 && err->code == WSS_ERR_INTERRUPTED))
		return 1;
	if (r == 0)
		r = wss_measure_poll(record->measure, UINT64_MAX, err);
	/* Pages touched in part of a window are not comparable with those of whole windows. */
	if (r < 0 && err->code == WSS_ERR_INTERRUPTED) {
		wss_session_note(record->session, "the recording was stopped within this window");
		wss_window_rest(window);
		return 1;
	}
	if (r < 0 || wss_measure_read(record->measure, &sample, err) < 0)
		return 0;
	r = add_window(record, &sample, err);
	wss_window_rest(window);
	return r < 0 ? -1 : 1;
}

/*
 * Waits before the first window until a dirty log left running by an earlier recording, which
 * was stopped or killed, ends by itself. The recording's time starts after that.
 */
static bool wait_while_busy(const struct wss_error *error, struct record *record)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (error->code != WSS_ERR_BUSY || now_ns >= record->begun_ns + BUSY_NS)
		return false;
	if (!record->said_waiting && record->events->waiting)
		record->events->waiting(error, record->opaque);
	record->said_waiting = true;
	record_set_end(record, now_ns);
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
	uint64_t half_ns = record->measure_options.window.track.window_ns / 2;

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

static int record_windows(struct record *record, struct wss_error *err)
{
	uint64_t next_ns = wss_clock_now_ns();

	record->begun_ns = next_ns;
	record_set_end(record, next_ns);
	while (!record_cancelled(record) && fits_one_more(record)) {
		struct wss_error error = WSS_ERROR_INIT;
		uint64_t now_ns;
		int r = record_window(record, &error);

		if (r < 0 || (r == 0 && !error_passes(&error, record))) {
			*err = error;
			return -1;
		}
		if (r == 0) {
			wss_debug("lost a window: %s", error.text);
			wss_session_note(record->session, error.text);
		}
		record_tell_progress(record);
		/* Windows that were missed are not taken later. */
		next_ns += record->options->interval_ns;
		now_ns = wss_clock_now_ns();
		if (next_ns < now_ns)
			next_ns = now_ns;
		if (next_ns > record->end_ns)
			next_ns = record->end_ns;
		wss_cancel_sleep_until_ns(&record->target->cancel, next_ns);
	}
	return 0;
}

static void choose_window(struct record *record)
{
	const struct wss_record_options *options = record->options;
	struct wss_measure_options *measure = &record->measure_options;
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
		track->chain_ns = options->length_ns ? options->length_ns + track->window_ns / 2
						     : UINT64_MAX;
	measure->poll_ns = track->window_ns / 2 < POLL_NS ? track->window_ns / 2 : POLL_NS;
}

static int open_session(struct record *record, const struct wss_tracker_ops *method,
			struct wss_error *err)
{
	const struct wss_host *host = wss_hypervisor_host(record->target->hypervisor);
	const struct wss_guest *guest = record->target->guest;
	char boot_id[WSS_HOST_BOOT_ID_MAX];

	wss_host_boot_id(wss_test_sysroot(), boot_id);
	if (wss_session_open(record->options->path, guest, method->name, boot_id,
			     record->options->interval_ns,
			     record->measure_options.window.track.window_ns, &record->session,
			     err) < 0)
		return -1;
	wss_session_set_host(record->session, host->name);
	if (guest->config.has_balloon)
		record->resident = wss_pageset_new(
			wss_recording_pages(wss_session_recording(record->session)));
	return 0;
}

static int record_run(struct record *record, struct wss_error *err)
{
	const struct wss_tracker_ops *method;

	choose_window(record);
	if (wss_measure_open(record->target, &record->measure_options, NULL, &record->measure,
			     &method, err) < 0 ||
	    open_session(record, method, err) < 0)
		return -1;
	return record_windows(record, err);
}

int wss_record(struct wss_target *target, const struct wss_record_options *options,
	       const struct wss_record_events *events, void *opaque,
	       struct wss_session_progress *ret_progress, struct wss_error *err)
{
	struct record record = { .options = options, .events = events, .opaque = opaque,
				 .target = target };
	int r = record_run(&record, err);

	*ret_progress = (struct wss_session_progress){ 0 };
	wss_measure_close(record.measure);
	wss_pageset_free(record.resident);
	if (record.session)
		wss_session_progress(record.session, ret_progress);
	if (wss_session_close(record.session, wss_clock_now_ns(), r < 0 ? NULL : err) < 0)
		r = -1;
	if (r < 0)
		return -1;
	if (!ret_progress->windows)
		return wss_error_set(err, record_cancelled(&record) ? WSS_ERR_INTERRUPTED
								    : WSS_ERR_FAILED,
				     "no window could be recorded");
	if (record_cancelled(&record) && options->length_ns)
		return wss_error_set(err, WSS_ERR_INTERRUPTED,
				     "interrupted: the %llu windows so far are in %s",
				     (unsigned long long)ret_progress->windows, options->path);
	return 0;
}
