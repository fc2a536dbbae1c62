/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/top.h"

#include <stdlib.h>

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

int wss_top_init(struct wss_top *top, size_t limit, wss_range_before before)
{
	*top = (struct wss_top){ .before = before, .limit = limit };
	top->ranges = calloc(limit, sizeof(*top->ranges));
	return top->ranges ? 0 : -1;
}

static void swap(struct wss_page_range *a, struct wss_page_range *b)
{
	struct wss_page_range c = *a;

	*a = *b;
	*b = c;
}

/* A heap with the one that is to go first at its root. */
static void sink(struct wss_top *top, size_t i)
{
	for (;;) {
		size_t last = i;

		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < top->n; child++)
			if (top->before(&top->ranges[last], &top->ranges[child]))
				last = child;
		if (last == i)
			return;
		swap(&top->ranges[i], &top->ranges[last]);
		i = last;
	}
}

static void rise(struct wss_top *top, size_t i)
{
	while (i && top->before(&top->ranges[(i - 1) / 2], &top->ranges[i])) {
		swap(&top->ranges[i], &top->ranges[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
}

void wss_top_offer(struct wss_top *top, const struct wss_page_range *range)
{
	top->seen++;
	if (top->n < top->limit) {
		top->ranges[top->n] = *range;
		rise(top, top->n++);
	} else if (top->before(range, &top->ranges[0])) {
		top->ranges[0] = *range;
		sink(top, 0);
	}
}

void wss_top_sort(struct wss_top *top)
{
	size_t n = top->n;

	while (top->n > 1) {
		swap(&top->ranges[0], &top->ranges[--top->n]);
		sink(top, 0);
	}
	top->n = n;
}

void wss_top_free(struct wss_top *top)
{
	free(top->ranges);
	top->ranges = NULL;
	top->n = 0;
}
