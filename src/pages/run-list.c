/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/run-list.h"

#include <stdlib.h>

static int run_list_grow(struct wss_run_list *list)
{
	size_t room = list->room ? 2 * list->room : 64;
	void *runs;

	if (!wss_pageset_charge(list->budget, (room - list->room) * sizeof(*list->runs)))
		return -1;
	runs = realloc(list->runs, room * sizeof(*list->runs));
	if (!runs)
		return -1;
	list->runs = runs;
	list->room = room;
	return 0;
}

enum wss_run_list_result wss_run_list_add(struct wss_run_list *list, struct wss_run run)
{
	struct wss_run *last = list->n ? &list->runs[list->n - 1] : NULL;

	if (last && run.first == last->first + last->n) {
		last->n += run.n;
		return WSS_RUN_LIST_OK;
	}
	if (list->n == WSS_RUN_LIST_MAX)
		return WSS_RUN_LIST_FULL;
	list->unsorted |= last && run.first < last->first + last->n;
	if (list->n == list->room && run_list_grow(list) < 0)
		return WSS_RUN_LIST_NO_MEMORY;
	list->runs[list->n++] = run;
	return WSS_RUN_LIST_OK;
}

static int compare_runs(const void *a, const void *b)
{
	const struct wss_run *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

void wss_run_list_sort(struct wss_run_list *list)
{
	size_t to = 0;

	if (!list->unsorted)
		return;
	list->unsorted = false;
	qsort(list->runs, list->n, sizeof(*list->runs), compare_runs);
	for (size_t i = 1; i < list->n; i++) {
		struct wss_run *last = &list->runs[to], run = list->runs[i];

		if (run.first > last->first + last->n)
			list->runs[++to] = run;
		else if (run.first + run.n > last->first + last->n)
			last->n = run.first + run.n - last->first;
	}
	list->n = to + 1;
}

void wss_run_list_clear(struct wss_run_list *list)
{
	list->n = 0;
	list->unsorted = false;
}

void wss_run_list_free(struct wss_run_list *list)
{
	free(list->runs);
	*list = (struct wss_run_list){.budget = list->budget};
}
