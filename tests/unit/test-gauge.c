/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include "base/units.h"
#include "measure/gauge.h"

static struct wss_gauge_reading entries(uint64_t n_4k, uint64_t n_2m, uint64_t n_1g)
{
	return (struct wss_gauge_reading){n_4k, n_2m, n_1g, false, 0, false, 0};
}

/* A reading with faults and flushes as a real kernel counts them. */
static struct wss_gauge_reading counted(uint64_t n_4k, uint64_t n_2m, uint64_t faults,
					uint64_t flushes)
{
	return (struct wss_gauge_reading){n_4k, n_2m, 0, true, faults, true, flushes};
}

/* Returns the result over n readings, the first of which is the base. */
static struct wss_gauge_result over(const struct wss_gauge_reading *readings, size_t n,
				    uint64_t ram_bytes)
{
	struct wss_gauge_result result;
	struct wss_gauge gauge;

	wss_gauge_begin(&gauge, &readings[0]);
	for (size_t i = 1; i < n; i++)
		wss_gauge_add(&gauge, &readings[i]);
	wss_gauge_result(&gauge, ram_bytes, &result);
	/* Invariants of every result. */
	assert_true(result.low_bytes <= result.wss_bytes);
	assert_true(result.wss_bytes <= result.high_bytes);
	assert_true(!ram_bytes || result.high_bytes <= ram_bytes);
	return result;
}

#define OVER(ram_bytes, ...)                                           \
	over((const struct wss_gauge_reading[]){__VA_ARGS__},          \
	     sizeof((const struct wss_gauge_reading[]){__VA_ARGS__}) / \
		     sizeof(struct wss_gauge_reading),                 \
	     ram_bytes)

TEST(test_bytes)
{
	struct wss_gauge_reading reading = entries(3, 2, 1);

	assert_int_equal(wss_gauge_bytes(&reading), 12 * WSS_KIB + 4 * WSS_MIB + WSS_GIB);
	reading = entries(0, 0, 0);
	assert_int_equal(wss_gauge_bytes(&reading), 0);
}

/* Nothing lost: both bounds are the largest gauge. */
TEST(test_exact)
{
	struct wss_gauge_result r = OVER(512 * WSS_MIB, counted(10, 0, 1000, 7),
					 counted(2000, 0, 2990, 7), counted(4518, 0, 5508, 7));

	assert_int_equal(r.wss_bytes, 4518 * 4 * WSS_KIB);
	assert_int_equal(r.low_bytes, r.wss_bytes);
	assert_int_equal(r.high_bytes, r.wss_bytes);
	assert_int_equal(r.granularity_bytes, 4096);
	assert_int_equal(r.excess_faults, 0);
	assert_int_equal(r.fallen_bytes, 0);
}

TEST(test_base_only)
{
	struct wss_gauge_result r = OVER(0, entries(0, 0, 0));

	assert_int_equal(r.wss_bytes, 0);
	assert_int_equal(r.granularity_bytes, 4096);
	/* Memory that was mapped again before the first reading has been touched, too. */
	r = OVER(0, entries(25, 0, 0));
	assert_int_equal(r.wss_bytes, 25 * 4 * WSS_KIB);
}

