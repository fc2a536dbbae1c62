/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "../random.h"
#include "pages/heat.h"
#include "pages/moment.h"
#include "pages/refset.h"

#define SECOND 1000000000ULL
#define PAGES 30000
#define WINDOWS 40

/* An invented guest: the pages that it touched in each second, unless that is a gap. */
struct script {
	bool gap[WINDOWS];
	uint8_t touched[WINDOWS][PAGES];
};

static struct script *script;
static struct wss_recording recording;
static int setup(void **state)
{
	script = calloc(1, sizeof(*script));
	recording = (struct wss_recording){
		.interval_ns = SECOND,
		.n_regions = 2,
		.regions = {{.length = 10000 << 12, .kind = WSS_REGION_LOW},
			    {.start = 1ULL << 32,
			     .length = 20000 << 12,
			     .kind = WSS_REGION_HIGH,
			     .node = 1}},
	};
	return script ? 0 : -1;
}

static int teardown(void **state)
{
	free(script);
	return 0;
}

static void touch(unsigned from, unsigned to, uint64_t first, uint64_t n)
{
	for (unsigned w = from; w < to; w++)
		memset(script->touched[w] + first, 1, n);
}

static void random_script(void)
{
	for (unsigned w = 0; w < WINDOWS; w++) {
		script->gap[w] = w && random_below(6) == 0;
		for (unsigned k = 0; k < 20; k++) {
			uint64_t first = random_below(PAGES), n = 1 + random_below(500);

			memset(script->touched[w] + first, 1,
			       n < PAGES - first ? n : PAGES - first);
		}
	}
}

struct replayer {
	int (*begin)(void *, const struct wss_interval *, const struct wss_recording_sets *,
		     struct wss_error *);
	int (*change)(void *, enum wss_change, struct wss_run, struct wss_error *);
	int (*end)(void *, const struct wss_interval *, const struct wss_recording_sets *,
		   struct wss_error *);
	int (*last)(void *, const struct wss_recording_sets *, struct wss_error *);
};

/* Replays the guest the way a file is replayed: only changes, in runs, with the resulting sets. */
static void replay(const struct replayer *to, void *opaque)
{
	static const uint8_t nothing[PAGES];
	struct wss_pageset *touched = wss_pageset_new(PAGES), *none = wss_pageset_new(PAGES);
	const struct wss_recording_sets sets = {touched, none, none};
	const uint8_t *before = nothing;

	for (unsigned w = 0; w < WINDOWS; w++) {
		const struct wss_interval interval = {
			.gap = script->gap[w], .start_ns = w * SECOND, .end_ns = (w + 1) * SECOND};

		if (to->begin)
			assert_int_equal(to->begin(opaque, &interval, &sets, NULL), 0);
		for (uint64_t i = 0; i < PAGES && !interval.gap;) {
			uint64_t first = i;
			int change = script->touched[w][i] - before[i];

			while (i < PAGES && script->touched[w][i] - before[i] == change)
				i++;
			if (!change)
				continue;
			if (change > 0)
				wss_pageset_add(touched, first, i - first);
			else
				wss_pageset_remove(touched, first, i - first);
			to->change(opaque, change > 0 ? WSS_CHANGE_TOUCHED : WSS_CHANGE_UNTOUCHED,
				   (struct wss_run){first, i - first}, NULL);
		}
		if (!interval.gap)
			before = script->touched[w];
		assert_int_equal(to->end(opaque, &interval, &sets, NULL), 0);
	}
	if (to->last)
		assert_int_equal(to->last(opaque, &sets, NULL), 0);
	wss_pageset_free(touched);
	wss_pageset_free(none);
}

static const struct replayer to_refset = {wss_refset_begin, wss_refset_change, wss_refset_end,
					  wss_refset_last};

/* Finds the outstanding set at a moment, as the manual defines it. */
static unsigned window_at(uint64_t ns, bool is_end)
{
	int w = (int)(ns / SECOND);

	if (is_end && ns % SECOND == 0)
		w--;
	if (w >= WINDOWS)
		w = WINDOWS - 1;
	while (w > 0 && script->gap[w])
		w--;
	return (unsigned)w;
}

