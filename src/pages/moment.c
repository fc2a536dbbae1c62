/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/moment.h"

#include "pages/top.h"

int wss_moment_init(struct wss_moment *moment, const struct wss_recording *recording,
		    uint64_t at_ns, struct wss_error *err)
{
	uint64_t pages = wss_recording_pages(recording);

	*moment = (struct wss_moment){.at_ns = at_ns};
	moment->written = wss_pageset_new(pages);
	if (at_ns != WSS_MOMENT_ALL)
		moment->pages = wss_pageset_new(pages);
	else if (wss_reference_init(&moment->reference, pages) == 0)
		moment->pages = moment->reference.pages;
	if (moment->pages && moment->written)
		return 0;
	wss_moment_free(moment);
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

void wss_moment_limit(struct wss_moment *moment, struct wss_pageset_budget *budget)
{
	wss_pageset_limit(moment->written, budget);
	if (moment->at_ns != WSS_MOMENT_ALL)
		wss_pageset_limit(moment->pages, budget);
	else
		wss_reference_limit(&moment->reference, budget);
}

/* Keeps the sets as they are now, which costs nothing until they change. */
static int moment_take(struct wss_moment *moment, const struct wss_recording_sets *sets,
		       struct wss_error *err)
{
	moment->done = true;
	if (wss_pageset_copy(moment->pages, sets->touched) < 0 ||
	    wss_pageset_copy(moment->written, sets->written) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

int wss_moment_begin(void *opaque, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_moment *moment = opaque;

	/* The moment was in a gap: use the set as of the preceding window. */
	if (!moment->done && moment->windows && interval->start_ns > moment->at_ns)
		return moment_take(moment, sets, err);
	return 0;
}

int wss_moment_change(void *opaque, enum wss_change change, struct wss_run run,
		      struct wss_error *err)
{
	struct wss_moment *moment = opaque;
	int64_t r = 0;

	if (moment->at_ns != WSS_MOMENT_ALL)
		return 0;
	if (change == WSS_CHANGE_TOUCHED)
		r = wss_reference_touched(&moment->reference, run);
	else if (change == WSS_CHANGE_WRITTEN)
		r = wss_pageset_add(moment->written, run.first, run.n);
	else if (change == WSS_CHANGE_BALLOONED)
		r = wss_reference_ballooned(&moment->reference, run);
	return r < 0 ? wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory") : 0;
}

void wss_moment_expect(void *opaque, enum wss_change change, uint64_t page)
{
	const struct wss_moment *moment = opaque;

	if (moment->at_ns != WSS_MOMENT_ALL)
		return;
	if (change == WSS_CHANGE_TOUCHED)
		wss_pageset_expect(moment->reference.pages, page);
	else if (change == WSS_CHANGE_WRITTEN)
		wss_pageset_expect(moment->written, page);
}

static void moment_note_gap(struct wss_moment *moment, const struct wss_interval *interval)
{
	if (moment->gap_end_ns && interval->start_ns == moment->gap_end_ns) {
		moment->gap_end_ns = interval->end_ns;
	} else if (!moment->done) {
		moment->gap_start_ns = interval->start_ns;
		moment->gap_end_ns = interval->end_ns;
		moment->gap_is_first = !moment->windows;
	}
}

bool wss_moment_in_gap(const struct wss_moment *moment)
{
	return moment->at_ns != WSS_MOMENT_ALL && moment->at_ns > moment->gap_start_ns &&
	       moment->at_ns < moment->gap_end_ns;
}

int wss_moment_end(void *opaque, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_moment *moment = opaque;
	bool all = moment->at_ns == WSS_MOMENT_ALL;

	if (interval->gap)
		moment_note_gap(moment, interval);
	if (interval->gap || moment->done)
		return 0;
	if (all && wss_reference_end(&moment->reference, sets->touched) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	moment->windows++;
	moment->degraded = interval->degraded + (all ? moment->degraded : 0);
	moment->written_known =
		interval->written != WSS_WRITTEN_ABSENT || (all && moment->written_known);
	return !all && interval->end_ns > moment->at_ns ? moment_take(moment, sets, err) : 0;
}

int wss_moment_last(void *opaque, const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_moment *moment = opaque;

	return moment->at_ns == WSS_MOMENT_ALL || moment->done ? 0 : moment_take(moment, sets, err);
}

void wss_moment_copy(struct wss_moment *to, const struct wss_moment *from)
{
	wss_pageset_copy(to->pages, from->pages);
	wss_pageset_copy(to->written, from->written);
	to->written_known = from->written_known;
	to->windows = from->windows;
	to->degraded = from->degraded;
	to->gap_start_ns = from->gap_start_ns;
	to->gap_end_ns = from->gap_end_ns;
	to->gap_is_first = from->gap_is_first;
	to->done = from->done;
}

void wss_moment_free(struct wss_moment *moment)
{
	if (moment->at_ns != WSS_MOMENT_ALL)
		wss_pageset_free(moment->pages);
	wss_reference_free(&moment->reference);
	wss_pageset_free(moment->written);
	moment->pages = moment->written = NULL;
}

struct walk {
	uint64_t within;
	bool (*give)(void *opaque, const struct wss_page_range *range);
	void *opaque;
	bool ended;
	struct wss_region_index regions;
	struct wss_page_range range; /* n is 0 if there is no range yet */
	uint64_t region_end;
};

static void put_range(struct walk *walk, uint64_t first, uint64_t n, uint64_t value)
{
	struct wss_page_range *range = &walk->range;

	if (range->n && first < walk->region_end &&
	    first - (range->first + range->n) < walk->within) {
		range->n = first + n - range->first;
		range->pages += n;
		return;
	}
	if (range->n)
		walk->ended = !walk->give(walk->opaque, range);
	*range = (struct wss_page_range){first, n, n, value};
}

static void walk_runs(struct walk *walk, const struct wss_pageset *set,
		      const struct wss_pageset *without, uint64_t value)
{
	struct wss_run run = {0, 0};

	while (!walk->ended && wss_pageset_next(set, without, run.first + run.n, &run)) {
		uint64_t at = run.first, end = run.first + run.n;

		while (at < end && !walk->ended) {
			uint64_t region_end =
				walk->regions.first[wss_region_index_of(&walk->regions, at) + 1];
			uint64_t stop = region_end < end ? region_end : end;

			put_range(walk, at, stop - at, value);
			walk->region_end = region_end;
			at = stop;
		}
	}
	if (walk->range.n && !walk->ended)
		walk->ended = !walk->give(walk->opaque, &walk->range);
	walk->range.n = 0;
}

void wss_moment_differences(const struct wss_recording *recording, const struct wss_pageset *a,
			    const struct wss_pageset *b, uint64_t within,
			    bool (*give)(void *opaque, const struct wss_page_range *range),
			    void *opaque)
{
	struct walk walk = {.within = within ? within : 1, .give = give, .opaque = opaque};

	wss_region_index_init(&walk.regions, recording);
	walk_runs(&walk, b, a, 1);
	walk_runs(&walk, a, b, 0);
}
