/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Summary of the samples of a span: sizes of the working set, and the growth curve of its
 * windows. Summaries of one series (one guest, method, granularity, length of window) merge;
 * those of different series never do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "history/histogram.h"
#include "measure/sample.h"

/* Times of the curve: 1 ms * 10^(k/8), to 10^4 s. One grid for all, so that curves merge. */
#define WSS_SUMMARY_POINTS 57
#define WSS_SUMMARY_PER_DECADE 8

struct wss_summary_point {
	uint64_t n;	    /* number of windows whose curve reached this time */
	uint64_t sum_pages; /* sum over these windows, in pages of 4 KiB, rounded up */
	struct wss_histogram sizes;
};

/* Limit for one guest and day: more than one per millisecond, which no host measures. */
#define WSS_SUMMARY_DAY_MAX 100000000

/* All zero is empty. */
struct wss_summary {
	uint64_t samples; /* good samples, which the histogram counts */
	/* Degraded samples: they count only in max_bytes, by their low bound. */
	uint64_t degraded;
	time_t first, last; /* wall-clock times of samples */
	uint64_t min_bytes, max_bytes;
	uint64_t sum_pages;
	struct wss_histogram sizes;
	struct wss_summary_point curve[WSS_SUMMARY_POINTS];
};

void wss_summary_free(struct wss_summary *summary);

/* Returns the time of curve[k] in ns. */
uint64_t wss_summary_time_ns(size_t k);

/*
 * Whether curve[k] is a mean over nearly all windows. A mean over other windows than its
 * neighbours' would have an artificial slope.
 */
bool wss_summary_point_is_typical(const struct wss_summary *summary, size_t k);

/*
 * Returns the percentile p, 0 to 1, of the good samples in bytes; 0 if there are none. The histogram's is the upper
 * edge of a bucket, and is limited to the largest sample.
 */
uint64_t wss_summary_percentile(const struct wss_summary *summary, double p);

/* Adds a measured sample. Returns 0, or -1 when out of memory. */
int wss_summary_add(struct wss_summary *summary, const struct wss_sample *sample);

/* Adds everything in from. Returns 0, or -1 when out of memory. */
int wss_summary_merge(struct wss_summary *into, const struct wss_summary *from);

/* Encodes the curve for storage, malloc()ed; NULL when out of memory. */
uint8_t *wss_summary_encode_curve(const struct wss_summary *summary, size_t *ret_len);

/*
 * Decodes the curve into an empty summary. Accepts any input: -EINVAL if it is malformed,
 * -ERANGE if a size in it exceeds WSS_BYTES_MAX, -ENOMEM.
 */
int wss_summary_decode_curve(const uint8_t *bytes, size_t len, struct wss_summary *summary);
