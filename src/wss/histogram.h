/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A logarithmic histogram of sizes. Two are merged by adding their counts, without any loss,
 * in any order; so percentiles over any span come from the histograms of its parts.
 *
 * Sizes are counted in pages of 4 KiB, rounded up. Up to 64 pages each number has a bucket of
 * its own, above each doubling has 64: a bucket is at most 1/64 (1.6 %) wide. The scheme
 * is that of HdrHistogram: the leading bits of the number are its bucket.
 */
#ifndef WSS_WSS_HISTOGRAM_H
#define WSS_WSS_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

struct wss_histogram_bucket {
	uint16_t index;
	uint64_t count;
};

/* Sparse: buckets that count something, by index. Zeroed it is empty. */
struct wss_histogram {
	uint64_t total;
	size_t n, room;
	struct wss_histogram_bucket *buckets;
};

void wss_histogram_free(struct wss_histogram *histogram);

/* Counts one size. 0, or -1 when memory is short (then nothing has changed). */
int wss_histogram_add(struct wss_histogram *histogram, uint64_t bytes);

/* Adds the counts of from. 0, or -1 when memory is short (then into is incomplete). */
int wss_histogram_merge(struct wss_histogram *into, const struct wss_histogram *from);

/*
 * The size of a rank, the smallest having rank 1 (1 to total): the upper edge of its bucket, so
 * that it is never less than what was counted. 0 where the histogram is empty.
 */
uint64_t wss_histogram_at_rank(const struct wss_histogram *histogram, uint64_t rank);

/* The nearest-rank percentile, 0 < p <= 1: the size of rank ceil(p * total). */
uint64_t wss_histogram_percentile(const struct wss_histogram *histogram, double p);

/* How many of the sizes counted are above bytes, those in the bucket of bytes not among them. */
uint64_t wss_histogram_above(const struct wss_histogram *histogram, uint64_t bytes);

/* Largest size of the bucket that counts bytes. */
uint64_t wss_histogram_edge(uint64_t bytes);

/*
 * As bytes for storage: the same for the same counts, on every machine. Appends to buf where
 * there is room for it; returns the length that was or would have been written.
 */
size_t wss_histogram_encode(const struct wss_histogram *histogram, uint8_t *buf, size_t size);

/*
 * Reads one histogram that starts at *at and moves *at behind it. Takes anything: -EINVAL where it is
 * not one, -ENOMEM. ret_histogram is then empty.
 */
int wss_histogram_decode(const uint8_t **at, const uint8_t *end,
			 struct wss_histogram *ret_histogram);

/* The numbers that both write: seven bits a byte, the last without its high bit. */
size_t wss_varint_put(uint64_t value, uint8_t *buf, size_t size);
int wss_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *ret_value);

#endif
