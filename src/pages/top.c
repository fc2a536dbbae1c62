/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/top.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/stop.h"

bool wss_range_hotter(const struct wss_page_range *a, const struct wss_page_range *b)
{
	return a->value != b->value ? a->value > b->value : wss_range_larger(a, b);
}

bool wss_range_larger(const struct wss_page_range *a, const struct wss_page_range *b)
{
	if (a->pages != b->pages)
		return a->pages > b->pages;
	return a->first != b->first ? a->first < b->first : a->value > b->value;
}

void wss_top_init(struct wss_top *top, size_t limit, wss_range_before before)
{
	*top = (struct wss_top){.before = before, .limit = limit, .random = 1};
	/* Twice the limit, so that the selection has a low amortised cost. */
	top->ranges = wss_xcalloc(limit, 2 * sizeof(*top->ranges));
}

static void swap_ranges(struct wss_page_range *a, struct wss_page_range *b)
{
	struct wss_page_range c = *a;

	*a = *b;
	*b = c;
}

/* Random, so that no order of the input makes the selection slow. */
static size_t random_below(struct wss_top *top, size_t n)
{
	top->random = top->random * 6364136223846793005U + 1442695040888963407U;
	return (size_t)((top->random >> 33) % n);
}

/*
 * Partitions ranges first to end - 1 around ranges[first]: those that precede it move before
 * it. Returns its new position.
 */
static size_t partition_ranges(const struct wss_top *top, size_t first, size_t end)
{
	size_t place = first;

	for (size_t i = first + 1; i < end; i++)
		if (top->before(&top->ranges[i], &top->ranges[first]))
			swap_ranges(&top->ranges[++place], &top->ranges[i]);
	swap_ranges(&top->ranges[first], &top->ranges[place]);
	return place;
}

/* Keeps the first `limit` ranges, with the last of them at the end. */
static void choose_ranges(struct wss_top *top)
{
	size_t first = 0, end = top->n;

	while (end - first > 1) {
		size_t place;

		swap_ranges(&top->ranges[first],
			    &top->ranges[first + random_below(top, end - first)]);
		place = partition_ranges(top, first, end);
		if (place == top->limit - 1)
			break;
		if (place < top->limit - 1)
			first = place + 1;
		else
			end = place;
	}
	top->n = top->limit;
	top->chosen = true;
}

void wss_top_offer(struct wss_top *top, const struct wss_page_range *range)
{
	top->seen++;
	if (top->chosen && !top->before(range, &top->ranges[top->limit - 1]))
		return;
	top->ranges[top->n++] = *range;
	if (top->n == 2 * top->limit)
		choose_ranges(top);
}

static int top_compare_ranges(const void *a, const void *b, void *opaque)
{
	const struct wss_top *top = opaque;

	/* After a stop request nobody needs the order. */
	if (wss_stop_requested())
		return 0;
	return top->before(a, b) ? -1 : top->before(b, a);
}

/* Frees the memory beyond the selection. */
static void shrink_ranges(struct wss_top *top)
{
	void *ranges = realloc(top->ranges, (top->n ? top->n : 1) * sizeof(*top->ranges));

	if (ranges)
		top->ranges = ranges;
}

void wss_top_sort(struct wss_top *top)
{
	if (top->n > top->limit)
		choose_ranges(top);
	shrink_ranges(top);
	qsort_r(top->ranges, top->n, sizeof(*top->ranges), top_compare_ranges, top);
}

void wss_top_free(struct wss_top *top)
{
	free(top->ranges);
	top->ranges = NULL;
	top->n = 0;
}
