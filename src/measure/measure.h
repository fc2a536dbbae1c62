/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room measure/: takes guests through windows, and finds how much memory each of them touches.
 *
 *   in    targets (target.h): guests, each with its policy (policy.h), deadline and cancel token
 *   out   samples (sample.h) with growth curves (curve.h); the pages of each window, for an
 *         observer; profiles in libvirt's metadata (profile.h, publish.h)
 *
 *   round.h    many guests, whose windows begin one after the other (gate.h)
 *   measure.h  one guest: this file
 *   window.h   one window: what all methods have in common; window-sample.c makes the sample
 *   tracker.h  one method: mmu.c for KVM, refs.c for TCG, as methods.h lists them
 *   budget.h   what a window may cost the guest, for the service
 *
 * In a round each guest has a worker, and all events come in the thread that runs it; the states of
 * a guest are in round.h, those of its turn in gate.h, the steps of a window below.
 *
 * Begin with tracker.h and mmu.c. A new method is one file and one line in methods.h. A new figure
 * is a member of struct wss_sample, set in window-sample.c, and a column in
 * history/sample-report.c; history/history.h says how it is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "measure/gate.h"
#include "measure/sample.h"
#include "measure/target.h"
#include "measure/window.h"

/*
 * Theory of operation. A window has five steps, all in the thread of the caller:
 *
 *   prepare  until the method can begin; enters the gate first, which limits the number of
 *            guests that are in a window at the same time
 *   begin    arms the window, in the guest's turn at the gate
 *   poll     as often as the method wants, until the window ends; a spoilt window begins again
 *   read     reads the sample and leaves the gate
 *   settle   until the guest is as it was before
 *
 * The target's deadline runs in each step, except while the window itself lasts, while the
 * guest waits for its turn, and while the caller handles a sample. Closing has time of its
 * own, so that a guest is restored even if all other time is used up. A cancelled window is
 * closed and gives no sample; but if its sample has been read already, the window is settled
 * and the sample emitted.
 */

/* What a window has seen, up to end_ns, a time of wss_clock_now_ns() as start_ns is. */
struct wss_measure_pages {
	uint64_t start_ns, end_ns;
	struct wss_page_view view;	 /* valid during the call */
	const struct wss_sample *sample; /* of the window, or of its beginning */
};

/* Somebody who wants the pages of windows. All functions are called in the thread that measures. */
struct wss_measure_observer {
	/*
	 * Called after a window has been read and before its pages are dropped, by the next window or at the
	 * end. NULL: nobody wants them.
	 */
	void (*pages)(const struct wss_measure_pages *pages, void *opaque);
	/*
	 * With this, a window whose pages are known goes on after its sample has been read, without a new
	 * zap, until the next window is armed or the guest is closed: so windows follow each other without
	 * a gap. Returns when the next one is to begin, wss_clock_now_ns(), UINT64_MAX while that is not
	 * known, or 0 to end; called every 5 s at least. A window that fails, or whose pages are not known, is the last one. NULL: each window
	 * ends with its sample.
	 */
	uint64_t (*until_ns)(void *opaque);
	/* Whether no other window may begin: asked right before each is armed. NULL: each may. */
	bool (*is_over)(void *opaque);
	void *opaque;
};

struct wss_measure_options {
	struct wss_window_options window;
	const struct wss_tracker_ops *method; /* NULL: auto */
	/*
	 * Instead, windows by each of these that can measure the guest, one after the other, and by the first of
	 * them again, up to NULL; not with `both` or `cumulative`. NULL: a single method.
	 */
	const struct wss_tracker_ops *const *methods;
	/* Windows per guest, at least 1; pairs of windows if `both` is set. */
	unsigned count;
	/* From start to start of two windows, or of two reports if cumulative. */
	uint64_t interval_ns;
	/*
	 * Arm once, and report the growing set every interval_ns and at the end of the window.
	 * A report that is due while the one before is still being read is skipped.
	 */
	bool cumulative;
	/*
	 * For windows on a schedule: time between polls; spoilt windows do not begin again. 0:
	 * polled as often as the method wants.
	 */
	uint64_t poll_ns;
	/* Take a native window, then one of 4 KiB, whose sample has the figures of both. */
	bool both;
	struct wss_measure_observer observer;
};

/* Initializes options for one window of window_ns, with the defaults for everything else. */
void wss_measure_options_init(struct wss_measure_options *options, uint64_t window_ns);

/* A measuring thread's place at the gate. gate may be NULL if no other thread measures. */
struct wss_measure_place {
	struct wss_gate *gate;
	struct wss_ticket *ticket;
};

/*
 * Receives each sample, good or bad, as soon as it exists. last: no other sample of this guest
 * follows. Called in the measuring thread.
 */
typedef void (*wss_measure_emit)(const struct wss_sample *sample, bool last, void *opaque);

/*
 * Measures a target after wss_target_open(), even if that failed: every failure becomes a
 * sample. Returns when the guest has been measured and restored, or once the target's token
 * has been requested.
 */
void wss_measure_run(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, wss_measure_emit emit, void *opaque);

/* Whether another window would only fail with the same error. False without an error. */
bool wss_measure_ends_series(const struct wss_error *error);

/* --- step by step, for those who do something in between --- */

struct wss_measure;

/*
 * Chooses the method and prepares for windows of a target whose guest is open. options, target
 * and place (NULL: no gate) must outlive the result; free it with wss_measure_close().
 * *ret_ops is set as soon as the method is known, even on failure; ret_ops may be NULL.
 */
int wss_measure_open(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, struct wss_measure **ret_measure,
		     const struct wss_tracker_ops **ret_ops, struct wss_error *err);

/*
 * Prepares and arms a window. Returns 0; 1 if it could not be armed before until_ns, a time of
 * wss_clock_now_ns() (UINT64_MAX: no limit); -1 with WSS_ERR_INTERRUPTED when cancelled.
 */
int wss_measure_arm(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err);

/*
 * Polls until until_ns or the end of the window, whichever comes first. Returns 0; 1 if the
 * window has begun again and so has new times; -1 with WSS_ERR_INTERRUPTED when cancelled.
 */
int wss_measure_poll(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err);

/* Reads the set touched so far. */
int wss_measure_read(struct wss_measure *measure, struct wss_sample *ret_sample,
		     struct wss_error *err);

/* Waits after the last read until the guest is restored, and adds any remarks to the sample. */
void wss_measure_settle(struct wss_measure *measure, struct wss_sample *sample);

/* Declares that nothing is read until the next window, whose pages the observer gets. */
void wss_measure_rest(struct wss_measure *measure);

/* Whether the observer wants the window to go on after its sample, and its pages are known. */
bool wss_measure_may_go_on(const struct wss_measure *measure);

/*
 * Lets the window go on, with the guest's place at the gate free, until the observer wants the next one:
 * 0; 1 if it wants none; -1: the guest has gone, or WSS_ERR_INTERRUPTED.
 */
int wss_measure_go_on(struct wss_measure *measure, struct wss_error *err);

/* Returns the window, for its times and pages. */
struct wss_window *wss_measure_window(struct wss_measure *measure);

/* Restores the guest and frees the measurement; accepts NULL. */
void wss_measure_close(struct wss_measure *measure);