static void check_viewport(uint64_t from, uint64_t to)
{
	unsigned a = window_at(from, false), b = window_at(to, true);
	uint64_t outstanding[WINDOWS] = {0};
	struct wss_refset_classes truth = {0};
	const struct wss_refset_result *result;
	struct wss_refset *refset;

	for (uint64_t i = 0; i < PAGES; i++) {
		bool ever = false, always = true, at_a = script->touched[a][i],
		     at_b = script->touched[b][i];

		for (unsigned w = a; w <= b; w++) {
			if (script->gap[w])
				continue;
			ever = ever || script->touched[w][i];
			outstanding[w] += script->touched[w][i];
			always = always && script->touched[w][i];
		}
		truth.persistent += at_a && at_b;
		truth.unbroken += always;
		truth.gained += at_b && !at_a;
		truth.lost += at_a && !at_b;
		truth.transient += ever && !at_a && !at_b;
		for (unsigned w = 0; w < a; w++)
			ever = ever || (!script->gap[w] && script->touched[w][i]);
		truth.reference += ever;
	}
	for (unsigned w = a; w <= b; w++)
		if (outstanding[w] > truth.peak)
			truth.peak = outstanding[w];
	assert_int_equal(wss_refset_new(&recording, from, to, &refset, NULL), 0);
	replay(&to_refset, refset);
	if (wss_refset_finish(refset, WINDOWS * SECOND, &result, NULL) == 0) {
		assert_int_equal(result->all.persistent, truth.persistent);
		assert_int_equal(result->all.unbroken, truth.unbroken);
		assert_int_equal(result->all.gained, truth.gained);
		assert_int_equal(result->all.lost, truth.lost);
		assert_int_equal(result->all.transient, truth.transient);
		assert_int_equal(result->all.peak, truth.peak);
		assert_int_equal(result->all.reference, truth.reference);
		assert_int_equal(result->regions[0].reference + result->regions[1].reference,
				 truth.reference);
		assert_int_equal(result->regions[0].persistent + result->regions[1].persistent,
				 truth.persistent);
		assert_int_equal(result->regions[0].transient + result->regions[1].transient,
				 truth.transient);
	} else {
		/* Only if all of it is a gap. */
		for (uint64_t w = from / SECOND; w < (to + SECOND - 1) / SECOND && w < WINDOWS; w++)
			assert_true(script->gap[w]);
	}
	wss_refset_free(refset);
}

TEST(test_classes)
{
	random_script();
	check_viewport(0, UINT64_MAX);
	for (unsigned round = 0; round < 60; round++) {
		uint64_t from = random_below(2 * WINDOWS - 1) * SECOND / 2;
		uint64_t to = from + (1 + random_below(2 * WINDOWS)) * SECOND / 2;

		check_viewport(from, to);
	}
}

TEST(test_graph)
{
	const struct wss_refset_result *result;
	struct wss_refset *refset;
	uint8_t *ever = calloc(PAGES, 1);

	random_script();
	assert_int_equal(wss_refset_new(&recording, 0, UINT64_MAX, &refset, NULL), 0);
	replay(&to_refset, refset);
	assert_int_equal(wss_refset_finish(refset, WINDOWS * SECOND, &result, NULL), 0);
	assert_int_equal(result->n_points, WINDOWS);
	for (unsigned w = 0; w < WINDOWS; w++) {
		const struct wss_refset_point *point = &result->points[w];
		uint64_t touched = 0, first = 0, reference = 0;

		for (uint64_t i = 0; i < PAGES; i++) {
			touched += script->touched[w][i];
			first += script->touched[w][i] && !ever[i];
			ever[i] |= script->touched[w][i] && !script->gap[w];
			reference += ever[i];
		}
		assert_int_equal(point->gap, script->gap[w]);
		assert_int_equal(point->reference, reference);
		if (point->gap)
			continue;
		assert_int_equal(point->touched, touched);
		assert_int_equal(point->first, first);
	}
	wss_refset_free(refset);
	free(ever);
}

