/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reference set of a recorded guest.
 *
 * The outstanding set at a moment is the memory that the guest touched in the window that
 * contains the moment, or in the last one before it: a page enters it when it is touched, and
 * leaves it when a window passes without a touch. The reference set is everything touched at
 * least once since the recording began, less what the balloon took; pages that it took in a
 * window in which the guest touched them leave with the next window. The reference set therefore
 * contains the outstanding set.
 *
 * A viewport is the time from A to B. Of the pages that were outstanding at any time in it
 *
 *   persistent ones are outstanding at both its ends,
 *   impacting ones at one of them: gained or lost, they change the graph of the
 *     outstanding set between its ends, and count once however often they came and went,
 *   transient ones at neither: they came and went within.
 *
 * Each page is in one class, and gained less lost is the change between the ends. These are
 * the classes of allocations in the Windows Performance Toolkit (made inside or outside of the
 * selected time, freed inside or outside), with touches in place of allocations.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"
#include "base/error.h"
#include "pages/marks.h"
#include "pages/recording.h"

/* One interval of the graph. */
struct wss_refset_point {
	uint64_t start_ns;
	uint64_t end_ns;
	bool gap;
	bool degraded;
	bool in_viewport;
	uint8_t written_meaning; /* enum wss_written */
	size_t why;		 /* offset in the result's notes; 0: no reason is known */
	/* Pages; unknown, and 0 here, in a gap. */
	uint64_t touched;   /* the outstanding set */
	uint64_t first;	    /* touched for the first time, or for the first time since the balloon
			   took it */
	uint64_t written;   /* 0 if the meaning is "absent" */
	uint64_t gained;    /* touched, but not in the previous window */
	uint64_t lost;	    /* touched in the previous window, but not in this one */
	uint64_t ballooned; /* taken by the balloon in this interval */
	uint64_t returned;
	uint64_t reference; /* the reference set so far */
};

struct wss_refset_classes {
	uint64_t persistent; /* in pages, like all of these */
	uint64_t unbroken;   /* part of persistent that was outstanding all the time */
	uint64_t gained;
	uint64_t lost;
	uint64_t transient;
	uint64_t written;   /* written at least once in the viewport */
	uint64_t peak;	    /* largest outstanding set */
	uint64_t reference; /* at the end of the viewport */
};

/* At least two windows in which the outstanding set stays within 5 % of its mean, or 256 KiB. */
struct wss_refset_phase {
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t windows;
	uint64_t pages; /* median */
};

struct wss_refset_result {
	uint64_t from_ns; /* the viewport */
	uint64_t to_ns;
	size_t n_points;
	struct wss_refset_point *points;
	char *notes; /* reasons for gaps and degraded windows, each ended by NUL; NULL: none */
	struct wss_marks marks;
	size_t n_phases;
	struct wss_refset_phase *phases; /* of the viewport */
	/* Figures of the viewport, in total and for each region of the recording. */
	struct wss_refset_classes all;
	struct wss_refset_classes *regions;
	uint64_t windows;	  /* in the viewport */
	uint64_t gap_ns;	  /* in the viewport */
	uint64_t peak_ns;	  /* when the peak was first reached */
	struct wss_amount steady; /* pages of the last phase, if at most one window follows it */
	uint64_t steady_since_ns;
	uint8_t written_meaning; /* weakest meaning of the windows in the viewport */
};

struct wss_refset;

/*
 * Starts a refset; recording must outlive it. The viewport is [from_ns, to_ns).
 * WSS_ERR_NO_MEMORY.
 */
int wss_refset_new(const struct wss_recording *recording, uint64_t from_ns, uint64_t to_ns,
		   struct wss_refset **ret_refset, struct wss_error *err);

/* Sets the memory budget for its sets before the replay. budget must outlive the refset. */
void wss_refset_limit(struct wss_refset *refset, struct wss_pageset_budget *budget);

/*
 * Functions of a struct wss_recfile_visitor, called in the order of the replay; opaque: the
 * refset.
 */
int wss_refset_begin(void *refset, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err);
int wss_refset_change(void *refset, enum wss_change change, struct wss_run run,
		      struct wss_error *err);
void wss_refset_expect(void *refset, enum wss_change change, uint64_t page);
int wss_refset_end(void *refset, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err);
int wss_refset_last(void *refset, const struct wss_recording_sets *sets, struct wss_error *err);
int wss_refset_mark(void *refset, uint64_t time_ns, const char *text, struct wss_error *err);

/*
 * Returns the result after the whole recording, which ended at end_ns; owned by the refset. May
 * be called once, because it frees the sets. WSS_ERR_FAILED: no window lies in the viewport.
 */
int wss_refset_finish(struct wss_refset *refset, uint64_t end_ns,
		      const struct wss_refset_result **ret_result, struct wss_error *err);

/* Frees a refset; accepts NULL. */
void wss_refset_free(struct wss_refset *refset);
