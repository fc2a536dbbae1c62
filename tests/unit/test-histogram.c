/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <errno.h>

#include "history/summary.h"

#define PAGE 4096ULL

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A fixed pseudo-random sequence over many orders of magnitude. */
static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*state >> 20) >> (*state >> 58) % 40;
}

/* Never below the counted size, never more than 1/64 and a page above. */
TEST(test_edges)
{
	uint64_t state = 1;

	for (int i = 0; i < 100000; i++) {
		uint64_t bytes = next(&state), edge = wss_histogram_edge(bytes);

		assert_true(edge >= bytes);
		assert_true(edge - bytes <= bytes / 64 + PAGE);
	}
	for (uint64_t pages = 0; pages < 128; pages++)
		assert_int_equal(wss_histogram_edge(pages * PAGE), pages * PAGE);
	assert_int_equal(wss_histogram_edge(1), PAGE);
	assert_true(wss_histogram_edge(UINT64_MAX) == UINT64_MAX);
	assert_true(wss_histogram_edge(1ULL << 63) >= 1ULL << 63);
}

/* Percentiles are exact to the bucket: the same as sorting all sizes. */
TEST(test_percentiles)
{
	static const double ps[] = {0.001, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1};
	struct wss_histogram histogram = {0};
	static uint64_t values[1000];
	uint64_t state = 7;

	assert_int_equal(wss_histogram_percentile(&histogram, 0.5), 0);
	for (size_t i = 0; i < 1000; i++) {
		values[i] = next(&state);
		assert_int_equal(wss_histogram_add(&histogram, values[i]), 0);
	}
	qsort(values, 1000, sizeof(values[0]), by_size);
	for (size_t i = 0; i < sizeof(ps) / sizeof(ps[0]); i++) {
		size_t rank = (size_t)(ps[i] * 1000 + 0.999999);

		assert_int_equal(wss_histogram_percentile(&histogram, ps[i]),
				 wss_histogram_edge(values[rank - 1]));
	}
	assert_int_equal(wss_histogram_at_rank(&histogram, 1), wss_histogram_edge(values[0]));
	assert_int_equal(wss_histogram_at_rank(&histogram, 5000), wss_histogram_edge(values[999]));
	wss_histogram_free(&histogram);
}

/* 0.95 of 20 is rank 19, not 20, whatever the binary fraction is. */
TEST(test_rank_rounding)
{
	struct wss_histogram histogram = {0};

	for (uint64_t i = 1; i <= 20; i++)
		wss_histogram_add(&histogram, i * PAGE);
	assert_int_equal(wss_histogram_percentile(&histogram, 0.95), 19 * PAGE);
	assert_int_equal(wss_histogram_percentile(&histogram, 0.96), 20 * PAGE);
	assert_int_equal(wss_histogram_above(&histogram, 18 * PAGE), 2);
	assert_int_equal(wss_histogram_above(&histogram, 0), 20);
	assert_int_equal(wss_histogram_above(&histogram, 1 << 30), 0);
	wss_histogram_free(&histogram);
}

static void assert_same(const struct wss_histogram *a, const struct wss_histogram *b)
{
	assert_int_equal(a->total, b->total);
	assert_int_equal(a->n, b->n);
	for (size_t i = 0; i < a->n; i++) {
		assert_int_equal(a->buckets[i].index, b->buckets[i].index);
		assert_int_equal(a->buckets[i].count, b->buckets[i].count);
	}
}

/* Merging the parts in either order gives the whole. */
TEST(test_merge)
{
	struct wss_histogram whole = {0}, parts[3] = {0}, forth = {0}, back = {0};
	uint64_t state = 99;

	for (int i = 0; i < 3000; i++) {
		uint64_t bytes = next(&state);

		wss_histogram_add(&whole, bytes);
		wss_histogram_add(&parts[i % 3], bytes);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wss_histogram_merge(&forth, &parts[i]), 0);
		assert_int_equal(wss_histogram_merge(&back, &parts[2 - i]), 0);
	}
	assert_same(&whole, &forth);
	assert_same(&whole, &back);
	for (int i = 0; i < 3; i++)
		wss_histogram_free(&parts[i]);
	wss_histogram_free(&whole);
	wss_histogram_free(&forth);
	wss_histogram_free(&back);
}

