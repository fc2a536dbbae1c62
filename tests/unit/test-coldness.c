/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ages of invented guests over invented time, and against a model that keeps the time of each page. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "tests/testing.h"

#include <malloc.h>

#include "../random.h"
#include "base/units.h"
#include "cold/coldness.h"

#define S 1000000000ULL
#define MIN (60 * S)
#define UNIT WSS_COLD_UNIT_PAGES
#define PAGE 4096ULL
/* An eighth of a hole, odd ends: 8 units, then 4 and a half. */
static const struct wss_run parts[] = {{0, 8 * UNIT - 100}, {16 * UNIT + 30, 4 * UNIT}};
#define N_PAGES (12 * UNIT - 100)
#define GFN_END (21 * UNIT)

static struct wss_coldness *coldness;
static struct wss_pageset *touched;

static void begin(uint64_t limit_bytes)
{
	coldness = wss_coldness_new(parts, 2, limit_bytes, NULL);
	touched = wss_pageset_new(GFN_END);
	assert_non_null(coldness);
	assert_non_null(touched);
}

static void end(void)
{
	wss_coldness_free(coldness);
	wss_pageset_free(touched);
}

static void touch(uint64_t first, uint64_t n)
{
	assert_true(wss_pageset_add(touched, first, n) >= 0);
}

static void window_by(uint64_t start_ns, uint64_t end_ns, bool by_unit)
{
	const struct wss_cold_window window = {
		.start_ns = start_ns,
		.end_ns = end_ns,
		.touched = wss_pages_of_set(touched),
		.by_unit = by_unit,
	};

	wss_coldness_add(coldness, &window);
	wss_pageset_remove(touched, 0, GFN_END);
}

static void window(uint64_t start_ns, uint64_t end_ns)
{
	window_by(start_ns, end_ns, false);
}

static struct wss_cold_report report_at(uint64_t now_ns)
{
	struct wss_cold_report report;

	assert_true(wss_coldness_report(coldness, now_ns, &report));
	return report;
}

static void assert_class(const struct wss_cold_report *report, enum wss_cold_age age,
			 uint64_t low_pages, uint64_t high_pages, double observed)
{
	assert_int_equal(report->ages[age].low_bytes, low_pages * PAGE);
	assert_int_equal(report->ages[age].high_bytes, high_pages * PAGE);
	assert_float_equal(report->ages[age].observed, observed, 0.0001);
}

TEST(test_nothing_yet)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	assert_false(wss_coldness_report(coldness, 5 * MIN, &report));
	/* A window that is empty, or ends before the last one, is none. */
	window(5 * MIN, 5 * MIN);
	assert_false(wss_coldness_report(coldness, 5 * MIN, &report));
	end();
}

/* Two hundred pages are touched always, a hundred in the first minute only, one unit never. */
TEST(test_windows_without_gaps)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	for (uint64_t i = 0; i < 15; i++) {
		touch(1000, 200);
		if (i == 0)
			touch(5, 100);
		window((100 + i) * MIN, (101 + i) * MIN);
	}
	report = report_at(115 * MIN);
	assert_int_equal(report.as_of_ns, 115 * MIN);
	assert_int_equal(report.since_ns, 100 * MIN);
	assert_int_equal(report.held_bytes, N_PAGES * PAGE);
	assert_int_equal(report.granularity_bytes, PAGE);
	assert_class(&report, WSS_COLD_2MIN, N_PAGES - 200, N_PAGES - 200, 1);
	assert_class(&report, WSS_COLD_10MIN, N_PAGES - 200, N_PAGES - 200, 1);
	/* A quarter of an hour was observed: nobody knows of the rest. */
	assert_class(&report, WSS_COLD_1H, 0, N_PAGES - 300, 0.25);
	assert_class(&report, WSS_COLD_24H, 0, N_PAGES - 300, 15.0 / 1440);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, N_PAGES - 300, N_PAGES - 300, 1);
	end();
}