TEST(test_granularity)
{
	struct wss_gauge_result r = OVER(512 * WSS_MIB, entries(0, 0, 0), entries(5, 37, 0));

	/* Each of the 42 entries is one touched page at least. */
	assert_int_equal(r.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(r.low_bytes, 42 * 4 * WSS_KIB);
	assert_int_equal(r.high_bytes, 37 * 2 * WSS_MIB + 20 * WSS_KIB);
	assert_int_equal(r.wss_bytes, r.high_bytes);
	r = OVER(4 * WSS_GIB, entries(0, 0, 0), entries(0, 1, 2));
	assert_int_equal(r.granularity_bytes, WSS_GIB);
	assert_int_equal(r.high_bytes, 2 * WSS_GIB + 2 * WSS_MIB);
	/* The largest value ever seen counts, even if it is gone at the end. */
	r = OVER(0, entries(0, 1, 0), entries(1, 0, 0));
	assert_int_equal(r.granularity_bytes, 2 * WSS_MIB);
	r = OVER(0, entries(0, 0, 1), entries(0, 1, 0), entries(1, 0, 0));
	assert_int_equal(r.granularity_bytes, WSS_GIB);
	/* Many small ones may be more entries than few large ones are bytes. */
	r = OVER(0, entries(0, 1, 0), entries(300, 0, 0));
	assert_int_equal(r.low_bytes, 300 * 4 * WSS_KIB);
	assert_int_equal(r.high_bytes, 2 * WSS_MIB);
}

/* The gauge falls when the host unmaps memory; the largest value stays. */
TEST(test_falls)
{
	struct wss_gauge_result r = OVER(0, entries(0, 0, 0), entries(100, 0, 0), entries(60, 0, 0),
					 entries(90, 0, 0), entries(85, 0, 0));

	assert_int_equal(r.wss_bytes, 100 * 4 * WSS_KIB);
	assert_int_equal(r.fallen_bytes, 45 * 4 * WSS_KIB);
}

TEST(test_excess_faults)
{
	struct wss_gauge_result r;

	/* 100 entries were lost and came back: 300 faults, 200 entries grown. */
	r = OVER(0, counted(0, 0, 50, 1), counted(200, 0, 350, 2));
	assert_int_equal(r.excess_faults, 100);
	assert_int_equal(r.low_bytes, 200 * 4 * WSS_KIB);
	assert_int_equal(r.high_bytes, 300 * 4 * WSS_KIB);
	assert_int_equal(r.wss_bytes, r.low_bytes);
	/* Entries mapped at the base have not grown since. */
	r = OVER(0, counted(150, 0, 0, 1), counted(200, 0, 60, 2));
	assert_int_equal(r.excess_faults, 10);
	/* On huge pages each may have been 2 MiB; RAM is the limit. */
	r = OVER(0, counted(0, 0, 0, 0), counted(0, 10, 14, 1));
	assert_int_equal(r.high_bytes, 14 * 2 * WSS_MIB);
	r = OVER(24 * WSS_MIB, counted(0, 0, 0, 0), counted(0, 10, 14, 1));
	assert_int_equal(r.high_bytes, 24 * WSS_MIB);
	/* Fewer faults than entries: some were prefetched, nothing was lost. */
	r = OVER(0, counted(0, 0, 0, 0), counted(100, 0, 40, 1));
	assert_int_equal(r.excess_faults, 0);
	assert_int_equal(r.high_bytes, r.low_bytes);
}

/* Somebody else's dirty log splits 10 large entries within the window: no page was touched. */
TEST(test_split)
{
	struct wss_gauge_result r;

	r = OVER(0, counted(2, 0, 100, 1), counted(2, 10, 110, 1), counted(5122, 0, 110, 1));
	assert_int_equal(r.low_bytes, 12 * 4 * WSS_KIB);
	assert_int_equal(r.wss_bytes, r.high_bytes);
	assert_int_equal(r.high_bytes, 20 * WSS_MIB + 2 * 4 * WSS_KIB);
}

/* If no TLB flush was requested, nothing was unmapped, whatever the faults suggest. */
TEST(test_flush_rule)
{
	struct wss_gauge_reading lacks;
	struct wss_gauge_result r;

	r = OVER(0, counted(0, 0, 0, 9), counted(200, 0, 350, 9));
	assert_int_equal(r.excess_faults, 0);
	assert_int_equal(r.high_bytes, r.low_bytes);
	r = OVER(0, counted(0, 0, 0, 9), counted(200, 0, 350, 10));
	assert_int_equal(r.excess_faults, 150);
	/* The counter itself remembers a flush between two readings. */
	r = OVER(0, counted(0, 0, 0, 9), counted(100, 0, 200, 10), counted(200, 0, 350, 10));
	assert_int_equal(r.excess_faults, 150);
	/* If flushes were not counted, in the base or later, a loss cannot be ruled out. */
	lacks = counted(200, 0, 350, 9);
	lacks.has_flushes = false;
	r = OVER(0, counted(0, 0, 0, 9), lacks);
	assert_int_equal(r.excess_faults, 150);
	lacks = counted(0, 0, 0, 9);
	lacks.has_flushes = false;
	r = OVER(0, lacks, counted(200, 0, 350, 9));
	assert_int_equal(r.excess_faults, 150);
}

TEST(test_faults_unknown)
{
	struct wss_gauge_reading known = counted(200, 0, 350, 2), unknown = entries(200, 0, 0);
	struct wss_gauge_result r;

	r = OVER(0, entries(0, 0, 0), known);
	assert_int_equal(r.excess_faults, 0);
	r = OVER(0, counted(0, 0, 0, 0), unknown);
	assert_int_equal(r.excess_faults, 0);
	/* A counter that runs backwards proves nothing. */
	r = OVER(0, counted(0, 0, 1000, 0), counted(200, 0, 10, 1));
	assert_int_equal(r.excess_faults, 0);
}

TEST(test_caps)
{
	/* Device memory is counted, too: there are more entries than RAM. */
	struct wss_gauge_result r = OVER(WSS_MIB, entries(0, 0, 0), entries(1000, 0, 0));

	assert_int_equal(r.low_bytes, WSS_MIB);
	assert_int_equal(r.high_bytes, WSS_MIB);
	r = OVER(0, entries(0, 0, 0), entries(1000, 0, 0));
	assert_int_equal(r.high_bytes, 4000 * WSS_KIB);
}

/* Sums that overflow saturate, and never wrap to a small number. */
TEST(test_hostile_numbers)
{
	static const uint64_t numbers[] = {0,	       1,	   4096,	   1ULL << 43,
					   1ULL << 52, 1ULL << 63, UINT64_MAX - 1, UINT64_MAX};
	const size_t n = sizeof(numbers) / sizeof(numbers[0]);
	struct wss_gauge_reading reading = entries(UINT64_MAX, UINT64_MAX, UINT64_MAX);

	assert_true(wss_gauge_bytes(&reading) == UINT64_MAX);
	reading = entries(1ULL << 52, 0, 0);
	assert_true(wss_gauge_bytes(&reading) == UINT64_MAX);
	reading = entries(0, 1ULL << 43, 0);
	assert_true(wss_gauge_bytes(&reading) == UINT64_MAX);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			struct wss_gauge_reading a = {numbers[i], numbers[j], numbers[n - 1 - i],
						      true,	  numbers[j], true,
						      numbers[i]};
			struct wss_gauge_reading b = {numbers[j], numbers[n - 1 - j], numbers[i],
						      true,	  numbers[i],	      true,
						      numbers[j]};
			struct wss_gauge_result r;

			/* over() checks the order of the bounds. */
			OVER(WSS_GIB, a, b);
			r = OVER(0, a, b);
			assert_true(r.high_bytes >= wss_gauge_bytes(&a));
			assert_true(r.high_bytes >= wss_gauge_bytes(&b));
		}
	}
}

int main(void)
{
	return tests_run();
}