TEST(test_stored)
{
	struct wss_histogram histogram = {0}, again;
	static uint8_t buf[20000];
	const uint8_t *at = buf;
	uint64_t state = 3;
	size_t len;

	for (int i = 0; i < 3000; i++)
		wss_histogram_add(&histogram, next(&state));
	len = wss_histogram_encode(&histogram, NULL, 0);
	assert_true(len < sizeof(buf));
	assert_int_equal(wss_histogram_encode(&histogram, buf, sizeof(buf)), len);
	assert_int_equal(wss_histogram_decode(&at, buf + len, &again), 0);
	assert_ptr_equal(at, buf + len);
	assert_same(&histogram, &again);
	wss_histogram_free(&again);
	/* Data truncated anywhere is refused, and nothing after the cut is read. */
	for (size_t cut = 0; cut < len; cut++) {
		wss_auto_free uint8_t *copy = malloc(cut + 1);

		memcpy(copy, buf, cut);
		at = copy;
		assert_int_equal(wss_histogram_decode(&at, copy + cut, &again), -EINVAL);
		assert_null(again.buckets);
	}
	wss_histogram_free(&histogram);
}

/* The file may contain anything. */
TEST(test_stored_hostile)
{
	static const uint8_t huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1};
	uint64_t state = 5;

	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)(next(&state) % 64);
		wss_auto_free uint8_t *copy = malloc(len + 1);
		struct wss_summary summary = {0};
		struct wss_histogram histogram;
		const uint8_t *at = copy;

		for (size_t k = 0; k < len; k++)
			copy[k] = (uint8_t)next(&state);
		if (wss_histogram_decode(&at, copy + len, &histogram) == 0)
			assert_true(at <= copy + len);
		wss_histogram_free(&histogram);
		wss_summary_decode_curve(copy, len, &summary);
		wss_summary_free(&summary);
	}
	for (size_t i = 0; i <= sizeof(huge); i++) {
		const uint8_t *at = huge;
		struct wss_histogram histogram;

		assert_int_equal(wss_histogram_decode(&at, huge + i, &histogram), -EINVAL);
	}
}

/* Counts so large that as doubles they are 2^64, and sums of counts and sizes that overflow. */
TEST(test_large_counts)
{
	static const uint8_t counts[] = {2,    1,    1,	   4,	 0xfe, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
	static const struct {
		uint8_t bytes[16];
		size_t len;
		int r;
	} curves[] = {
		/* One window of 2^48 pages, and of one page more. */
		{{1, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1, 7, 1}, 12, 0},
		{{1, 1, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1, 7, 1}, 12, -ERANGE},
		/* 100,000,000 windows, and one more. */
		{{1, 1, 7, 1, 7, 0x80, 0xc2, 0xd7, 0x2f}, 9, 0},
		{{1, 1, 7, 1, 7, 0x81, 0xc2, 0xd7, 0x2f}, 9, -EINVAL},
	};
	struct wss_histogram histogram = {0};
	const uint8_t *at = counts;

	assert_int_equal(wss_histogram_decode(&at, counts + sizeof(counts), &histogram), 0);
	assert_int_equal(histogram.total, UINT64_MAX);
	assert_int_equal(wss_histogram_percentile(&histogram, 1), 5 * 4096);
	wss_histogram_free(&histogram);
	for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); i++) {
		struct wss_summary summary = {0};

		assert_int_equal(wss_summary_decode_curve(curves[i].bytes, curves[i].len, &summary),
				 curves[i].r);
		wss_summary_free(&summary);
	}
}

