/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Logarithmic histogram of sizes. Two of them merge by adding their counts, without loss and
 * in any order, so percentiles over any span come from the histograms of its parts.
 *
 * Sizes are counted in pages of 4 KiB, rounded up. Up to 64 pages each number has a bucket of
 * its own; above that each doubling has 64 buckets, so a bucket is at most 1/64 (1.6 %) wide.
 * The scheme is HdrHistogram's: the leading bits of the number select the bucket.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wss_histogram_bucket {
	uint16_t index;
	uint64_t count;
};

/* Sparse: non-empty buckets, sorted by index. All zero is empty. */
struct wss_histogram {
	uint64_t total;
	size_t n, room;
	struct wss_histogram_bucket *buckets;
};

void wss_histogram_free(struct wss_histogram *histogram);

/* Counts one size. Returns 0, or -1 when out of memory (nothing has changed then). */
int wss_histogram_add(struct wss_histogram *histogram, uint64_t bytes);

/* Adds the counts of from. Returns 0, or -1 when out of memory (into is incomplete then). */
int wss_histogram_merge(struct wss_histogram *into, const struct wss_histogram *from);

/*
 * Returns the size of a rank (1 to total; the smallest has rank 1): the upper edge of its
 * bucket, so never less than the counted size. 0 if the histogram is empty.
 */
uint64_t wss_histogram_at_rank(const struct wss_histogram *histogram, uint64_t rank);

/* Returns the nearest-rank percentile, 0 < p <= 1: the size of rank ceil(p * total). */
uint64_t wss_histogram_percentile(const struct wss_histogram *histogram, double p);

/* Returns how many counted sizes are above bytes, without those in its bucket. */
uint64_t wss_histogram_above(const struct wss_histogram *histogram, uint64_t bytes);

/* Returns the largest size in the bucket of bytes. */
uint64_t wss_histogram_edge(uint64_t bytes);

/*
 * Encodes the histogram for storage: equal counts give equal bytes on every machine. Appends
 * to buf as far as there is room; returns the full length.
 */
size_t wss_histogram_encode(const struct wss_histogram *histogram, uint8_t *buf, size_t size);

/*
 * Decodes one histogram at *at and moves *at behind it. Accepts any input: -EINVAL if it is
 * malformed, -ENOMEM. ret_histogram is then empty.
 */
int wss_histogram_decode(const uint8_t **at, const uint8_t *end,
			 struct wss_histogram *ret_histogram);

/* Numbers in both encodings: seven bits per byte, the high bit set in all but the last. */
size_t wss_varint_put(uint64_t value, uint8_t *buf, size_t size);
int wss_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *ret_value);
