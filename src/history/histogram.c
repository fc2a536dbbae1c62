/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define PAGE_SHIFT 12
#define SUB_BITS 6
#define SUB (1u << SUB_BITS)
/* Bucket of the largest possible size, 2^(64 - PAGE_SHIFT) pages. */
#define INDEX_MAX ((64 - PAGE_SHIFT - SUB_BITS + 1) * SUB)

static uint16_t index_of(uint64_t bytes)
{
	uint64_t pages = (bytes >> PAGE_SHIFT) + ((bytes & ((1u << PAGE_SHIFT) - 1)) != 0);
	unsigned shift;

	if (pages < SUB)
		return (uint16_t)pages;
	shift = 63u - (unsigned)__builtin_clzll(pages) - SUB_BITS;
	return (uint16_t)(SUB + shift * SUB + ((pages >> shift) & (SUB - 1)));
}

static uint64_t upper_edge(uint16_t index)
{
	unsigned shift;
	uint64_t pages;

	if (index < SUB)
		return (uint64_t)index << PAGE_SHIFT;
	shift = (index - SUB) / SUB;
	pages = (((uint64_t)SUB + (index & (SUB - 1)) + 1) << shift) - 1;
	return pages > UINT64_MAX >> PAGE_SHIFT ? UINT64_MAX : pages << PAGE_SHIFT;
}

void wss_histogram_free(struct wss_histogram *histogram)
{
	free(histogram->buckets);
	*histogram = (struct wss_histogram){0};
}

/* Returns the position of index, or where it would be inserted. */
static size_t find_bucket(const struct wss_histogram *histogram, uint16_t index)
{
	size_t low = 0, high = histogram->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (histogram->buckets[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int reserve_buckets(struct wss_histogram *histogram, size_t room)
{
	struct wss_histogram_bucket *buckets;

	if (room <= histogram->room)
		return 0;
	if (room < histogram->room * 2)
		room = histogram->room * 2;
	buckets = realloc(histogram->buckets, room * sizeof(*buckets));
	if (!buckets)
		return -1;
	histogram->buckets = buckets;
	histogram->room = room;
	return 0;
}

static int count_pages(struct wss_histogram *histogram, uint16_t index, uint64_t n)
{
	size_t at = find_bucket(histogram, index);

	if (at == histogram->n || histogram->buckets[at].index != index) {
		if (reserve_buckets(histogram, histogram->n + 1) < 0)
			return -1;
		memmove(&histogram->buckets[at + 1], &histogram->buckets[at],
			(histogram->n - at) * sizeof(*histogram->buckets));
		histogram->buckets[at] = (struct wss_histogram_bucket){.index = index};
		histogram->n++;
	}
	histogram->buckets[at].count += n;
	histogram->total += n;
	return 0;
}

int wss_histogram_add(struct wss_histogram *histogram, uint64_t bytes)
{
	return count_pages(histogram, index_of(bytes), 1);
}

int wss_histogram_merge(struct wss_histogram *into, const struct wss_histogram *from)
{
	for (size_t i = 0; i < from->n; i++)
		if (count_pages(into, from->buckets[i].index, from->buckets[i].count) < 0)
			return -1;
	return 0;
}

uint64_t wss_histogram_at_rank(const struct wss_histogram *histogram, uint64_t rank)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < histogram->n; i++) {
		seen += histogram->buckets[i].count;
		if (seen >= rank)
			return upper_edge(histogram->buckets[i].index);
	}
	return histogram->n ? upper_edge(histogram->buckets[histogram->n - 1].index) : 0;
}

uint64_t wss_histogram_percentile(const struct wss_histogram *histogram, double p)
{
	/* In binary 0.95 * 20 is slightly more than 19, and must give rank 19. */
	double rank = ceil(p * (double)histogram->total - 1e-9);

	/* Converted to double, a large total may be rounded up. */
	if (rank >= (double)histogram->total)
		return wss_histogram_at_rank(histogram, histogram->total);
	return wss_histogram_at_rank(histogram, rank < 1 ? 1 : wss_u64_from_double(rank));
}

uint64_t wss_histogram_above(const struct wss_histogram *histogram, uint64_t bytes)
{
	uint16_t index = index_of(bytes);
	uint64_t above = 0;

	for (size_t i = histogram->n; i > 0 && histogram->buckets[i - 1].index > index; i--)
		above += histogram->buckets[i - 1].count;
	return above;
}

uint64_t wss_histogram_edge(uint64_t bytes)
{
	return upper_edge(index_of(bytes));
}

size_t wss_varint_put(uint64_t value, uint8_t *buf, size_t size)
{
	size_t len = 0;

	do {
		uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));

		if (len < size)
			buf[len] = byte;
		len++;
		value >>= 7;
	} while (value);
	return len;
}

int wss_varint_get(const uint8_t **at, const uint8_t *end, uint64_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
		uint8_t byte = *(*at)++;

		if (shift == 63 && byte > 1)
			return -1;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = value;
			return 0;
		}
	}
	return -1;
}

static size_t put_varint(uint64_t value, uint8_t *buf, size_t size, size_t len)
{
	return len + wss_varint_put(value, buf && len < size ? buf + len : NULL,
				    buf && len < size ? size - len : 0);
}

size_t wss_histogram_encode(const struct wss_histogram *histogram, uint8_t *buf, size_t size)
{
	size_t len = put_varint(histogram->n, buf, size, 0);
	unsigned last = 0;

	for (size_t i = 0; i < histogram->n; i++) {
		len = put_varint(histogram->buckets[i].index - last, buf, size, len);
		len = put_varint(histogram->buckets[i].count, buf, size, len);
		last = histogram->buckets[i].index;
	}
	return len;
}

static int decode_bucket(const uint8_t **at, const uint8_t *end, uint64_t *index,
			 struct wss_histogram *histogram)
{
	uint64_t delta, n;

	if (wss_varint_get(at, end, &delta) < 0 || wss_varint_get(at, end, &n) < 0 ||
	    delta > INDEX_MAX || (!delta && histogram->n) || !n ||
	    n > UINT64_MAX - histogram->total)
		return -EINVAL;
	*index += delta;
	if (*index > INDEX_MAX)
		return -EINVAL;
	return count_pages(histogram, (uint16_t)*index, n) < 0 ? -ENOMEM : 0;
}

int wss_histogram_decode(const uint8_t **at, const uint8_t *end,
			 struct wss_histogram *ret_histogram)
{
	struct wss_histogram histogram = {0};
	uint64_t n, index = 0;
	int r = wss_varint_get(at, end, &n) < 0 ? -EINVAL : 0;

	/*
	 * Each bucket has at least two bytes, so a forged length cannot allocate more than the
	 * data.
	 */
	if (r == 0 && n > (uint64_t)(end - *at) / 2)
		r = -EINVAL;
	for (uint64_t i = 0; r == 0 && i < n; i++)
		r = decode_bucket(at, end, &index, &histogram);
	if (r < 0)
		wss_histogram_free(&histogram);
	*ret_histogram = histogram;
	return r;
}
