/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/phases.h"

#include <stdlib.h>

#include "base/alloc.h"
/*
 * Windows within 5 % of their mean are level, or within 256 KiB, by which a guest's kernel
 * alone varies.
 */
#define TOLERANCE_SHARE 20
#define TOLERANCE_PAGES 64
#define WINDOWS_LEAST 2

/* The windows of a candidate phase. */
struct candidate {
	size_t n;
	uint64_t *pages;
	uint64_t sum;
	size_t first, last; /* points */
};

static bool phase_is_level(uint64_t a, uint64_t b)
{
	uint64_t larger = a > b ? a : b, smaller = a > b ? b : a;

	return larger - smaller <= TOLERANCE_PAGES || larger - smaller <= larger / TOLERANCE_SHARE;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void add_phase(struct candidate *candidate, struct wss_refset_result *result)
{
	size_t n = result->n_phases;

	/* The array doubles when its length reaches a power of two. */
	if (!(n & (n - 1)))
		result->phases =
			wss_xreallocarray(result->phases, n ? 2 * n : 1, sizeof(*result->phases));
	qsort(candidate->pages, candidate->n, sizeof(*candidate->pages), by_size);
	result->phases[result->n_phases++] = (struct wss_refset_phase){
		.start_ns = result->points[candidate->first].start_ns,
		.end_ns = result->points[candidate->last].end_ns,
		.windows = candidate->n,
		.pages = candidate->pages[candidate->n / 2],
	};
}

static void phases_find_all(struct wss_refset_result *result, struct candidate *candidate)
{
	for (size_t i = 0; i < result->n_points; i++) {
		const struct wss_refset_point *point = &result->points[i];

		if (point->gap || !point->in_viewport)
			continue;
		if (candidate->n &&
		    !phase_is_level(point->touched, candidate->sum / candidate->n)) {
			if (candidate->n >= WINDOWS_LEAST)
				add_phase(candidate, result);
			candidate->n = candidate->sum = 0;
		}
		if (!candidate->n)
			candidate->first = i;
		candidate->last = i;
		candidate->pages[candidate->n++] = point->touched;
		candidate->sum += point->touched;
	}
	if (candidate->n >= WINDOWS_LEAST)
		add_phase(candidate, result);
}

/*
 * A single window after the last phase may have caught the beginning of the next phase; two
 * may not.
 */
static void find_steady(struct wss_refset_result *result)
{
	const struct wss_refset_phase *last;
	unsigned behind = 0;

	if (!result->n_phases)
		return;
	last = &result->phases[result->n_phases - 1];
	for (size_t i = 0; i < result->n_points; i++)
		behind += !result->points[i].gap && result->points[i].in_viewport &&
			  result->points[i].start_ns >= last->end_ns;
	result->steady = (struct wss_amount){behind <= 1, last->pages};
	result->steady_since_ns = last->start_ns;
}

void wss_phases_find(struct wss_refset_result *result)
{
	struct candidate candidate = {
		.pages = wss_xcalloc(result->n_points, sizeof(*candidate.pages))};

	phases_find_all(result, &candidate);
	free(candidate.pages);
	find_steady(result);
}
