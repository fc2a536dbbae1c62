/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

#include "../random.h"
#include "pages/pages.h"
#include "pages/pageset.h"
#include "pages/top.h"

/* Three levels of nodes, and a partial last leaf. */
#define PAGES ((1 << 18) + 5 * 4096 + 1000)

/* A set and its expected content, a byte for each page. */
struct pair {
	struct wss_pageset *set;
	uint8_t *truth;
};

static struct pair make(void)
{
	struct pair pair = {wss_pageset_new(PAGES), calloc(PAGES, 1)};

	assert_non_null(pair.set);
	assert_non_null(pair.truth);
	return pair;
}

static void drop(struct pair *pair)
{
	wss_pageset_free(pair->set);
	free(pair->truth);
}

static void change(struct pair *pair, uint64_t first, uint64_t n, uint8_t in)
{
	int64_t changed = 0;

	for (uint64_t i = first; i < first + n && i < PAGES; i++) {
		changed += pair->truth[i] != in;
		pair->truth[i] = in;
	}
	assert_int_equal(in ? wss_pageset_add(pair->set, first, n)
			    : wss_pageset_remove(pair->set, first, n),
			 changed);
}

static void change_at_random(struct pair *pair, unsigned times)
{
	while (times--) {
		uint64_t first = random_below(PAGES + 100);
		uint64_t n = random_below(4) ? random_below(200) : random_below(PAGES);

		change(pair, first, n, (uint8_t)random_below(2));
	}
}

static void check_runs(const struct pair *a, const struct pair *b)
{
	struct wss_run run = {0, 0};
	uint64_t at = 0;

	while (wss_pageset_next(a->set, b ? b->set : NULL, run.first + run.n, &run)) {
		assert_true(run.n > 0 && run.first >= at && run.first + run.n <= PAGES);
		for (; at < run.first; at++)
			assert_false(a->truth[at] && !(b && b->truth[at]));
		for (; at < run.first + run.n; at++)
			assert_true(a->truth[at] && !(b && b->truth[at]));
	}
	for (; at < PAGES; at++)
		assert_false(a->truth[at] && !(b && b->truth[at]));
}

static void check_compare(const struct pair *a, const struct pair *b, const struct pair *all)
{
	struct wss_run run = {random_below(PAGES), random_below(PAGES)};
	struct wss_pageset_overlap truth = {0}, found;

	for (uint64_t i = run.first; i < run.first + run.n && i < PAGES; i++) {
		truth.both += a->truth[i] && b->truth[i];
		truth.only_a += a->truth[i] && !b->truth[i];
		truth.only_b += !a->truth[i] && b->truth[i];
		truth.neither += !a->truth[i] && !b->truth[i] && all->truth[i];
	}
	found = wss_pageset_compare(a->set, b->set, all->set, run);
	assert_memory_equal(&found, &truth, sizeof(truth));
	assert_int_equal(wss_pageset_count_run(a->set, run), truth.both + truth.only_a);
	found = wss_pageset_compare(a->set, b->set, NULL, (struct wss_run){0, PAGES});
	assert_int_equal(wss_pageset_count_without(a->set, b->set), found.only_a);
}

TEST(test_against_bytes)
{
	struct pair a = make(), b = make(), c = make();

	for (unsigned round = 0; round < 40; round++) {
		uint64_t count = 0, page = random_below(PAGES);

		change_at_random(&a, 20);
		change_at_random(&b, 3);
		change_at_random(&c, 3);
		for (uint64_t i = 0; i < PAGES; i++)
			count += a.truth[i];
		assert_int_equal(wss_pageset_count(a.set), count);
		assert_int_equal(wss_pageset_has(a.set, page), a.truth[page]);
		check_runs(&a, NULL);
		check_runs(&a, &b);
		check_compare(&a, &b, &c);
	}
	drop(&a);
	drop(&b);
	drop(&c);
}

TEST(test_copy)
{
	struct pair a = make(), b = make();

	change_at_random(&a, 50);
	change(&a, 0, WSS_PAGESET_CHUNK_PAGES, 1);
	change_at_random(&b, 50);
	assert_int_equal(wss_pageset_copy(b.set, a.set), 0);
	memcpy(b.truth, a.truth, PAGES);
	check_runs(&b, NULL);
	assert_int_equal(wss_pageset_count(b.set), wss_pageset_count(a.set));
	/* A change of one set does not affect the other. */
	change_at_random(&b, 5);
	check_runs(&a, NULL);
	check_runs(&b, &a);
	change_at_random(&a, 5);
	check_runs(&b, NULL);
	change(&b, 0, PAGES, 0);
	check_runs(&a, NULL);
	drop(&a);
	drop(&b);
}