/* No bucket is beyond that of the largest size. */
TEST(test_last_bucket)
{
	static const uint8_t beyond[] = {1, 0xc1, 0x17, 1};
	struct wss_histogram histogram = {0};
	uint8_t last[8];
	const uint8_t *at = last;

	assert_int_equal(wss_histogram_add(&histogram, UINT64_MAX), 0);
	assert_int_equal(wss_histogram_encode(&histogram, last, sizeof(last)), 4);
	assert_memory_equal(last, ((const uint8_t[]){1, 0xc0, 0x17, 1}), 4);
	wss_histogram_free(&histogram);
	assert_int_equal(wss_histogram_decode(&at, last + 4, &histogram), 0);
	assert_int_equal(wss_histogram_above(&histogram, UINT64_MAX), 0);
	wss_histogram_free(&histogram);
	at = beyond;
	assert_int_equal(wss_histogram_decode(&at, beyond + 4, &histogram), -EINVAL);
}

static struct wss_sample sample_of(uint64_t bytes, time_t when)
{
	struct wss_sample sample = {.wall = when,
				    .method = "mmu",
				    .wss_bytes = wss_amount_of(bytes),
				    .low_bytes = wss_amount_of(bytes),
				    .high_bytes = wss_amount_of(bytes)};

	for (uint64_t ms = 1; ms <= 4096; ms *= 2)
		wss_sample_curve_add(&sample, ms * 1000000, bytes * ms / 4096);
	return sample;
}

TEST(test_summary)
{
	struct wss_summary whole = {0}, first = {0}, second = {0}, again = {0};
	wss_auto_free uint8_t *stored = NULL;
	size_t len;

	for (uint64_t i = 1; i <= 100; i++) {
		struct wss_sample sample = sample_of(i << 20, (time_t)(1000 + i));

		if (i % 10 == 0)
			sample.quality = WSS_QUALITY_DEGRADED;
		assert_int_equal(wss_summary_add(&whole, &sample), 0);
		assert_int_equal(wss_summary_add(i <= 50 ? &first : &second, &sample), 0);
	}
	assert_int_equal(wss_summary_merge(&second, &first), 0);
	assert_int_equal(whole.samples, 90);
	assert_int_equal(whole.degraded, 10);
	assert_int_equal(whole.min_bytes, 1 << 20);
	/* A degraded window has touched at least its low bound. */
	assert_int_equal(whole.max_bytes, 100 << 20);
	assert_int_equal(whole.first, 1001);
	assert_int_equal(whole.last, 1100);
	assert_int_equal(second.samples, 90);
	assert_int_equal(second.sum_pages, whole.sum_pages);
	assert_int_equal(second.first, 1001);
	assert_int_equal(second.last, 1100);
	assert_same(&second.sizes, &whole.sizes);
	/* The curve is known within the measured times, and not beyond. */
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		assert_int_equal(whole.curve[k].n,
				 wss_summary_time_ns(k) <= 4096000000ULL ? 90 : 0);
		assert_int_equal(second.curve[k].sum_pages, whole.curve[k].sum_pages);
	}
	stored = wss_summary_encode_curve(&whole, &len);
	assert_non_null(stored);
	assert_true(len < 8192);
	assert_int_equal(wss_summary_decode_curve(stored, len, &again), 0);
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		assert_same(&again.curve[k].sizes, &whole.curve[k].sizes);
		assert_int_equal(again.curve[k].sum_pages, whole.curve[k].sum_pages);
	}
	wss_summary_free(&again);
	for (size_t cut = 0; cut < len; cut++) {
		assert_int_equal(wss_summary_decode_curve(stored, cut, &again), -EINVAL);
		wss_summary_free(&again);
	}
	wss_summary_free(&whole);
	wss_summary_free(&first);
	wss_summary_free(&second);
}

TEST(test_summary_times)
{
	assert_int_equal(wss_summary_time_ns(0), 1000000);
	assert_int_equal(wss_summary_time_ns(8), 10000000);
	assert_true(wss_summary_time_ns(56) == 10000000000000ULL);
}

int main(void)
{
	return tests_run();
}
