/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One side of a comparison: the outstanding set of a recording at a moment, or the reference
 * set of all of it (both defined in pages/refset.h).
 */
#pragma once

#include "base/error.h"
#include "pages/recording.h"
#include "pages/reference.h"

#define WSS_MOMENT_ALL UINT64_MAX

struct wss_moment {
	uint64_t at_ns;			/* WSS_MOMENT_ALL: the reference set */
	struct wss_reference reference; /* used if at_ns is WSS_MOMENT_ALL */
	struct wss_pageset *pages;	/* the set */
	struct wss_pageset *written;	/* written pages: in the window of the moment, or ever */
	bool written_known;
	uint64_t windows;
	uint64_t degraded; /* degraded windows among those that the set is of */
	/*
	 * The last gap that began before the moment, with those that follow at once; the set of a moment within is
	 * that of the window before, or after if it comes first.
	 */
	uint64_t gap_start_ns, gap_end_ns;
	bool gap_is_first;
	bool done; /* the sets are final: those of the moment */
};

/* WSS_ERR_NO_MEMORY. */
int wss_moment_init(struct wss_moment *moment, const struct wss_recording *recording,
		    uint64_t at_ns, struct wss_error *err);

/* Sets the memory budget for its sets before the replay. budget must outlive the moment. */
void wss_moment_limit(struct wss_moment *moment, struct wss_pageset_budget *budget);

/* Functions of a struct wss_recfile_visitor; opaque: the moment. */
int wss_moment_begin(void *moment, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err);
int wss_moment_change(void *moment, enum wss_change change, struct wss_run run,
		      struct wss_error *err);
void wss_moment_expect(void *moment, enum wss_change change, uint64_t page);
int wss_moment_end(void *moment, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err);
int wss_moment_last(void *moment, const struct wss_recording_sets *sets, struct wss_error *err);

/*
 * Copies from, at the end of its replay, into to, which has only been initialized by
 * wss_moment_init() for the same recording, time and budget.
 */
void wss_moment_copy(struct wss_moment *to, const struct wss_moment *from);

/* Whether the moment is in a gap: nothing was observed then. */
bool wss_moment_in_gap(const struct wss_moment *moment);

void wss_moment_free(struct wss_moment *moment);

struct wss_page_range;

/*
 * Calls give for each range of pages in which a and b differ: first those in b only (value 1),
 * then those in a only (0), both sorted by address. Ranges end at the ends of regions; ranges
 * less than within pages apart become one, which counts only the pages that differ. Stops when
 * give returns false.
 */
void wss_moment_differences(const struct wss_recording *recording, const struct wss_pageset *a,
			    const struct wss_pageset *b, uint64_t within,
			    bool (*give)(void *opaque, const struct wss_page_range *range),
			    void *opaque);