TEST(test_a_touch_is_somewhere_in_its_window)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	window(100 * MIN, 110 * MIN);
	touch(0, 10);
	window(110 * MIN, 114 * MIN);
	window(114 * MIN, 115 * MIN);
	/* 1 to 5 minutes ago. */
	report = report_at(115 * MIN);
	assert_class(&report, WSS_COLD_2MIN, N_PAGES - 10, N_PAGES, 1);
	window(115 * MIN, 116 * MIN);
	report = report_at(116 * MIN);
	assert_class(&report, WSS_COLD_2MIN, N_PAGES, N_PAGES, 1);
	assert_class(&report, WSS_COLD_10MIN, N_PAGES - 10, N_PAGES - 10, 1);
	end();
}

TEST(test_what_was_not_observed_is_not_idle)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	window(100 * MIN, 105 * MIN);
	touch(0, 10);
	/* A gap of a minute. */
	window(106 * MIN, 107 * MIN);
	window(107 * MIN, 112 * MIN);
	report = report_at(112 * MIN);
	assert_class(&report, WSS_COLD_2MIN, N_PAGES, N_PAGES, 1);
	assert_class(&report, WSS_COLD_10MIN, 0, N_PAGES - 10, 0.9);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, 0, N_PAGES - 10, 11.0 / 12);
	/* A seam is no gap, but it is not observed either. */
	window(112 * MIN + WSS_COLD_SEAM_NS, 120 * MIN);
	report = report_at(120 * MIN);
	assert_int_equal(report.ages[WSS_COLD_10MIN].low_bytes, N_PAGES * PAGE);
	assert_true(report.ages[WSS_COLD_10MIN].observed < 1);
	assert_true(report.ages[WSS_COLD_10MIN].observed > 0.999);
	window(120 * MIN + WSS_COLD_SEAM_NS + 1, 121 * MIN);
	assert_int_equal(report_at(121 * MIN).ages[WSS_COLD_2MIN].low_bytes, 0);
	end();
}

/* A page of the last window has its mapping until the next one is armed: it may be touched until then. */
TEST(test_a_seam_belongs_to_the_window_before)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	window(90 * MIN, 100 * MIN);
	touch(0, 10);
	window(100 * MIN, 105 * MIN);
	window(105 * MIN + WSS_COLD_SEAM_NS, 115 * MIN);
	report = report_at(115 * MIN);
	assert_int_equal(report.ages[WSS_COLD_10MIN].low_bytes, (N_PAGES - 10) * PAGE);
	assert_int_equal(report.ages[WSS_COLD_10MIN].high_bytes, N_PAGES * PAGE);
	end();
}

/* The next window may be open for as long as the last one was: after that nobody looks. */
/* A window that went on until the next was armed leaves no gap, even if that took long. */
TEST(test_a_long_seam)
{
	struct wss_cold_window next = {.start_ns = 105 * MIN + WSS_COLD_LONG_SEAM_NS,
				       .end_ns = 115 * MIN};
	struct wss_cold_report report;

	for (int follows = 0; follows < 2; follows++) {
		begin(WSS_MIB);
		window(100 * MIN, 105 * MIN);
		next.follows = follows;
		next.touched = wss_pages_of_set(touched);
		wss_coldness_add(coldness, &next);
		report = report_at(115 * MIN);
		assert_int_equal(report.ages[WSS_COLD_10MIN].whole, follows);
		end();
	}
	assert_true(WSS_COLD_LONG_SEAM_NS > WSS_COLD_SEAM_NS);
}

TEST(test_an_overdue_window_is_a_gap)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	window(100 * MIN, 115 * MIN);
	window(115 * MIN, 116 * MIN);
	report = report_at(117 * MIN);
	assert_int_equal(report.as_of_ns, 116 * MIN);
	assert_class(&report, WSS_COLD_10MIN, N_PAGES, N_PAGES, 1);
	report = report_at(118 * MIN);
	assert_int_equal(report.as_of_ns, 118 * MIN);
	assert_class(&report, WSS_COLD_10MIN, 0, N_PAGES, 0.8);
	end();
}

