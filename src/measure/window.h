/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under observation: everything that all methods have in common. Holds the lock on
 * the guest, checks before each window that the guest runs and no job is active, predicts and
 * limits the stall, pauses the guest if requested, polls for the growth curve, and makes the
 * sample.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "measure/lessons.h"
#include "measure/sample.h"
#include "measure/tracker.h"

/* What the last walk of QEMU's page tables for memory figures has found, kept by the caller for later windows. */
struct wss_window_memory {
	uint64_t read_ns;    /* a time of wss_clock_now_ns(); 0: never */
	uint64_t qemu_bytes; /* resident memory of QEMU that is not guest RAM */
};

struct wss_window_options {
	/* Passed to the method; the window also obeys its length and stall. */
	struct wss_track_options track;
	bool pause; /* hold the guest during arming and reading */
	bool curve; /* poll for the growth curve even if polls are expensive */
	/*
	 * The caller wants to know whether the set still grows at the end of the window: poll
	 * once within it even if polls are expensive, so that the curve has more than one
	 * point.
	 */
	bool growth;
	/*
	 * Maximum age of memory figures, because reading them walks page tables. 0: as new as
	 * the sample.
	 */
	uint64_t memory_age_ns;
	/*
	 * With it, windows between two walks have new figures of what can be read without: all but PSS, and
	 * QEMU's own share as it was at the walk. NULL: they have those of the last walk of the same window.
	 */
	struct wss_window_memory *memory;
	/*
	 * What earlier windows of this kind, length and guest have taught, which this one adds to. NULL: it learns from those
	 * of the same wss_window_open() alone.
	 */
	struct wss_lessons *lessons;
	/*
	 * May a window be armed that will cost the guest so much? 0, or -1 with the reason: nothing is
	 * armed then. Called by wss_window_prepare() before each window. NULL: any within the limits.
	 */
	int (*admit)(const struct wss_prediction *prediction, void *opaque, struct wss_error *err);
	void *admit_opaque;
};

#define WSS_WINDOW_OPTIONS_INIT                 \
	{                                       \
		.track = WSS_TRACK_OPTIONS_INIT \
	}

struct wss_window;

/*
 * Locks an attached guest and prepares the method. Arms nothing yet. host, guest and options
 * must outlive the window. Fails as wss_control_take() and the method's open do, and with
 * WSS_ERR_UNSUPPORTED if the guest is to be held and the method cannot measure it then.
 */
int wss_window_open(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_tracker_ops *ops, const struct wss_window_options *options,
		    struct wss_window **ret_window, struct wss_error *err);

/*
 * Takes one step of the preparation for wss_window_begin(). Returns 1: the window may begin;
 * 0: call again at wss_window_next_ns(); -1 with the errors of wss_window_begin().
 */
int wss_window_prepare(struct wss_window *window, struct wss_error *err);

/* Whether the next step will stall the guest, as wss_window_begin() does. Call it after one that returned 0. */
bool wss_window_prepare_stalls(const struct wss_window *window);

/*
 * Checks before wss_window_begin() what that would check, which may take a call of libvirt, so that it need not do
 * so. For those who have something to do right before the window begins. Fails as that does for a guest that does not
 * run or has a job.
 */
int wss_window_check(struct wss_window *window, struct wss_error *err);

/*
 * Arms the window, after checking the guest again unless wss_window_prepare() has just done
 * so, or wss_window_check(). The expected stall is the predicted one, or, if longer, the shortest of the last three
 * that were measured on this guest: a single long one may have been our own wait for a CPU.
 * WSS_ERR_FAILED (the guest does not run), WSS_ERR_BUSY (a job), WSS_ERR_UNSUPPORTED (the
 * stall would be longer than max_stall_ns), WSS_ERR_GONE.
 */
int wss_window_begin(struct wss_window *window, struct wss_error *err);

/* Returns when the current window began, a time of wss_clock_now_ns(). */
uint64_t wss_window_start_ns(const struct wss_window *window);

/*
 * Returns when it ends, a time of wss_clock_now_ns(): after its length, or earlier if it must
 * be cut short.
 */
uint64_t wss_window_end_ns(const struct wss_window *window);

/* Returns when the window should be polled next, or ends; a time of wss_clock_now_ns(). */
uint64_t wss_window_next_ns(const struct wss_window *window);

/*
 * Checks that the guest still lives and, if the method's polls are cheap, adds a point to the
 * curve.
 */
int wss_window_poll(struct wss_window *window, struct wss_error *err);

/*
 * Whether the window has lost a condition that it depends on and wss_window_begin() should be
 * called again.
 */
bool wss_window_spoilt(const struct wss_window *window);

/*
 * Reads the set touched so far and fills in a complete sample. The observation continues until
 * the next begin: several readings after one arming give the growing set. WSS_ERR_FAILED if
 * nothing at all has been touched by the end of the window: the guest has not run.
 */
int wss_window_read(struct wss_window *window, struct wss_sample *ret_sample,
		    struct wss_error *err);

/*
 * Counts the pages again, for a window that has gone on after wss_window_read(). If this fails, none of them is known any more.
 */
int wss_window_read_pages(struct wss_window *window, struct wss_error *err);

/*
 * Returns the pages that the last wss_window_read() or wss_window_read_pages() has counted, if each of them is known
 * exactly. Valid until the next begin.
 */
struct wss_page_view wss_window_pages(const struct wss_window *window);

/*
 * Takes one step of checking that the guest is as it was before the window. Returns true when
 * done, with any remarks noted in the sample of that window; false: call again in a moment.
 */
bool wss_window_settle(struct wss_window *window, struct wss_sample *sample);

/* Unlocks the guest and leaves it running. Accepts NULL. */
void wss_window_close(struct wss_window *window);
