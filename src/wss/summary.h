/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the samples of a span add up to: how large the working set was, and the growth curve
 * of its windows. Summaries of one series (one guest, method, granularity, length of
 * window) merge; those of different series never do.
 */
#ifndef WSS_WSS_SUMMARY_H
#define WSS_WSS_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "wss/histogram.h"
#include "wss/sample.h"

/* The curve's times: 1 ms * 10^(k/8), to 10^4 s. One grid for all, so that curves merge. */
#define WSS_SUMMARY_POINTS 57
#define WSS_SUMMARY_PER_DECADE 8

struct wss_summary_point {
	uint64_t n;	    /* windows whose curve reached this time */
	uint64_t sum_pages; /* over these; of 4 KiB, rounded up */
	struct wss_histogram sizes;
};

/* Of one guest in a day: more than one a millisecond. A sum of more was not made by any host. */
#define WSS_SUMMARY_DAY_MAX 100000000

/* Zeroed it is empty. */
struct wss_summary {
	uint64_t samples;  /* of good quality: what the histogram has counted */
	/* Measured, but doubtful: in no figure but max_bytes, by their low bound. */
	uint64_t degraded;
	time_t first, last; /* of the samples, by the wall clock */
	uint64_t min_bytes, max_bytes;
	uint64_t sum_pages;
	struct wss_histogram sizes;
	struct wss_summary_point curve[WSS_SUMMARY_POINTS];
};

void wss_summary_free(struct wss_summary *summary);

/* Time of curve[k], ns. */
uint64_t wss_summary_time_ns(size_t k);

/*
 * Whether curve[k] is a mean over nearly all windows. A mean over others than its neighbours' has a
 * slope of its own making.
 */
bool wss_summary_point_is_typical(const struct wss_summary *summary, size_t k);

/* Adds a measured sample. 0, or -1 when memory is short. */
int wss_summary_add(struct wss_summary *summary, const struct wss_sample *sample);

/* Adds all that from has. 0, or -1 when memory is short. */
int wss_summary_merge(struct wss_summary *into, const struct wss_summary *from);

/* The curve as bytes for storage, malloc'ed; NULL when memory is short. */
uint8_t *wss_summary_encode_curve(const struct wss_summary *summary, size_t *ret_len);

/* Reads the curve into an empty summary. Takes anything; -EINVAL where it is none, -ENOMEM. */
int wss_summary_decode_curve(const uint8_t *bytes, size_t len, struct wss_summary *summary);

#endif