TEST(test_by_units)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	window_by(100 * MIN, 110 * MIN, true);
	/* One page each of a unit, of the short one at the end of a part, and of a hole. */
	touch(UNIT + 7, 1);
	touch(8 * UNIT - 101, 1);
	touch(9 * UNIT, 1);
	window_by(110 * MIN, 111 * MIN, true);
	report = report_at(111 * MIN);
	assert_int_equal(report.granularity_bytes, 2 * WSS_MIB);
	assert_class(&report, WSS_COLD_2MIN, N_PAGES - 2 * UNIT + 100, N_PAGES - 2 * UNIT + 100, 1);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes,
			 (N_PAGES - 2 * UNIT + 100) * PAGE);
	end();
}

/* Units that are split are whole again when their pages agree. */
TEST(test_memory)
{
	uint64_t empty;

	begin(WSS_MIB);
	empty = wss_coldness_bytes(coldness);
	touch(5, 1);
	window(100 * MIN, 101 * MIN);
	assert_int_equal(wss_coldness_bytes(coldness), empty + 1024);
	touch(5, 1);
	window(101 * MIN, 102 * MIN);
	assert_int_equal(wss_coldness_bytes(coldness), empty + 1024);
	touch(0, UNIT);
	window(102 * MIN, 103 * MIN);
	assert_int_equal(wss_coldness_bytes(coldness), empty);
	touch(5, 1);
	window(103 * MIN, 104 * MIN);
	touch(6, UNIT - 6);
	touch(0, 6);
	window(104 * MIN, 105 * MIN);
	assert_int_equal(wss_coldness_bytes(coldness), empty);
	end();
}

/* Memory that is really allocated, ours and malloc()'s own. */
static uint64_t allocated_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* What the ages of a guest take; page by page: each page has another age than the next. */
static uint64_t bytes_of_guest(uint64_t gib, bool by_pages)
{
	const struct wss_run ram = {0, gib << 18};
	uint64_t before = allocated_bytes(), bytes, counted;
	struct wss_coldness *ages = wss_coldness_new(&ram, 1, (gib << 30) / 1000, NULL);
	struct wss_pageset *set = wss_pageset_new(ram.n);
	struct wss_cold_window seen = {.start_ns = MIN, .end_ns = 2 * MIN, .by_unit = !by_pages};

	assert_non_null(ages);
	for (uint64_t page = 0; page < ram.n; page += by_pages ? 2 : 1024)
		assert_true(wss_pageset_add(set, page, 1) >= 0);
	seen.touched = wss_pages_of_set(set);
	wss_coldness_add(ages, &seen);
	wss_pageset_free(set);
	bytes = allocated_bytes() - before;
	counted = wss_coldness_bytes(ages);
	wss_coldness_free(ages);
	/* Sanitizers and valgrind bring a malloc() that does not count. */
	if (bytes < counted || bytes > 2 * counted + 65536)
		return counted;
	/* malloc() adds 16 bytes to each piece, and up to two pages to what it maps. */
	assert_true(bytes - counted <= counted / 32 + 16384);
	return bytes;
}

/* A thousandth of the guest's memory at most, and a few bytes for each 2 MiB. */
TEST(test_memory_of_guests)
{
	assert_true(bytes_of_guest(1, true) < (1ULL << 30) / 1900);
	assert_true(bytes_of_guest(1, false) < (1ULL << 30) / 20000);
	assert_true(bytes_of_guest(8, true) < (8ULL << 30) / 1900);
	/* 20 MiB and the windows. */
	assert_true(bytes_of_guest(4096, false) < 21ULL << 20);
}

/* A guest of so many TiB of which one page in each 2 MiB was touched. */
static struct wss_coldness *huge_guest(uint64_t tib, struct wss_cold_budget *budget)
{
	const struct wss_run ram = {0, tib << 28};
	struct wss_coldness *ages = wss_coldness_new(&ram, 1, (tib << 40) / 1000, budget);

	return ages;
}