/* 16 MiB, 64 MiB with a mixed window between, 24 MiB; pages of the guest's kernel come and go. */
TEST(test_phases)
{
	const struct wss_refset_result *result;
	struct wss_refset *refset;

	touch(0, 15, 100, 4096);
	touch(14, 30, 100, 16384);
	touch(30, WINDOWS, 100, 6144);
	for (unsigned w = 0; w < WINDOWS; w++)
		touch(w, w + 1, 25000, 10 + random_below(50));
	assert_int_equal(wss_refset_new(&recording, 0, UINT64_MAX, &refset, NULL), 0);
	replay(&to_refset, refset);
	assert_int_equal(wss_refset_finish(refset, WINDOWS * SECOND, &result, NULL), 0);
	assert_int_equal(result->n_phases, 3);
	assert_int_equal(result->phases[0].end_ns, 14 * SECOND);
	assert_int_equal(result->phases[1].start_ns, 14 * SECOND);
	assert_int_equal(result->phases[2].start_ns, 30 * SECOND);
	assert_in_range(result->phases[0].pages, 4106, 4156);
	assert_in_range(result->phases[1].pages, 16394, 16444);
	assert_true(result->steady.known);
	assert_in_range(result->steady.value, 6154, 6204);
	assert_in_range(result->all.peak, 16394, 16444);
	assert_in_range(result->peak_ns, 14 * SECOND, 29 * SECOND);
	wss_refset_free(refset);
	/* It is not level at the end, so there is no steady state. */
	touch(WINDOWS - 1, WINDOWS, 0, 20000);
	touch(WINDOWS - 2, WINDOWS, 0, 12000);
	assert_int_equal(wss_refset_new(&recording, 0, UINT64_MAX, &refset, NULL), 0);
	replay(&to_refset, refset);
	assert_int_equal(wss_refset_finish(refset, WINDOWS * SECOND, &result, NULL), 0);
	assert_false(result->steady.known);
	wss_refset_free(refset);
}

static uint64_t windows_of(uint64_t page)
{
	uint64_t n = 0;

	for (unsigned w = 0; w < WINDOWS; w++)
		n += script->touched[w][page] && !script->gap[w];
	return n;
}

TEST(test_hot_ranges)
{
	const struct replayer to_heat = {.change = wss_heat_change, .end = wss_heat_end};
	struct wss_page_range carry = {0};
	struct wss_heat heat;
	bool again = false;
	uint64_t windows = 0, pages = 0, last = UINT64_MAX;
	struct wss_top top;

	random_script();
	for (unsigned w = 0; w < WINDOWS; w++)
		windows += !script->gap[w];
	wss_heat_init(&heat, PAGES, 0);
	wss_top_init(&top, PAGES, wss_range_hotter);
	/* The same recording twice: twice as often. */
	for (int i = 0; i < 2; i++) {
		wss_heat_recording(&heat, windows);
		replay(&to_heat, &heat);
	}
	while (wss_heat_slice(&heat, &again)) {
		assert_false(again);
		wss_heat_ranges(&heat, &recording, &carry, &top);
	}
	wss_heat_flush(&carry, &top);
	wss_top_sort(&top);
	for (size_t i = 0; i < top.n; i++) {
		assert_true(top.ranges[i].value <= last && top.ranges[i].value);
		last = top.ranges[i].value;
		for (uint64_t k = 0; k < top.ranges[i].n; k++)
			assert_int_equal(2 * windows_of(top.ranges[i].first + k), last);
		pages += top.ranges[i].n;
		/* No range crosses the hole in the address space. */
		assert_true(top.ranges[i].first >= 10000 ||
			    top.ranges[i].first + top.ranges[i].n <= 10000);
	}
	for (uint64_t i = 0; i < PAGES; i++)
		pages -= windows_of(i) > 0;
	assert_int_equal(pages, 0);
	wss_top_free(&top);
	wss_heat_free(&heat);
}

TEST(test_heatmap)
{
	const struct replayer to_map = {.change = wss_heatmap_change, .end = wss_heatmap_end};
	struct wss_heatmap *map = wss_heatmap_new(&recording, WINDOWS * SECOND);

	random_script();
	replay(&to_map, map);
	wss_heatmap_finish(map);
	assert_int_equal(map->n_columns, WINDOWS);
	assert_in_range(map->n_rows, 50, WSS_HEATMAP_ROWS + 2);
	for (size_t r = 0; r < map->n_rows; r++) {
		assert_int_equal(map->rows[r].hole_before, map->rows[r].first == 10000);
		for (size_t c = 0; c < map->n_columns; c++) {
			double share = wss_heatmap_cell(map, r, c);
			uint64_t n = 0;

			for (uint64_t i = 0; i < map->rows[r].n; i++)
				n += script->touched[c][map->rows[r].first + i];
			if (script->gap[c])
				assert_true(share < 0);
			else
				assert_true((uint64_t)(share * (double)map->rows[r].n + .5) == n);
		}
	}
	wss_heatmap_free(map);
}