/* Sets share common parts correctly, in any order of changes and merges. */
TEST(test_merge)
{
	struct pair sets[4] = {make(), make(), make(), make()};

	for (unsigned round = 0; round < 200; round++) {
		struct pair *a = &sets[random_below(4)], *b = &sets[random_below(4)];
		struct pair *c = &sets[random_below(4)];

		switch (random_below(4)) {
		case 0:
			change_at_random(a, 3);
			break;
		case 1:
			if (a == b)
				break;
			assert_int_equal(wss_pageset_copy(a->set, b->set), 0);
			memcpy(a->truth, b->truth, PAGES);
			break;
		case 2:
			assert_int_equal(wss_pageset_keep(a->set, b->set), 0);
			for (uint64_t i = 0; i < PAGES; i++)
				a->truth[i] &= b->truth[i];
			break;
		default:
			assert_int_equal(wss_pageset_take_out(a->set, b->set, c->set), 0);
			for (uint64_t i = 0; i < PAGES; i++)
				a->truth[i] &= (uint8_t)(!b->truth[i] || c->truth[i]);
			break;
		}
		check_runs(a, b);
		check_compare(a, b, c);
		assert_int_equal(wss_pageset_count(a->set),
				 wss_pageset_count_run(a->set, (struct wss_run){0, PAGES}));
	}
	for (unsigned i = 0; i < 4; i++)
		drop(&sets[i]);
}

/* A set that exceeds its budget fails, sets the flag, and returns its memory. */
TEST(test_budget)
{
	struct wss_pageset_budget budget = {.limit_bytes = 20000};
	struct wss_pageset *set = wss_pageset_new(PAGES);
	uint64_t count = 0;
	int64_t changed = 0;

	assert_non_null(set);
	wss_pageset_limit(set, &budget);
	assert_int_equal(wss_pageset_add(set, 0, PAGES), PAGES);
	assert_int_equal(wss_pageset_remove(set, 0, PAGES), PAGES);
	for (uint64_t page = 0; page < PAGES && changed >= 0; page += 128) {
		changed = wss_pageset_add(set, page, 1);
		count += changed > 0;
	}
	assert_true(changed < 0 && budget.exceeded);
	assert_true(count > 300 && budget.used_bytes <= budget.limit_bytes);
	assert_int_equal(wss_pageset_count(set), count);
	assert_int_equal(wss_pageset_count_run(set, (struct wss_run){0, PAGES}), count);
	wss_pageset_free(set);
	wss_pageset_budget_clear(&budget);
	assert_int_equal(budget.used_bytes, 0);
}

/* Operations count their steps, and changes fail once there were too many. */
TEST(test_steps)
{
	struct wss_pageset_budget budget = {.limit_bytes = 1 << 20};
	struct wss_pageset *set = wss_pageset_new(PAGES);
	uint64_t count = 0, start;
	int64_t changed = 0;

	assert_non_null(set);
	wss_pageset_limit(set, &budget);
	start = wss_pageset_steps();
	assert_false(wss_pageset_steps_exceeded(NULL) || wss_pageset_steps_exceeded(&budget));
	budget.last_step = start + 1000;
	for (uint64_t page = 0; page < PAGES && changed >= 0; page += 128) {
		changed = wss_pageset_add(set, page, 1);
		count += changed > 0;
	}
	assert_true(changed < 0 && wss_pageset_steps_exceeded(&budget) && !budget.exceeded);
	assert_in_range(wss_pageset_steps() - start, 1000, 1100);
	assert_int_equal(wss_pageset_count(set), count);
	assert_int_equal(wss_pageset_count_run(set, (struct wss_run){0, PAGES}), count);
	budget.last_step = 0;
	assert_int_equal(wss_pageset_add(set, PAGES - 1, 1), 1);
	wss_pageset_free(set);
	wss_pageset_budget_clear(&budget);
	assert_int_equal(budget.used_bytes, 0);
}

/* Adding or removing 16 TiB costs as much as a page: 100,000 of these take no time. */
TEST(test_vast_runs)
{
	struct wss_pageset *set = wss_pageset_new(WSS_PAGESET_MAX_PAGES);
	struct wss_pageset *taken = wss_pageset_new(WSS_PAGESET_MAX_PAGES);
	const uint64_t n = WSS_PAGESET_MAX_PAGES - 100;

	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t first = 1 + i % 90;

		assert_int_equal(wss_pageset_add(set, first, n), n);
		assert_int_equal(wss_pageset_add(taken, 50, n), n);
		assert_int_equal(wss_pageset_take_out(set, taken, set), 0);
		assert_int_equal(wss_pageset_keep(taken, set), 0);
		assert_int_equal(wss_pageset_count(set), n);
		assert_int_equal(wss_pageset_count(taken),
				 first > 50 ? n - (first - 50) : n - (50 - first));
		assert_int_equal(wss_pageset_remove(set, 0, WSS_PAGESET_MAX_PAGES), n);
		assert_true(wss_pageset_remove(taken, 0, WSS_PAGESET_MAX_PAGES) > 0);
	}
	wss_pageset_free(set);
	wss_pageset_free(taken);
}