static void touch_all(struct wss_coldness *ages, uint64_t tib, uint64_t at_ns)
{
	struct wss_pageset *set = wss_pageset_new(tib << 28);
	struct wss_cold_window seen = {.start_ns = at_ns - 1, .end_ns = at_ns};

	for (uint64_t page = 0; page < tib << 28; page += UNIT)
		assert_true(wss_pageset_add(set, page, 1) >= 0);
	seen.touched = wss_pages_of_set(set);
	wss_coldness_add(ages, &seen);
	wss_pageset_free(set);
}

/* Whatever guests touch, all ages together take no more than their budget; the largest gives way. */
TEST(test_budget_of_all_guests)
{
	struct wss_cold_budget *budget = wss_cold_budget_new(64 * WSS_MIB);
	struct wss_coldness *small, *large, *more[8];
	struct wss_cold_report report;
	uint64_t left;

	large = huge_guest(1, budget);
	small = wss_coldness_new(parts, 2, WSS_MIB, budget);
	assert_non_null(large);
	assert_non_null(small);
	assert_false(wss_cold_budget_is_short(budget));
	touch_all(large, 1, MIN);
	/* Not 512 MiB, and the rest of its memory is known by units. */
	assert_true(wss_cold_budget_used(budget) <= 64 * WSS_MIB);
	assert_int_equal(wss_cold_budget_used(budget),
			 wss_coldness_bytes(large) + wss_coldness_bytes(small));
	assert_true(wss_coldness_report(large, MIN, &report));
	assert_int_equal(report.granularity_bytes, 2 * WSS_MIB);
	assert_true(report.no_memory);
	assert_true(wss_cold_budget_is_short(budget));
	assert_false(wss_cold_budget_is_short(budget));
	/* Those that touch everything on purpose, and one that has no room at all. */
	for (size_t i = 0; i < 8; i++) {
		more[i] = huge_guest(1, budget);
		if (more[i])
			touch_all(more[i], 1, MIN);
		assert_true(wss_cold_budget_used(budget) <= 64 * WSS_MIB);
	}
	assert_null(more[7]);
	assert_true(wss_coldness_split_bytes(large) > 40 * WSS_MIB);
	wss_coldness_coarsen(large);
	assert_int_equal(wss_coldness_split_bytes(large), 0);
	assert_true(wss_cold_budget_used(budget) < 20 * WSS_MIB);
	assert_true(wss_coldness_report(large, MIN, &report));
	assert_true(report.no_memory);
	/* It stays so while its pages do not fit. */
	touch_all(large, 1, 2 * MIN);
	assert_int_equal(wss_coldness_split_bytes(large), 0);
	assert_true(wss_coldness_report(large, 2 * MIN, &report));
	assert_true(report.no_memory);
	assert_int_equal(report.granularity_bytes, 2 * WSS_MIB);
	/* What is small goes on by pages. */
	begin(0);
	touch(5, 1);
	wss_coldness_add(small, &(struct wss_cold_window){.start_ns = 1,
							  .end_ns = MIN,
							  .touched = wss_pages_of_set(touched)});
	assert_true(wss_coldness_report(small, MIN, &report));
	assert_int_equal(report.granularity_bytes, 4096);
	assert_false(report.no_memory);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, (N_PAGES - 1) * PAGE);
	/* And what was coarse, once there is room. */
	wss_coldness_coarsen(small);
	wss_coldness_add(small, &(struct wss_cold_window){.start_ns = MIN + 1,
							  .end_ns = 2 * MIN,
							  .touched = wss_pages_of_set(touched)});
	assert_true(wss_coldness_report(small, 2 * MIN, &report));
	assert_false(report.no_memory);
	end();
	wss_cold_budget_set_limit(budget, WSS_MIB);
	assert_true(wss_cold_budget_is_short(budget));
	left = wss_coldness_bytes(small);
	wss_coldness_free(large);
	for (size_t i = 0; i < 8; i++)
		wss_coldness_free(more[i]);
	assert_int_equal(wss_cold_budget_used(budget), left);
	wss_coldness_free(small);
	assert_int_equal(wss_cold_budget_used(budget), 0);
	wss_cold_budget_unref(budget);
}

