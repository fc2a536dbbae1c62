/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/reference.h"

#include <string.h>

int wss_reference_init(struct wss_reference *reference, uint64_t n_pages)
{
	*reference = (struct wss_reference){
		.pages = wss_pageset_new(n_pages),
		.taken = wss_pageset_new(n_pages),
		.leaving = wss_pageset_new(n_pages),
	};
	return reference->pages && reference->taken && reference->leaving ? 0 : -1;
}

void wss_reference_limit(struct wss_reference *reference, struct wss_pageset_budget *budget)
{
	wss_pageset_limit(reference->pages, budget);
	wss_pageset_limit(reference->taken, budget);
	wss_pageset_limit(reference->leaving, budget);
	reference->taken_runs.budget = budget;
	reference->leaving_runs.budget = budget;
}

void wss_reference_free(struct wss_reference *reference)
{
	wss_pageset_free(reference->pages);
	wss_pageset_free(reference->taken);
	wss_pageset_free(reference->leaving);
	wss_run_list_free(&reference->taken_runs);
	wss_run_list_free(&reference->leaving_runs);
	memset(reference, 0, sizeof(*reference));
}

int64_t wss_reference_touched(struct wss_reference *reference, struct wss_run run)
{
	return wss_pageset_add(reference->pages, run.first, run.n);
}

/* Moves the runs of a list to a set. */
static int pour_runs(struct wss_run_list *list, struct wss_pageset *set)
{
	for (size_t i = 0; i < list->n; i++)
		if (wss_pageset_add(set, list->runs[i].first, list->runs[i].n) < 0)
			return -1;
	wss_run_list_clear(list);
	return 0;
}

int wss_reference_ballooned(struct wss_reference *reference, struct wss_run run)
{
	enum wss_run_list_result r = WSS_RUN_LIST_FULL;

	if (!wss_pageset_count(reference->taken))
		r = wss_run_list_add(&reference->taken_runs, run);
	if (r != WSS_RUN_LIST_FULL)
		return r == WSS_RUN_LIST_OK ? 0 : -1;
	if (pour_runs(&reference->taken_runs, reference->taken) < 0)
		return -1;
	return wss_pageset_add(reference->taken, run.first, run.n) < 0 ? -1 : 0;
}

bool wss_reference_loses(const struct wss_reference *reference)
{
	return reference->taken_runs.n || reference->leaving_runs.n ||
	       wss_pageset_count(reference->taken) || wss_pageset_count(reference->leaving);
}

/* State of a walk over the runs of a list. */
struct runs_walk {
	struct wss_reference *reference;
	const struct wss_pageset *touched;
	struct wss_run_list *stay; /* receives the touched parts; may be NULL */
	size_t parts_left;	   /* number of further touched parts allowed */
	uint64_t n_touched;	   /* pages so far */
};

/*
 * Removes the pages of a run that the guest did not touch from the reference set.
 * WSS_RUN_LIST_FULL: it has too many touched parts.
 */
static enum wss_run_list_result walk_run(struct runs_walk *walk, struct wss_run run)
{
	uint64_t at = run.first, end = run.first + run.n;

	while (at < end) {
		enum wss_run_list_result r = WSS_RUN_LIST_OK;
		struct wss_run part;

		if (!wss_pageset_next(walk->touched, NULL, at, &part) || part.first >= end)
			part = (struct wss_run){end, 0};
		if (part.n > end - part.first)
			part.n = end - part.first;
		if (part.n && !walk->parts_left--)
			return WSS_RUN_LIST_FULL;
		if (wss_pageset_remove(walk->reference->pages, at, part.first - at) < 0)
			return WSS_RUN_LIST_NO_MEMORY;
		if (part.n && walk->stay)
			r = wss_run_list_add(walk->stay, part);
		if (r != WSS_RUN_LIST_OK)
			return r;
		walk->n_touched += part.n;
		at = part.first + part.n;
	}
	return WSS_RUN_LIST_OK;
}

/*
 * Does the same for all runs of a list, and empties it. *ret_touched is the number of touched
 * pages. WSS_RUN_LIST_FULL: a set is better, because there are many more touched parts than
 * runs; the list is as it was, and the work so far need not be undone.
 */
static enum wss_run_list_result walk_runs(struct wss_reference *reference,
					  struct wss_run_list *list,
					  const struct wss_pageset *touched,
					  struct wss_run_list *stay, uint64_t *ret_touched)
{
	struct runs_walk walk = {reference, touched, stay, 4 * list->n + 2, 0};
	const size_t ahead = 16;

	wss_run_list_sort(list);
	for (size_t i = 0; i < list->n; i++) {
		enum wss_run_list_result r;

		if (i + ahead < list->n)
			wss_pageset_expect(touched, list->runs[i + ahead].first);
		r = walk_run(&walk, list->runs[i]);
		if (r != WSS_RUN_LIST_OK)
			return r;
	}
	wss_run_list_clear(list);
	*ret_touched = walk.n_touched;
	return WSS_RUN_LIST_OK;
}

/*
 * Removes pages from the reference set that the balloon took and the guest did not touch;
 * returns their number.
 */
static int64_t leave_set(struct wss_reference *reference, const struct wss_pageset *taken,
			 const struct wss_pageset *touched)
{
	uint64_t n = wss_pageset_count_without(taken, touched);

	/* Fast path: in most windows the balloon does not move. */
	if (n && wss_pageset_take_out(reference->pages, taken, touched) < 0)
		return -1;
	return (int64_t)n;
}

/*
 * Removes the pages that were taken in the last window and not touched in this one, and
 * forgets the others. Returns the number of those others.
 */
static int64_t end_leaving(struct wss_reference *reference, const struct wss_pageset *touched)
{
	struct wss_pageset *left = reference->leaving;
	enum wss_run_list_result r;
	uint64_t again = 0;
	int64_t gone;

	r = walk_runs(reference, &reference->leaving_runs, touched, NULL, &again);
	if (r == WSS_RUN_LIST_NO_MEMORY ||
	    (r == WSS_RUN_LIST_FULL && pour_runs(&reference->leaving_runs, left) < 0))
		return -1;
	gone = leave_set(reference, left, touched);
	if (gone < 0)
		return -1;
	again += wss_pageset_count(left) - (uint64_t)gone;
	wss_pageset_remove(left, 0, wss_pageset_size(left));
	return (int64_t)again;
}

/* Removes untouched pages that were taken in this window. The others leave with the next window. */
static int end_taken(struct wss_reference *reference, const struct wss_pageset *touched)
{
	struct wss_pageset *taken = reference->taken;
	enum wss_run_list_result r;
	uint64_t n_touched;
	int64_t untouched;

	r = walk_runs(reference, &reference->taken_runs, touched, &reference->leaving_runs,
		      &n_touched);
	if (r == WSS_RUN_LIST_NO_MEMORY)
		return -1;
	if (r == WSS_RUN_LIST_FULL) {
		wss_run_list_clear(&reference->leaving_runs);
		if (pour_runs(&reference->taken_runs, taken) < 0)
			return -1;
	}
	untouched = leave_set(reference, taken, touched);
	if (untouched < 0 || (untouched && wss_pageset_keep(taken, touched) < 0))
		return -1;
	reference->taken = reference->leaving;
	reference->leaving = taken;
	return 0;
}

int64_t wss_reference_end(struct wss_reference *reference, const struct wss_pageset *touched)
{
	int64_t again = end_leaving(reference, touched);

	return again < 0 || end_taken(reference, touched) < 0 ? -1 : again;
}
