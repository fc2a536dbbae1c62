/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The set of a recording that a comparison is made with: the outstanding set at a moment,
 * or the reference set of all of it (wss/refset.h says what these are).
 */
#ifndef WSS_WSS_MOMENT_H
#define WSS_WSS_MOMENT_H

#include "base/error.h"
#include "wss/recording.h"
#include "wss/reference.h"

#define WSS_MOMENT_ALL UINT64_MAX

struct wss_moment {
	uint64_t at_ns; /* WSS_MOMENT_ALL: the reference set */
	struct wss_reference reference; /* where at_ns is that */
	struct wss_pageset *pages;	/* the set */
	struct wss_pageset *written; /* in the window of the moment, or ever */
	bool written_known;
	uint64_t windows;
	bool done; /* the sets are those of the moment */
};

/* WSS_ERR_NO_MEMORY. */
int wss_moment_init(struct wss_moment *moment, const struct wss_recording *recording,
		    uint64_t at_ns, struct wss_error *err);

/* Before the replay: what its sets may take. budget outlives the moment. */
void wss_moment_limit(struct wss_moment *moment, struct wss_pageset_budget *budget);

/* As those of struct wss_recfile_visitor; opaque: the moment. */
int wss_moment_begin(void *moment, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err);
int wss_moment_change(void *moment, enum wss_change change, struct wss_run run,
		      struct wss_error *err);
void wss_moment_expect(void *moment, enum wss_change change, uint64_t page);
int wss_moment_end(void *moment, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err);
int wss_moment_last(void *moment, const struct wss_recording_sets *sets, struct wss_error *err);

void wss_moment_free(struct wss_moment *moment);

struct wss_page_range;

/*
 * Gives each range of pages by which b differs from a: those in b only (value 1), then those in a
 * only (0), each in the order of addresses. Ranges end where regions do; those less than
 * within pages apart are one, whose pages are the ones that differ. Ends when give says false.
 */
void wss_moment_differences(const struct wss_recording *recording, const struct wss_pageset *a,
			    const struct wss_pageset *b, uint64_t within,
			    bool (*give)(void *opaque, const struct wss_page_range *range),
			    void *opaque);

#endif