/* Of a unit whose pages are partly not held, only the amount is known where it cannot be split. */
TEST(test_taken_without_memory)
{
	struct wss_cold_report report;
	struct wss_pages pages;

	begin(0);
	touch(0, UNIT);
	window(100 * MIN, 103 * MIN);
	touch(0, UNIT - 10);
	touch(2 * UNIT, 2 * UNIT);
	pages = wss_pages_of_set(touched);
	wss_coldness_set_held(coldness, &pages);
	report = report_at(103 * MIN);
	assert_int_equal(report.held_bytes, 3 * UNIT * PAGE);
	/* 10 of them are not held, any of those that were never touched. */
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, 2 * UNIT * PAGE);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].low_bytes, (2 * UNIT - 10) * PAGE);
	end();
}

/* Without memory for single pages the touch of one is the touch of its unit. */
TEST(test_limited_memory)
{
	struct wss_cold_report report;
	uint64_t empty;

	begin(0);
	empty = wss_coldness_bytes(coldness);
	touch(5, 1);
	window(100 * MIN, 103 * MIN);
	assert_int_equal(wss_coldness_bytes(coldness), empty);
	report = report_at(103 * MIN);
	assert_int_equal(report.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(report.ages[WSS_COLD_SINCE_WATCHED].high_bytes, (N_PAGES - UNIT) * PAGE);
	end();
}

static void set_held(uint64_t first, uint64_t n)
{
	struct wss_pageset *held = wss_pageset_new(GFN_END);
	struct wss_pages pages = wss_pages_of_set(held);

	assert_true(wss_pageset_add(held, first, n) >= 0);
	wss_coldness_set_held(coldness, &pages);
	wss_pageset_free(held);
}

TEST(test_what_the_balloon_took_has_no_age)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	touch(0, 10);
	window(100 * MIN, 115 * MIN);
	set_held(0, 1000);
	report = report_at(115 * MIN);
	assert_int_equal(report.held_bytes, 1000 * PAGE);
	assert_int_equal(report.absent_bytes, (N_PAGES - 1000) * PAGE);
	assert_class(&report, WSS_COLD_10MIN, 990, 1000, 1);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, 990, 990, 1);
	/* What is touched is there again, and so is what the host holds again. */
	touch(3000, 5);
	window(115 * MIN, 116 * MIN);
	set_held(0, 3010);
	report = report_at(116 * MIN);
	assert_int_equal(report.held_bytes, 3010 * PAGE);
	assert_class(&report, WSS_COLD_10MIN, 990, 1000, 1);
	/* All of it goes, and comes. */
	set_held(0, 0);
	report = report_at(116 * MIN);
	assert_int_equal(report.held_bytes, 0);
	set_held(0, GFN_END);
	report = report_at(116 * MIN);
	assert_int_equal(report.absent_bytes, 0);
	assert_class(&report, WSS_COLD_2MIN, 0, 0, 1);
	end();
}

TEST(test_what_the_balloon_took_somewhere)
{
	struct wss_cold_report report;

	begin(WSS_MIB);
	touch(0, 10);
	window(100 * MIN, 115 * MIN);
	wss_coldness_set_taken(coldness, 100 * PAGE);
	report = report_at(115 * MIN);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, N_PAGES - 110, N_PAGES - 10, 1);
	wss_coldness_set_taken(coldness, 2 * N_PAGES * PAGE);
	report = report_at(115 * MIN);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, 0, N_PAGES - 10, 1);
	end();
}

TEST(test_impossible_parts)
{
	const struct wss_run overlapping[] = {{0, 10}, {9, 10}}, empty = {5, 0};
	const struct wss_run huge = {0, WSS_PAGESET_MAX_PAGES + 1}, far = {UINT64_MAX, 2};

	assert_null(wss_coldness_new(overlapping, 2, 0, NULL));
	assert_null(wss_coldness_new(&empty, 1, 0, NULL));
	assert_null(wss_coldness_new(&huge, 1, 0, NULL));
	assert_null(wss_coldness_new(&far, 1, 0, NULL));
	assert_null(wss_coldness_new(&empty, 0, 0, NULL));
}

