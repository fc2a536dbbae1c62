/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The window driver: what takes a guest through windows, for every front end and every method.
 *
 * Theory of operation. A window has five steps, all in the thread of the caller:
 *
 *   prepare  until the method can begin; enters the gate first, so that no more than so many guests
 *            are in a window at a time
 *   begin    arms it, in the guest's turn of the gate
 *   poll     as often as the method wants, until the window ends; one that is spoilt begins again
 *   read     the sample; leaves the gate
 *   settle   until the guest is as it was before
 *
 * The target's deadline runs in each of them but for the time that the window itself lasts, the turn
 * that is waited for, and what the caller does with a sample. Closing has time of its own, so that a
 * guest is restored whatever has used up the time before. A cancelled window is closed, and gives no
 * sample; but one that has been read does, and is settled first.
 */
#ifndef WSS_SERVICE_MEASURE_H
#define WSS_SERVICE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "service/gate.h"
#include "service/target.h"
#include "track/window.h"
#include "wss/sample.h"

struct wss_measure_options {
	struct wss_window_options window;
	const struct wss_tracker_ops *method; /* NULL: auto */
	unsigned count;	      /* windows a guest, at least 1; of two granularities, pairs */
	uint64_t interval_ns; /* from start to start of two windows; of two reports if cumulative */
	/*
	 * Arm once, report the growing set every interval_ns and at the end of the window. A report
	 * whose moment passes while the one before is read is skipped.
	 */
	bool cumulative;
	/*
	 * Windows of a schedule: polled only so often, and not begun again where they are spoilt. 0:
	 * polled as often as the method wants.
	 */
	uint64_t poll_ns;
	/* A window by the host's mappings, then one by 4 KiB, whose sample has both figures. */
	bool both;
};

/* One window of window_ns, with the defaults of everything else. */
void wss_measure_options_init(struct wss_measure_options *options, uint64_t window_ns);

/* What a thread that measures stands at. gate may be NULL: nobody else measures. */
struct wss_measure_place {
	struct wss_gate *gate;
	struct wss_ticket *ticket;
};

/*
 * Takes each sample, good or bad, as it comes. last: no other follows for this guest. In the thread
 * that measures.
 */
typedef void (*wss_measure_emit)(const struct wss_sample *sample, bool last, void *opaque);

/*
 * Measures a target that has been opened, or tried to: what goes wrong becomes a sample. Returns when
 * all is done and the guest is as it was, also once the target's token is requested.
 */
void wss_measure_run(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, wss_measure_emit emit, void *opaque);

/* Is this an error that the next window would meet, too? False without an error. */
bool wss_measure_ends_series(const struct wss_error *error);

/* --- step by step, for those who do something in between --- */

struct wss_measure;

/*
 * Chooses the method and prepares for windows of a target whose guest is open. options, target and
 * place (NULL: no gate) must outlive it. For wss_measure_close(). ret_ops, which may be NULL, is the
 * method, set as soon as it is known, also on failure.
 */
int wss_measure_open(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, struct wss_measure **ret_measure,
		     const struct wss_tracker_ops **ret_ops, struct wss_error *err);

/*
 * Prepares a window and arms it. 0; 1 where it could not be armed before until_ns,
 * wss_clock_now_ns(), UINT64_MAX for no limit; -1, WSS_ERR_INTERRUPTED when cancelled.
 */
int wss_measure_arm(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err);

/*
 * Polls until until_ns or the window's end, whichever is first. 0; 1 where the window began again: its
 * times are others now; -1, WSS_ERR_INTERRUPTED when cancelled.
 */
int wss_measure_poll(struct wss_measure *measure, uint64_t until_ns, struct wss_error *err);

/* Reads the set as it is now. */
int wss_measure_read(struct wss_measure *measure, struct wss_sample *ret_sample,
		     struct wss_error *err);

/* After the last read: until the guest is as it was; what there is to say is added to the sample. */
void wss_measure_settle(struct wss_measure *measure, struct wss_sample *sample);

/* The window, for its times and pages. */
struct wss_window *wss_measure_window(struct wss_measure *measure);

/* Restores the guest. Takes NULL. */
void wss_measure_close(struct wss_measure *measure);

#endif
