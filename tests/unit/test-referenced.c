/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include "base/units.h"
#include "measure/referenced.h"

#define HUGE (2 * WSS_MIB)

static const struct wss_page_sizes usual = {4096, HUGE}, large = {64 * WSS_KIB, 512 * WSS_MIB};
static const struct wss_page_sizes *pages = &usual;

static struct wss_referenced_result of(uint64_t referenced, uint64_t huge)
{
	struct wss_referenced_result result;

	wss_referenced_result(referenced, huge, pages, &result);
	assert_int_equal(result.wss_bytes, result.high_bytes);
	assert_int_equal(result.high_bytes, referenced);
	assert_true(result.low_bytes <= result.high_bytes);
	return result;
}

TEST(test_small_pages)
{
	struct wss_referenced_result r = of(64 * WSS_MIB, 0);

	assert_int_equal(r.low_bytes, 64 * WSS_MIB);
	assert_int_equal(r.granularity_bytes, 4096);
	assert_int_equal(of(0, 0).low_bytes, 0);
}

TEST(test_all_huge)
{
	struct wss_referenced_result r = of(64 * WSS_MIB, 512 * WSS_MIB);

	assert_int_equal(r.granularity_bytes, HUGE);
	/* 32 huge pages: a touch of 4 KiB in each at least. */
	assert_int_equal(r.low_bytes, 32 * 4096);
}

TEST(test_mixed)
{
	/* At most 8 MiB of the 10 can be in huge pages. */
	struct wss_referenced_result r = of(10 * WSS_MIB, 8 * WSS_MIB);

	assert_int_equal(r.low_bytes, 2 * WSS_MIB + 4 * 4096);
	/*
	 * No whole huge page can be referenced: the figure is exact, although the granularity
	 * shows that huge pages exist.
	 */
	r = of(WSS_MIB, 8 * WSS_MIB);
	assert_int_equal(r.low_bytes, WSS_MIB);
	assert_int_equal(r.granularity_bytes, HUGE);
	/* 1 MiB more than whole huge pages lies outside them. */
	r = of(5 * WSS_MIB, 8 * WSS_MIB);
	assert_int_equal(r.low_bytes, WSS_MIB + 2 * 4096);
}

TEST(test_extremes)
{
	of(UINT64_MAX, UINT64_MAX);
	of(UINT64_MAX, 0);
	of(0, UINT64_MAX);
	if (pages == &usual)
		assert_true(of(UINT64_MAX, 1).low_bytes == UINT64_MAX);
}

/* A host of 64 KiB pages: one touch of its guest, whose pages have 4 KiB, counts as 64 KiB. */
TEST(test_large_pages)
{
	struct wss_referenced_result r;

	pages = &large;
	r = of(64 * WSS_MIB, 0);
	assert_int_equal(r.granularity_bytes, 64 * WSS_KIB);
	assert_int_equal(r.low_bytes, 4 * WSS_MIB);
	r = of(1088 * WSS_MIB, 1024 * WSS_MIB);
	assert_int_equal(r.granularity_bytes, 512 * WSS_MIB);
	assert_int_equal(r.low_bytes, 4 * WSS_MIB + 2 * 4096);
	test_extremes(NULL);
	pages = &usual;
}

int main(void)
{
	return tests_run();
}