static void check_moment(uint64_t at, const uint8_t *truth)
{
	const struct replayer to_moment = {wss_moment_begin, wss_moment_change, wss_moment_end,
					   wss_moment_last};
	struct wss_moment moment;

	assert_int_equal(wss_moment_init(&moment, &recording, at, NULL), 0);
	replay(&to_moment, &moment);
	for (uint64_t i = 0; i < PAGES; i++)
		assert_int_equal(wss_pageset_has(moment.pages, i), truth[i]);
	wss_moment_free(&moment);
}

TEST(test_moments)
{
	uint8_t *ever = calloc(PAGES, 1);

	random_script();
	for (unsigned w = 0; w < WINDOWS; w++) {
		check_moment(w * SECOND, script->touched[window_at(w * SECOND, false)]);
		check_moment(w * SECOND + SECOND / 2,
			     script->touched[window_at(w * SECOND, false)]);
		for (uint64_t i = 0; i < PAGES && !script->gap[w]; i++)
			ever[i] |= script->touched[w][i];
	}
	check_moment(WSS_MOMENT_ALL, ever);
	free(ever);
}

/* A guest and a balloon, by page and window. */
struct ballooning {
	bool touched[WINDOWS][64];
	bool ballooned[WINDOWS][64];
	bool descending; /* the changes of a window come from the last page to the first */
	bool wavers;	 /* the balloon takes pages twice in a window */
};

static void feed(const struct ballooning *guest, const struct replayer *to, void *opaque,
		 struct wss_pageset *set, const bool *row, enum wss_change comes)
{
	for (uint64_t k = 0; k < 64; k++) {
		uint64_t i = guest->descending ? 63 - k : k;
		bool in = wss_pageset_has(set, i);

		if (row[i] && !in)
			wss_pageset_add(set, i, 1);
		else if (!row[i] && in)
			wss_pageset_remove(set, i, 1);
		else
			continue;
		assert_int_equal(to->change(opaque, in ? (enum wss_change)(comes + 1) : comes,
					    (struct wss_run){i, 1}, NULL),
				 0);
	}
}

/* The balloon returns every third of its pages, and takes them again, alone or with others. */
static void waver(const struct replayer *to, void *opaque, const bool *row, const bool *before)
{
	for (uint64_t i = 0; i + 1 < 64; i += 3) {
		struct wss_run run = {i, row[i + 1] && !before[i + 1] ? 2 : 1};

		if (!row[i] || before[i])
			continue;
		assert_int_equal(to->change(opaque, WSS_CHANGE_RETURNED, run, NULL), 0);
		assert_int_equal(to->change(opaque, WSS_CHANGE_BALLOONED, run, NULL), 0);
	}
}

static void replay_ballooning(const struct ballooning *guest, const struct replayer *to,
			      void *opaque)
{
	struct wss_pageset *touched = wss_pageset_new(PAGES), *ballooned = wss_pageset_new(PAGES);
	const struct wss_recording_sets sets = {touched, touched, ballooned};

	for (unsigned w = 0; w < WINDOWS; w++) {
		/* In between there are gaps, which change nothing. */
		const struct wss_interval window = {.start_ns = 2 * w * SECOND,
						    .end_ns = (2 * w + 1) * SECOND};
		const struct wss_interval gap = {
			.gap = true, .start_ns = window.end_ns, .end_ns = window.end_ns + SECOND};

		assert_int_equal(to->begin(opaque, &window, &sets, NULL), 0);
		feed(guest, to, opaque, touched, guest->touched[w], WSS_CHANGE_TOUCHED);
		feed(guest, to, opaque, ballooned, guest->ballooned[w], WSS_CHANGE_BALLOONED);
		if (guest->wavers && w)
			waver(to, opaque, guest->ballooned[w], guest->ballooned[w - 1]);
		assert_int_equal(to->end(opaque, &window, &sets, NULL), 0);
		assert_int_equal(to->begin(opaque, &gap, &sets, NULL), 0);
		assert_int_equal(to->end(opaque, &gap, &sets, NULL), 0);
	}
	assert_int_equal(to->last(opaque, &sets, NULL), 0);
	wss_pageset_free(touched);
	wss_pageset_free(ballooned);
}

