/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under observation: everything that is common to all methods. Holds
 * the lock on the guest, checks before each window that it runs and that no job is
 * active, predicts and limits the stall, pauses it where asked, polls for the growth
 * curve, and makes the sample.
 */
#ifndef WSS_TRACK_WINDOW_H
#define WSS_TRACK_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "track/tracker.h"
#include "wss/sample.h"

struct wss_window_options {
	struct wss_track_options track; /* for the method; the window heeds its length and stall */
	bool pause; /* hold the guest while arming and while reading */
	bool curve; /* the growth curve is what is asked for: poll for it also where that is dear */
	/*
	 * Whether the set still grows at the end of the window is asked: poll once within it also
	 * where that is dear, so that the curve has more than its end.
	 */
	bool growth;
	/* Memory figures may be so old: reading them walks page tables. 0: as new as the sample. */
	uint64_t memory_age_ns;
};

#define WSS_WINDOW_OPTIONS_INIT { .track = WSS_TRACK_OPTIONS_INIT }

struct wss_window;

/*
 * Locks an attached guest and prepares the method. Nothing is armed yet. host,
 * guest and options outlive the window. Errors as wss_control_take() and the
 * method's open; WSS_ERR_UNSUPPORTED where the guest is to be held and the method
 * cannot measure it so.
 */
int wss_window_open(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_tracker_ops *ops, const struct wss_window_options *options,
		    struct wss_window **ret_window, struct wss_error *err);

/*
 * One step of what has to come before wss_window_begin(): 1 it may begin, 0 call again at
 * wss_window_next_ns(), -1 with the errors of wss_window_begin().
 */
int wss_window_prepare(struct wss_window *window, struct wss_error *err);

/*
 * Arms. The stall that is expected is the predicted one, or the shortest of the last three
 * that were measured on this guest where that is longer: a single long one may have been
 * our own wait for a CPU. WSS_ERR_FAILED (the guest does not run), WSS_ERR_BUSY (a job),
 * WSS_ERR_UNSUPPORTED (the stall would be longer than max_stall_ns), WSS_ERR_GONE.
 */
int wss_window_begin(struct wss_window *window, struct wss_error *err);

/* When the window that was begun last began, wss_clock_now_ns(). */
uint64_t wss_window_start_ns(const struct wss_window *window);

/* When it ends, wss_clock_now_ns(): after its length, or earlier where it must be cut short. */
uint64_t wss_window_end_ns(const struct wss_window *window);

/* When the window should be polled next, or its end; wss_clock_now_ns(). */
uint64_t wss_window_next_ns(const struct wss_window *window);

/* Sees that the guest still lives and, where the method can cheaply, adds a point to the curve. */
int wss_window_poll(struct wss_window *window, struct wss_error *err);

/*
 * Has what the window rests on been lost, so that wss_window_begin() should come again? Only
 * where that is sure to help.
 */
bool wss_window_spoilt(const struct wss_window *window);

/*
 * Reads the set touched so far and fills a whole sample. The observation goes on
 * until the next begin: several reads of one arming give the growing set. WSS_ERR_FAILED where
 * nothing at all has been touched when the window is over: the guest has not run.
 */
int wss_window_read(struct wss_window *window, struct wss_sample *ret_sample,
		    struct wss_error *err);

/*
 * The pages that the last wss_window_read() has counted, where each of them is known exactly.
 * Valid until the next begin or rest.
 */
struct wss_page_view wss_window_pages(const struct wss_window *window);

/* Nothing is read until the next begin. */
void wss_window_rest(struct wss_window *window);

/*
 * One step of seeing that the guest is as it was before the window: true when that is done,
 * with what there is to say in the sample of that window; false: call again in a moment.
 */
bool wss_window_settle(struct wss_window *window, struct wss_sample *sample);

/* Unlocks, and leaves the guest running. Takes NULL. */
void wss_window_close(struct wss_window *window);

#endif