/* --- against a model --- */

static struct {
	/* Of each page: when the window began and ended in which it was last touched; 0: none. */
	uint64_t start_ns[GFN_END], end_ns[GFN_END];
	bool absent[GFN_END], is_ram[GFN_END];
	/* The windows, and whether there was a gap before. */
	uint64_t window_start_ns[4096], window_end_ns[4096];
	size_t n;
} model;

static void model_begin(void)
{
	memset(&model, 0, sizeof(model));
	for (size_t i = 0; i < 2; i++)
		for (uint64_t j = 0; j < parts[i].n; j++)
			model.is_ram[parts[i].first + j] = true;
}

static void model_touch(uint64_t page)
{
	model.absent[page] = false;
	model.start_ns[page] = model.window_start_ns[model.n - 1];
	model.end_ns[page] = model.window_end_ns[model.n - 1];
}

/* Is all of the time from cut_ns on observed, but for seams? */
static bool model_whole(uint64_t cut_ns)
{
	uint64_t at_ns = model.window_end_ns[model.n - 1];

	for (size_t i = model.n; i--;) {
		if (model.window_end_ns[i] + WSS_COLD_SEAM_NS < at_ns)
			return false;
		at_ns = model.window_start_ns[i];
		if (at_ns <= cut_ns)
			return true;
	}
	return false;
}

/*
 * What is exact in the model lies between the bounds, which are no further apart than the resolution of
 * old slots and the length of a window make them.
 */
static void model_check_age(const struct wss_cold_report *report, enum wss_cold_age age,
			    uint64_t age_ns)
{
	uint64_t now_ns = model.window_end_ns[model.n - 1], surely = 0, maybe = 0, widest = 0;
	uint64_t cut_ns = now_ns - age_ns, blur_ns = age_ns / 8 + WSS_COLD_SEAM_NS;
	const struct wss_cold_class *class = &report->ages[age];

	for (uint64_t page = 0; page < GFN_END; page++) {
		if (!model.is_ram[page] || model.absent[page])
			continue;
		surely += model.end_ns[page] <= cut_ns;
		maybe += model.start_ns[page] <= cut_ns;
		widest += model.start_ns[page] <= cut_ns + blur_ns;
	}
	assert_true(class->low_bytes <= class->high_bytes);
	assert_true(class->low_bytes <= surely * PAGE);
	assert_true(class->high_bytes >= maybe * PAGE);
	assert_true(class->high_bytes <= widest * PAGE);
	if (!model_whole(cut_ns))
		assert_int_equal(class->low_bytes, 0);
}

static void model_check(void)
{
	uint64_t now_ns = model.window_end_ns[model.n - 1], absent = 0;
	struct wss_cold_report report = report_at(now_ns);

	for (uint64_t page = 0; page < GFN_END; page++)
		absent += model.is_ram[page] && model.absent[page];
	assert_int_equal(report.absent_bytes, absent * PAGE);
	assert_int_equal(report.held_bytes, (N_PAGES - absent) * PAGE);
	model_check_age(&report, WSS_COLD_2MIN, 2 * MIN);
	model_check_age(&report, WSS_COLD_10MIN, 10 * MIN);
	model_check_age(&report, WSS_COLD_1H, 60 * MIN);
	model_check_age(&report, WSS_COLD_24H, 1440 * MIN);
	assert_true(wss_cold_timeline_valid(wss_coldness_timeline(coldness), N_PAGES, now_ns));
}