/*
 * Checks each page against the definition in the manual: when it was last touched, and when
 * last taken.
 */
static void check_ballooning(const struct ballooning *guest, const struct wss_refset_result *result,
			     const struct wss_pageset *at_end)
{
	int touched[64], taken[64];

	memset(touched, -1, sizeof(touched));
	memset(taken, -1, sizeof(taken));
	for (int w = 0; w < WINDOWS; w++) {
		const struct wss_refset_point *point = &result->points[2 * w];
		uint64_t first = 0, reference = 0;

		for (unsigned i = 0; i < 64; i++) {
			bool member;

			if (guest->touched[w][i]) {
				first += touched[i] <= taken[i];
				touched[i] = w;
			}
			if (guest->ballooned[w][i] && (w == 0 || !guest->ballooned[w - 1][i]))
				taken[i] = w;
			member = touched[i] == w || touched[i] > taken[i];
			reference += member;
			if (w == WINDOWS - 1)
				assert_int_equal(wss_pageset_has(at_end, i), member);
		}
		assert_true(point->reference >= point->touched);
		assert_int_equal(point->reference, reference);
		assert_int_equal(point->first, first);
		assert_int_equal(point[1].reference, reference);
	}
}

TEST(test_balloon)
{
	static const struct replayer to_moment = {wss_moment_begin, wss_moment_change,
						  wss_moment_end, wss_moment_last};
	static struct ballooning guest;

	for (unsigned round = 0; round < 200; round++) {
		const struct wss_refset_result *result;
		struct wss_refset *refset;
		struct wss_moment moment;

		guest.descending = round % 2;
		guest.wavers = round % 4 / 2;
		for (unsigned w = 0; w < WINDOWS; w++) {
			/* Now and then the balloon takes and returns everything. */
			unsigned all = random_below(8);

			for (unsigned i = 0; i < 64; i++) {
				/* Some pages are touched most of the time, some rarely. */
				guest.touched[w][i] = random_below(64) < i;
				guest.ballooned[w][i] =
					all ? all > 1 && random_below(4) == 0 : true;
			}
		}
		assert_int_equal(wss_refset_new(&recording, 0, UINT64_MAX, &refset, NULL), 0);
		assert_int_equal(wss_moment_init(&moment, &recording, WSS_MOMENT_ALL, NULL), 0);
		replay_ballooning(&guest, &to_refset, refset);
		replay_ballooning(&guest, &to_moment, &moment);
		assert_int_equal(wss_refset_finish(refset, 2 * WINDOWS * SECOND, &result, NULL), 0);
		check_ballooning(&guest, result, moment.pages);
		wss_refset_free(refset);
		wss_moment_free(&moment);
	}
}

/* More runs than a list may have: every third page of a guest that touches every other one. */
TEST(test_balloon_many_runs)
{
	const uint64_t runs = WSS_RUN_LIST_MAX + 100, pages = 6 * runs;
	struct wss_pageset *touched = wss_pageset_new(pages);
	struct wss_reference reference;

	assert_non_null(touched);
	assert_int_equal(wss_reference_init(&reference, pages), 0);
	assert_int_equal(wss_reference_touched(&reference, (struct wss_run){0, pages}), pages);
	for (uint64_t i = 0; i < pages; i += 2)
		wss_pageset_add(touched, i, 1);
	for (uint64_t i = 0; i < pages; i += 3)
		assert_int_equal(wss_reference_ballooned(&reference, (struct wss_run){i, 1}), 0);
	assert_true(wss_reference_loses(&reference));
	/* Of every six pages one was taken and not touched, and one was taken and touched. */
	assert_int_equal(wss_reference_end(&reference, touched), 0);
	assert_int_equal(wss_pageset_count(reference.pages), pages - runs);
	assert_false(wss_pageset_has(reference.pages, 3));
	wss_pageset_remove(touched, 0, 6 * 100);
	assert_int_equal(wss_reference_end(&reference, touched), runs - 100);
	assert_int_equal(wss_pageset_count(reference.pages), pages - runs - 100);
	assert_false(wss_reference_loses(&reference));
	wss_reference_free(&reference);
	wss_pageset_free(touched);
}

int main(void)
{
	return tests_run_each(setup, teardown);
}
