/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/measure.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"

/* How often the observer of a window that goes on is asked, and how often if it does not know yet until when. */
#define GO_ON_STEP_NS (5 * WSS_NS_PER_S)
#define ASK_STEP_NS (200 * WSS_NS_PER_MS)
#define SETTLE_STEP_NS (50 * WSS_NS_PER_MS)
#define HAS_ENDED "the guest has ended"
#define ENDED_WITHIN "the guest ended within the window"
/* Time that a process takes to end after its sockets are closed. */
#define END_NS WSS_NS_PER_S
/* Time to restore a guest, even if its other time is used up. */
#define RESTORE_NS (10 * WSS_NS_PER_S)

struct wss_measure {
	struct wss_target *target;
	const struct wss_measure_options *options;
	struct wss_measure_place place;
	const struct wss_tracker_ops *ops;
	struct wss_window *window;
	bool first_window; /* shares the deadline of opening the guest */
	bool read;	   /* a sample of this window has been read: it must not begin again */
	bool untold;	   /* the observer has yet to get its pages */
	bool went_on;	  /* after they were read: what has been touched since is to be read, too */
	uint64_t read_ns; /* when they were read */
	struct wss_sample last; /* of this window, for the observer */
};

void wss_measure_options_init(struct wss_measure_options *options, uint64_t window_ns)
{
	*options = (struct wss_measure_options){
		.window = WSS_WINDOW_OPTIONS_INIT,
		.count = 1,
		.interval_ns = window_ns,
	};
	options->window.track.window_ns = window_ns;
}