static void model_window(uint64_t start_ns, uint64_t end_ns)
{
	bool by_unit = random_below(8) == 0;

	model.window_start_ns[model.n] = start_ns;
	model.window_end_ns[model.n++] = end_ns;
	for (uint64_t i = random_below(6); i--;) {
		uint64_t first = random_below(GFN_END),
			 n = 1 + random_below(random_below(3) ? 40 : 2000);

		if (first + n > GFN_END)
			n = GFN_END - first;
		touch(first, n);
		for (uint64_t page = first; page < first + n; page++) {
			uint64_t unit = page / UNIT * UNIT;

			for (uint64_t other = unit; by_unit && other < unit + UNIT; other++)
				if (model.is_ram[other] && model.is_ram[page])
					model_touch(other);
			if (model.is_ram[page])
				model_touch(page);
		}
	}
	window_by(start_ns, end_ns, by_unit);
}

static void model_balloon(void)
{
	struct wss_pageset *held = wss_pageset_new(GFN_END);
	struct wss_pages pages = wss_pages_of_set(held);

	for (unsigned i = 0; i < 4; i++)
		wss_pageset_add(held, random_below(GFN_END), random_below(3000));
	for (uint64_t page = 0; page < GFN_END; page++) {
		if (!model.is_ram[page])
			continue;
		if (!wss_pageset_has(held, page))
			model.absent[page] = true;
		else if (model.absent[page])
			model_touch(page);
	}
	wss_coldness_set_held(coldness, &pages);
	wss_pageset_free(held);
}

/* A copy by what is stored is the same. */
static void check_copy(void)
{
	struct wss_coldness *copy = wss_coldness_new(parts, 2, WSS_MIB, NULL);
	const struct wss_cold_timeline *a = wss_coldness_timeline(coldness), *b;
	struct wss_cold_run run, again;

	assert_non_null(copy);
	wss_coldness_restore(copy, a);
	for (uint64_t at = 0; wss_coldness_next(coldness, at, &run); at += run.n)
		wss_coldness_restore_run(copy, at, &run);
	b = wss_coldness_timeline(copy);
	assert_int_equal(a->n, b->n);
	assert_int_equal(a->never_pages, b->never_pages);
	assert_int_equal(a->absent_pages, b->absent_pages);
	for (size_t i = 0; i < a->n; i++)
		assert_memory_equal(&a->slots[i], &b->slots[i], sizeof(a->slots[i]));
	for (uint64_t at = 0; wss_coldness_next(coldness, at, &run); at += run.n) {
		assert_true(wss_coldness_next(copy, at, &again));
		assert_int_equal(run.serial, again.serial);
		assert_int_equal(run.n, again.n);
	}
	assert_int_equal(wss_coldness_bytes(coldness), wss_coldness_bytes(copy));
	wss_coldness_free(copy);
}

TEST(test_against_a_model)
{
	uint64_t now_ns = 3000 * MIN;

	begin(WSS_MIB);
	model_begin();
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t start_ns = now_ns;

		if (random_below(300) == 0)
			start_ns += random_below(20 * MIN);
		else if (random_below(2))
			start_ns += random_below(WSS_COLD_SEAM_NS);
		now_ns = start_ns + S + random_below(2 * MIN);
		model_window(start_ns, now_ns);
		if (random_below(100) == 0)
			model_balloon();
		if (random_below(20) == 0)
			model_check();
		if (random_below(500) == 0)
			check_copy();
	}
	assert_true(wss_coldness_timeline(coldness)->n <= WSS_COLD_SLOTS_MAX);
	end();
}

/* Days of short windows: the row of slots suffices, and a page keeps its age. */
TEST(test_days)
{
	struct wss_cold_report report;
	uint64_t now_ns = MIN;

	begin(WSS_MIB);
	touch(0, 1);
	window(now_ns, now_ns + S);
	now_ns += S;
	for (unsigned i = 0; i < 3 * 86400; i++) {
		touch(1, 1);
		window(now_ns, now_ns + S);
		now_ns += S;
	}
	report = report_at(now_ns);
	assert_class(&report, WSS_COLD_24H, N_PAGES - 1, N_PAGES - 1, 1);
	assert_class(&report, WSS_COLD_SINCE_WATCHED, N_PAGES - 2, N_PAGES - 2, 1);
	end();
}

int main(void)
{
	return tests_run();
}