TEST(test_limits)
{
	struct wss_pageset *set = wss_pageset_new(WSS_PAGESET_MAX_PAGES);
	struct wss_run run;

	assert_null(wss_pageset_new(WSS_PAGESET_MAX_PAGES + 1));
	assert_non_null(set);
	assert_false(wss_pageset_next(set, NULL, 0, &run));
	assert_true(wss_pageset_add(set, 0, UINT64_MAX) == (int64_t)WSS_PAGESET_MAX_PAGES);
	assert_int_equal(wss_pageset_remove(set, WSS_PAGESET_MAX_PAGES - 1, 5), 1);
	assert_int_equal(wss_pageset_add(set, UINT64_MAX, UINT64_MAX), 0);
	assert_true(wss_pageset_next(set, NULL, 7, &run));
	assert_true(run.first == 7 && run.n == WSS_PAGESET_MAX_PAGES - 8);
	wss_pageset_free(set);
	wss_pageset_free(NULL);
}

TEST(test_top)
{
	struct wss_page_range all[500];
	struct wss_top top;

	wss_top_init(&top, 20, wss_range_hotter);
	for (size_t i = 0; i < 500; i++) {
		all[i] = (struct wss_page_range){i, 1, 1 + random_below(5), random_below(5)};
		wss_top_offer(&top, &all[i]);
	}
	wss_top_sort(&top);
	assert_int_equal(top.n, 20);
	assert_int_equal(top.seen, 500);
	for (size_t i = 0; i < top.n; i++) {
		size_t before = 0;

		for (size_t k = 0; k < 500; k++)
			before += wss_range_hotter(&all[k], &top.ranges[i]);
		assert_int_equal(before, i);
	}
	wss_top_free(&top);
}

/* A chunk that runs cover in part is noted once. */
TEST(test_parts)
{
	static struct wss_pageset_parts parts;
	const uint64_t chunk = WSS_PAGESET_CHUNK_PAGES;
	const struct {
		struct wss_run run;
		uint64_t n;
	} steps[] = {
		{{0, 0}, 0},
		{{5, 0}, 0},
		{{0, chunk}, 0},
		{{3 * chunk, 7 * chunk}, 0},
		{{0, WSS_PAGESET_MAX_PAGES}, 0},
		{{0, 1}, 1},
		{{5, 1}, 1},
		{{chunk - 1, 1}, 1},
		{{chunk + 1, chunk - 1}, 2},
		{{2 * chunk, 2 * chunk + 1}, 3},
		{{4 * chunk + 1, 2 * chunk}, 4},
		{{7 * chunk - 1, 2}, 5},
		{{WSS_PAGESET_MAX_PAGES - 1, 1}, 6},
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_int_equal(wss_pageset_note_parts(&parts, steps[i].run), steps[i].n);
}

/*
 * Asserts that a view has the expected pages from first to end, in runs that do not touch each
 * other.
 */
static void assert_view(const struct wss_pages *pages, const uint8_t *truth, uint64_t first,
			uint64_t end)
{
	struct wss_run run = {first, 0};
	uint64_t at = first;

	while (wss_pages_next(pages, run.first + run.n, end, &run)) {
		assert_true(run.n > 0 && run.first + run.n <= end);
		assert_true(run.first > at || at == first);
		for (; at < run.first; at++)
			assert_int_equal(truth[at], 0);
		for (; at < run.first + run.n; at++)
			assert_int_equal(truth[at], 1);
	}
	for (; at < end && at < PAGES; at++)
		assert_int_equal(truth[at], 0);
}

/* A method's pages are the same whether it keeps them as a bitmap or as a set. */
TEST(test_views)
{
	uint64_t *words = calloc(PAGES / 64 + 1, 8);
	struct pair pair = make();
	struct wss_pages bits = wss_pages_of_bits(words, PAGES / 64 + 1);
	struct wss_pages set = wss_pages_of_set(pair.set);
	struct wss_pages nothing = {.known = false};
	struct wss_run run;

	assert_non_null(words);
	change_at_random(&pair, 200);
	change(&pair, 127, 1, 1);
	change(&pair, 128, 1, 0);
	for (uint64_t i = 0; i < PAGES; i++)
		words[i / 64] |= (uint64_t)pair.truth[i] << (i % 64);
	assert_view(&bits, pair.truth, 0, UINT64_MAX);
	assert_view(&set, pair.truth, 0, UINT64_MAX);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t first = random_below(PAGES), end = random_below(PAGES);

		assert_view(&bits, pair.truth, first, end);
		assert_view(&set, pair.truth, first, end);
	}
	assert_false(wss_pages_next(&bits, 128, 128, &run));
	assert_false(wss_pages_next(&set, 128, 128, &run));
	assert_false(wss_pages_next(&nothing, 0, UINT64_MAX, &run));
	drop(&pair);
	free(words);
}

int main(void)
{
	return tests_run();
}