static int measure_interrupted(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

/* Whether the guest's process has ended, or does so now: its sockets are closed before that is seen. */
static bool measure_guest_ended(const struct wss_measure *measure, const struct wss_error *err)
{
	const struct wss_target *target = measure->target;
	const struct wss_process *process = &target->guest->process;

	if (process->proc.dirfd < 0)
		return false;
	if (err && err->code == WSS_ERR_GONE && wss_process_alive(process))
		wss_cancel_sleep_on_fd(&target->cancel, process->pidfd,
				       wss_clock_now_ns() + END_NS);
	return !wss_process_alive(process);
}

/* Sets what an error comes from, if the work was cancelled or the guest has ended. Returns -1. */
static int measure_failed(const struct wss_measure *measure, const char *ended,
			  struct wss_error *err)
{
	bool guest_ended = measure_guest_ended(measure, err);

	if (wss_cancel_requested(&measure->target->cancel))
		return measure_interrupted(err);
	if (guest_ended)
		return wss_error_set(err, WSS_ERR_GONE, "%s", ended);
	return -1;
}

static int measure_prepare(struct wss_measure *measure, const struct wss_tracker_ops **ret_ops,
			   struct wss_error *err)
{
	const struct wss_measure_options *options = measure->options;
	const struct wss_host *host = wss_hypervisor_host(measure->target->hypervisor);
	struct wss_guest *guest = measure->target->guest;

	/*
	 * A guest that does not run has no process: report that it does not run, not that its
	 * process is missing.
	 */
	if (wss_guest_check_ready(guest, err) < 0 || wss_guest_attach(guest, host, err) < 0)
		return -1;
	measure->ops = options->method;
	if (!measure->ops)
		measure->ops = wss_tracker_choose(host, guest, &options->window.track, err);
	if (ret_ops)
		*ret_ops = measure->ops;
	if (!measure->ops)
		return -1;
	if (options->method &&
	    wss_tracker_check(measure->ops, host, guest, &options->window.track, err) < 0)
		return wss_error_prefix(err, "method %s", measure->ops->name);
	return wss_window_open(host, guest, measure->ops, &options->window, &measure->window, err);
}

int wss_measure_open(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, struct wss_measure **ret_measure,
		     const struct wss_tracker_ops **ret_ops, struct wss_error *err)
{
	struct wss_measure *measure = calloc(1, sizeof(*measure));
	int r;

	if (!measure)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	measure->target = target;
	measure->options = options;
	measure->first_window = true;
	if (place)
		measure->place = *place;
	wss_deadline_run(&target->deadline, 0);
	r = measure_prepare(measure, ret_ops, err);
	wss_deadline_pause(&target->deadline);
	if (r < 0) {
		measure_failed(measure, HAS_ENDED, err);
		wss_measure_close(measure);
	} else {
		*ret_measure = measure;
	}
	return r;
}

/* What is touched while they are read may be missing. */
static struct wss_page_view measure_read_pages(struct wss_measure *measure)
{
	struct wss_page_view unknown = {.touched = {.known = false}};

	if (measure->went_on) {
		measure->read_ns = wss_clock_now_ns();
		if (wss_window_read_pages(measure->window, NULL) < 0)
			return unknown;
	}
	return wss_window_pages(measure->window);
}

static void measure_tell_pages(struct wss_measure *measure)
{
	const struct wss_measure_observer *observer = &measure->options->observer;
	struct wss_measure_pages pages = {.sample = &measure->last};

	if (!measure->untold)
		return;
	measure->untold = false;
	pages.view = measure_read_pages(measure);
	pages.start_ns = wss_window_start_ns(measure->window);
	pages.end_ns = measure->read_ns;
	observer->pages(&pages, observer->opaque);
}

void wss_measure_close(struct wss_measure *measure)
{
	struct wss_deadline *deadline;
	uint64_t allowed_ns;

	if (!measure)
		return;
	deadline = &measure->target->deadline;
	allowed_ns = deadline->allowed_ns;
	wss_deadline_allow(deadline, RESTORE_NS);
	wss_deadline_run(deadline, 0);
	measure_tell_pages(measure);
	wss_window_close(measure->window);
	wss_deadline_allow(deadline, allowed_ns);
	wss_gate_leave(measure->place.gate, measure->place.ticket);
	free(measure);
}

struct wss_window *wss_measure_window(struct wss_measure *measure)
{
	return measure->window;
}

/*
 * Sleeps until until_ns, which returns 0, or until the guest's process ends: 1. Neither pauses nor resumes the
 * deadline.
 */
static int measure_sleep(const struct wss_measure *measure, uint64_t until_ns,
			 struct wss_error *err)
{
	const struct wss_target *target = measure->target;
	int r = wss_cancel_sleep_on_fd(&target->cancel, target->guest->process.pidfd, until_ns);

	return r < 0 ? measure_interrupted(err) : r;
}

static int measure_check_over(const struct wss_measure *measure, struct wss_error *err)
{
	const struct wss_measure_observer *observer = &measure->options->observer;

	return observer->is_over && observer->is_over(observer->opaque) ? measure_interrupted(err)
									: 0;
}

/* Waits until no other guest is stalled, for as long as that takes. */
static int measure_take_turn(const struct wss_measure *measure, struct wss_error *err)
{
	struct wss_target *target = measure->target;

	wss_deadline_pause(&target->deadline);
	if (wss_gate_turn(measure->place.gate, measure->place.ticket, &target->cancel, err) < 0)
		return -1;
	wss_deadline_run(&target->deadline, 0);
	return 0;
}

/* Calls wss_window_prepare() until it is done. A turn that this needs is kept until the window is armed. */
static int measure_get_ready(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err)
{
	int r;

	while ((r = wss_window_prepare(measure->window, err)) == 0) {
		if (wss_clock_now_ns() >= until_ns)
			return 1;
		if (wss_deadline_check(&measure->target->deadline, err) < 0)
			return -1;
		if (wss_window_prepare_stalls(measure->window)
			    ? measure_take_turn(measure, err) < 0 ||
				      measure_check_over(measure, err) < 0
			    : measure_sleep(measure, wss_window_next_ns(measure->window), err) < 0)
			return -1;
	}
	return r < 0 ? -1 : 0;
}

/* Arms the window during the guest's turn, which is limited in time. */
static int measure_begin(struct wss_measure *measure, struct wss_error *err)
{
	struct wss_target *target = measure->target;
	const struct wss_measure_place *place = &measure->place;
	int r;

	if (measure_take_turn(measure, err) < 0)
		return -1;
	/* Before the pages of a window that goes on are taken: libvirt may be slow, and touches until then are lost. */
	r = wss_window_check(measure->window, err);
	measure_tell_pages(measure);
	if (r == 0)
		r = measure_check_over(measure, err);
	if (r == 0)
		r = wss_window_begin(measure->window, err);
	wss_gate_armed(place->gate, place->ticket,
		       r < 0 ? wss_clock_now_ns() : wss_window_end_ns(measure->window));
	/* The deadline does not run before the end of the window. */
	wss_deadline_run(&target->deadline, r < 0 ? 0 : wss_window_end_ns(measure->window));
	measure->read = false;
	return r;
}

int wss_measure_arm(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err)
{
	struct wss_target *target = measure->target;
	const struct wss_measure_place *place = &measure->place;
	int r;

	if (wss_gate_enter(place->gate, place->ticket, measure->options->window.track.window_ns,
			   &target->cancel, err) < 0)
		return -1;
	if (!measure->first_window)
		wss_deadline_renew(&target->deadline);
	measure->first_window = false;
	wss_deadline_run(&target->deadline, 0);
	r = measure_get_ready(measure, until_ns, err);
	if (r == 0)
		r = measure_begin(measure, err);
	if (r == 0)
		return 0;
	wss_deadline_pause(&target->deadline);
	wss_gate_leave(place->gate, place->ticket);
	return r < 0 ? measure_failed(measure, HAS_ENDED, err) : r;
}

int wss_measure_poll(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err)
{
	struct wss_window *window = measure->window;
	uint64_t poll_ns = measure->options->poll_ns;
	int r;

	for (;;) {
		uint64_t end_ns = wss_u64_min(until_ns, wss_window_end_ns(window));
		uint64_t next_ns =
			poll_ns ? wss_clock_now_ns() + poll_ns : wss_window_next_ns(window);

		next_ns = wss_u64_min(next_ns, end_ns);
		r = measure_sleep(measure, next_ns, err);
		if (r < 0)
			return -1;
		/* A guest that has ended fails the poll. */
		if (r == 0 && next_ns >= end_ns)
			return 0;
		if (wss_window_poll(window, err) < 0)
			return measure_failed(measure, ENDED_WITHIN, err);
		if (!measure->read && !poll_ns && wss_window_spoilt(window))
			return measure_begin(measure, err) < 0
				       ? measure_failed(measure, ENDED_WITHIN, err)
				       : 1;
	}
}

int wss_measure_read(struct wss_measure *measure, struct wss_sample *ret_sample,
		     struct wss_error *err)
{
	measure->read = true;
	measure->went_on = false;
	measure->read_ns = wss_clock_now_ns();
	if (wss_window_read(measure->window, ret_sample, err) < 0)
		return measure_failed(measure, ENDED_WITHIN, err);
	if (measure->options->observer.pages) {
		wss_sample_copy(&measure->last, ret_sample);
		measure->untold = true;
	}
	return 0;
}

void wss_measure_rest(struct wss_measure *measure)
{
	measure_tell_pages(measure);
}

bool wss_measure_may_go_on(const struct wss_measure *measure)
{
	struct wss_page_view view = wss_window_pages(measure->window);

	return measure->options->observer.until_ns && (view.touched.known || view.blocks.known);
}

int wss_measure_go_on(struct wss_measure *measure, struct wss_error *err)
{
	const struct wss_measure_observer *observer = &measure->options->observer;
	uint64_t until_ns;

	measure->went_on = true;
	wss_gate_leave(measure->place.gate, measure->place.ticket);
	wss_deadline_pause(&measure->target->deadline);
	while ((until_ns = observer->until_ns(observer->opaque)) > wss_clock_now_ns()) {
		uint64_t step_ns = until_ns == UINT64_MAX ? ASK_STEP_NS : GO_ON_STEP_NS;
		uint64_t next_ns = wss_u64_min(wss_clock_now_ns() + step_ns, until_ns);
		int r = measure_sleep(measure, next_ns, err);

		if (r < 0)
			return -1;
		if (r > 0)
			return wss_error_set(err, WSS_ERR_GONE, HAS_ENDED);
		/* As in the window: what the host unmaps must have been seen before. */
		if (wss_window_poll(measure->window, err) < 0)
			return measure_failed(measure, HAS_ENDED, err);
	}
	return until_ns ? 0 : 1;
}

void wss_measure_settle(struct wss_measure *measure, struct wss_sample *sample)
{
	struct wss_deadline *deadline = &measure->target->deadline;

	wss_measure_rest(measure);
	wss_gate_leave(measure->place.gate, measure->place.ticket);
	wss_deadline_run(deadline, 0);
	while (!wss_window_settle(measure->window, sample)) {
		wss_deadline_pause(deadline);
		if (wss_cancel_sleep_until_ns(&measure->target->cancel,
					      wss_clock_now_ns() + SETTLE_STEP_NS) < 0)
			return;
		wss_deadline_run(deadline, 0);
	}
	wss_deadline_pause(deadline);
}

bool wss_measure_ends_series(const struct wss_error *error)
{
	return error->code == WSS_ERR_GONE || error->code == WSS_ERR_UNSUPPORTED ||
	       error->code == WSS_ERR_CONNECT;
}
