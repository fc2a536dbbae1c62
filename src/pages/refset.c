/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/refset.h"

#include <stdlib.h>
#include <string.h>

#include "pages/phases.h"
#include "pages/reference.h"

/* Position of the replay relative to the viewport. */
enum viewport_place { BEFORE, INSIDE, BEHIND };

struct refset_region {
	uint64_t first; /* index */
	uint64_t n;
	uint64_t touched; /* now */
	bool changed;	  /* since its peak was taken */
};

struct wss_refset {
	const struct wss_recording *recording;
	struct refset_region *regions;
	struct wss_region_index index;
	size_t n_changed;
	size_t *changed; /* regions, each once */
	struct wss_reference reference;
	/*
	 * Outstanding sets at the beginning and end of the viewport, and the union of all
	 * within.
	 */
	struct wss_pageset *at_start;
	struct wss_pageset *at_end;
	struct wss_pageset *ever;
	struct wss_pageset *unbroken;
	struct wss_pageset *written;
	enum viewport_place place;
	/*
	 * Whether the union of all outstanding sets in the viewport still equals the reference
	 * set.
	 */
	bool ever_is_reference;
	bool any_window, any_peak;
	size_t point_room;
	size_t notes_size, notes_room;
	struct wss_pageset_budget *budget; /* memory budget of the points; may be NULL */
	struct wss_refset_point point;	   /* point of the current interval */
	struct wss_refset_result result;
};

static int refset_no_memory(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static int refset_make_sets(struct wss_refset *refset)
{
	struct wss_pageset **const sets[] = {&refset->at_start, &refset->at_end, &refset->ever,
					     &refset->unbroken, &refset->written};
	uint64_t pages = wss_recording_pages(refset->recording);

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		*sets[i] = wss_pageset_new(pages);
		if (!*sets[i])
			return -1;
	}
	return wss_reference_init(&refset->reference, pages);
}

int wss_refset_new(const struct wss_recording *recording, uint64_t from_ns, uint64_t to_ns,
		   struct wss_refset **ret_refset, struct wss_error *err)
{
	struct wss_refset *refset = calloc(1, sizeof(*refset));

	if (!refset)
		return refset_no_memory(err);
	refset->recording = recording;
	refset->result.from_ns = from_ns;
	refset->result.to_ns = to_ns;
	refset->regions = calloc(recording->n_regions, sizeof(*refset->regions));
	refset->changed = calloc(recording->n_regions, sizeof(*refset->changed));
	refset->result.regions = calloc(recording->n_regions, sizeof(*refset->result.regions));
	if (!refset->regions || !refset->changed || !refset->result.regions ||
	    refset_make_sets(refset) < 0) {
		wss_refset_free(refset);
		return refset_no_memory(err);
	}
	wss_region_index_init(&refset->index, recording);
	for (size_t i = 0; i < recording->n_regions; i++) {
		refset->regions[i].first = refset->index.first[i];
		refset->regions[i].n = refset->index.first[i + 1] - refset->index.first[i];
	}
	*ret_refset = refset;
	return 0;
}

void wss_refset_limit(struct wss_refset *refset, struct wss_pageset_budget *budget)
{
	refset->budget = budget;
	refset->result.marks.budget = budget;
	wss_reference_limit(&refset->reference, budget);
	wss_pageset_limit(refset->at_start, budget);
	wss_pageset_limit(refset->at_end, budget);
	wss_pageset_limit(refset->ever, budget);
	wss_pageset_limit(refset->unbroken, budget);
	wss_pageset_limit(refset->written, budget);
}

/* Starts the viewport with the current outstanding set. */
static int enter_viewport(struct wss_refset *refset, const struct wss_recording_sets *sets,
			  struct wss_error *err)
{
	refset->place = INSIDE;
	/* The outstanding set is part of the reference set. */
	refset->ever_is_reference =
		wss_pageset_count(refset->reference.pages) == wss_pageset_count(sets->touched);
	if (wss_pageset_copy(refset->at_start, sets->touched) < 0 ||
	    wss_pageset_copy(refset->ever, sets->touched) < 0 ||
	    wss_pageset_copy(refset->unbroken, sets->touched) < 0)
		return refset_no_memory(err);
	return 0;
}

/*
 * Raises the peak if the set outstanding from at_ns on is larger than any before in the
 * viewport.
 */
static void take_peak(struct wss_refset *refset, const struct wss_recording_sets *sets,
		      uint64_t at_ns)
{
	struct wss_refset_result *result = &refset->result;
	uint64_t outstanding = wss_pageset_count(sets->touched);

	if (outstanding > result->all.peak || !refset->any_peak) {
		result->all.peak = outstanding;
		result->peak_ns = at_ns;
	}
	refset->any_peak = true;
	/* Unchanged regions have already reached their peak. */
	while (refset->n_changed) {
		size_t i = refset->changed[--refset->n_changed];

		if (refset->regions[i].touched > result->regions[i].peak)
			result->regions[i].peak = refset->regions[i].touched;
		refset->regions[i].changed = false;
	}
}

/*
 * Makes the union of outstanding sets a set of its own, which differs from the reference set
 * from now on.
 */
static int part_from_reference(struct wss_refset *refset)
{
	if (!refset->ever_is_reference)
		return 0;
	refset->ever_is_reference = false;
	return wss_pageset_copy(refset->ever, refset->reference.pages);
}

/* Counts the current reference set, in total and for each region. */
static void count_reference(struct wss_refset *refset)
{
	struct wss_refset_result *result = &refset->result;

	result->all.reference = wss_pageset_count(refset->reference.pages);
	for (size_t i = 0; i < refset->recording->n_regions; i++)
		result->regions[i].reference = wss_pageset_count_run(
			refset->reference.pages,
			(struct wss_run){refset->regions[i].first, refset->regions[i].n});
}

/* The viewport ends with the current outstanding set. */
static int leave_viewport(struct wss_refset *refset, const struct wss_recording_sets *sets)
{
	count_reference(refset);
	if (part_from_reference(refset) < 0)
		return -1;
	return wss_pageset_copy(refset->at_end, sets->touched);
}

/* The first byte of the notes is not used, as an offset of 0 means none. */
static int refset_add_note(struct wss_refset *refset, const char *note)
{
	size_t size = strlen(note) + 1, room = 2 * refset->notes_room + 2 * WSS_MARK_TEXT_MAX;
	size_t at = refset->notes_size ? refset->notes_size : 1;

	if (at + size > refset->notes_room) {
		char *notes;

		if (!wss_pageset_charge(refset->budget, room - refset->notes_room))
			return -1;
		notes = realloc(refset->result.notes, room);
		if (!notes)
			return -1;
		refset->result.notes = notes;
		refset->notes_room = room;
	}
	memcpy(refset->result.notes + at, note, size);
	refset->point.why = at;
	refset->notes_size = at + size;
	return 0;
}

int wss_refset_begin(void *opaque, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_refset *refset = opaque;

	/* The viewport begins in the gap before this window, with the set as of the last window. */
	if (refset->place == BEFORE && !interval->gap && refset->any_window &&
	    interval->start_ns > refset->result.from_ns) {
		if (enter_viewport(refset, sets, err) < 0)
			return -1;
		take_peak(refset, sets, refset->result.from_ns);
	}
	if (refset->place == INSIDE && interval->start_ns >= refset->result.to_ns) {
		if (leave_viewport(refset, sets) < 0)
			return refset_no_memory(err);
		refset->place = BEHIND;
	}
	refset->point = (struct wss_refset_point){
		.start_ns = interval->start_ns,
		.end_ns = interval->end_ns,
		.gap = interval->gap,
		.degraded = interval->degraded,
		.written_meaning = (uint8_t)interval->written,
	};
	if (interval->note[0] && refset_add_note(refset, interval->note) < 0)
		return refset_no_memory(err);
	return 0;
}

static int count_touched(struct wss_refset *refset, struct wss_run run)
{
	int64_t first = wss_reference_touched(&refset->reference, run);

	if (first < 0)
		return -1;
	refset->point.gained += run.n;
	refset->point.first += (uint64_t)first;
	if (refset->place != INSIDE)
		return 0;
	return !refset->ever_is_reference && wss_pageset_add(refset->ever, run.first, run.n) < 0
		       ? -1
		       : 0;
}

static int count_untouched(struct wss_refset *refset, struct wss_run run)
{
	refset->point.lost += run.n;
	if (refset->place != INSIDE)
		return 0;
	return wss_pageset_remove(refset->unbroken, run.first, run.n) < 0 ? -1 : 0;
}

/* Adds the pages of a run to the counts of their regions; most runs lie in one. */
static void count_regions(struct wss_refset *refset, struct wss_run run, bool in)
{
	for (size_t i = wss_region_index_of(&refset->index, run.first);
	     i < refset->index.n && run.n; i++) {
		struct refset_region *region = &refset->regions[i];
		uint64_t room = region->first + region->n - run.first;
		uint64_t n = run.n < room ? run.n : room;

		region->touched = in ? region->touched + n : region->touched - n;
		if (!region->changed)
			refset->changed[refset->n_changed++] = i;
		region->changed = true;
		run.first += n;
		run.n -= n;
	}
}

int wss_refset_change(void *opaque, enum wss_change change, struct wss_run run,
		      struct wss_error *err)
{
	struct wss_refset *refset = opaque;
	int64_t r = 0;

	switch (change) {
	case WSS_CHANGE_TOUCHED:
		count_regions(refset, run, true);
		r = count_touched(refset, run);
		break;
	case WSS_CHANGE_UNTOUCHED:
		count_regions(refset, run, false);
		r = count_untouched(refset, run);
		break;
	case WSS_CHANGE_WRITTEN:
		if (refset->place == INSIDE)
			r = wss_pageset_add(refset->written, run.first, run.n);
		break;
	case WSS_CHANGE_UNWRITTEN:
		break;
	case WSS_CHANGE_BALLOONED:
		refset->point.ballooned += run.n;
		r = wss_reference_ballooned(&refset->reference, run);
		break;
	case WSS_CHANGE_RETURNED:
		refset->point.returned += run.n;
		break;
	}
	return r < 0 ? refset_no_memory(err) : 0;
}

void wss_refset_expect(void *opaque, enum wss_change change, uint64_t page)
{
	const struct wss_refset *refset = opaque;

	if (change == WSS_CHANGE_TOUCHED)
		wss_pageset_expect(refset->reference.pages, page);
	if (refset->place != INSIDE)
		return;
	if (change == WSS_CHANGE_TOUCHED && !refset->ever_is_reference)
		wss_pageset_expect(refset->ever, page);
	else if (change == WSS_CHANGE_UNTOUCHED && wss_pageset_count(refset->unbroken))
		wss_pageset_expect(refset->unbroken, page);
	else if (change == WSS_CHANGE_WRITTEN)
		wss_pageset_expect(refset->written, page);
}

static int refset_add_point(struct wss_refset *refset, struct wss_error *err)
{
	struct wss_refset_result *result = &refset->result;

	if (result->n_points == refset->point_room) {
		size_t room = refset->point_room ? refset->point_room / 2 * 3 : 256;
		void *points;

		if (!wss_pageset_charge(refset->budget,
					(room - refset->point_room) * sizeof(*result->points)))
			return refset_no_memory(err);
		points = realloc(result->points, room * sizeof(*result->points));

		if (!points)
			return refset_no_memory(err);
		result->points = points;
		refset->point_room = room;
	}
	result->points[result->n_points++] = refset->point;
	return 0;
}

/* Returns the weaker of two meanings, which holds for both. */
static uint8_t weaker_meaning(uint8_t a, uint8_t b)
{
	if (a == b || b == WSS_WRITTEN_EXACT)
		return a;
	return a == WSS_WRITTEN_EXACT ? b : WSS_WRITTEN_ABSENT;
}

static int count_window(struct wss_refset *refset, const struct wss_recording_sets *sets)
{
	struct wss_refset_result *result = &refset->result;
	struct wss_refset_point *point = &refset->point;

	point->in_viewport = true;
	result->written_meaning =
		result->windows ? weaker_meaning(result->written_meaning, point->written_meaning)
				: point->written_meaning;
	take_peak(refset, sets, point->start_ns);
	/* Written pages count from the viewport's first window on. */
	return result->windows++ ? 0 : wss_pageset_copy(refset->written, sets->written);
}

static uint64_t overlap_ns(const struct wss_refset_result *result,
			   const struct wss_refset_point *point)
{
	uint64_t from = point->start_ns > result->from_ns ? point->start_ns : result->from_ns;
	uint64_t to = point->end_ns < result->to_ns ? point->end_ns : result->to_ns;

	return to > from ? to - from : 0;
}

int wss_refset_end(void *opaque, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_refset *refset = opaque;
	struct wss_refset_point *point = &refset->point;
	int64_t again;

	if (interval->gap) {
		point->reference = wss_pageset_count(refset->reference.pages);
		refset->result.gap_ns += overlap_ns(&refset->result, point);
		point->in_viewport = refset->place == INSIDE;
		return refset_add_point(refset, err);
	}
	if (wss_reference_loses(&refset->reference) && part_from_reference(refset) < 0)
		return refset_no_memory(err);
	again = wss_reference_end(&refset->reference, sets->touched);
	if (again < 0)
		return refset_no_memory(err);
	point->first += (uint64_t)again;
	point->reference = wss_pageset_count(refset->reference.pages);
	point->touched = wss_pageset_count(sets->touched);
	point->written =
		interval->written == WSS_WRITTEN_ABSENT ? 0 : wss_pageset_count(sets->written);
	refset->any_window = true;
	/* The first window that ends after the viewport's beginning contains it. */
	if (refset->place == BEFORE && interval->end_ns > refset->result.from_ns &&
	    interval->start_ns < refset->result.to_ns && enter_viewport(refset, sets, err) < 0)
		return -1;
	if (refset->place == INSIDE && count_window(refset, sets) < 0)
		return refset_no_memory(err);
	return refset_add_point(refset, err);
}

int wss_refset_last(void *opaque, const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_refset *refset = opaque;

	return refset->place == INSIDE && leave_viewport(refset, sets) < 0 ? refset_no_memory(err)
									   : 0;
}

int wss_refset_mark(void *opaque, uint64_t time_ns, const char *text, struct wss_error *err)
{
	struct wss_refset *refset = opaque;
	return wss_marks_add(&refset->result.marks, time_ns, text, err);
}

static void classify_pages(const struct wss_refset *refset, struct wss_run pages,
			   struct wss_refset_classes *classes)
{
	struct wss_pageset_overlap overlap =
		wss_pageset_compare(refset->at_start, refset->at_end, refset->ever, pages);

	classes->persistent = overlap.both;
	classes->lost = overlap.only_a;
	classes->gained = overlap.only_b;
	classes->transient = overlap.neither;
	classes->unbroken = wss_pageset_count_run(refset->unbroken, pages);
	classes->written = wss_pageset_count_run(refset->written, pages);
}

static void free_sets(struct wss_refset *refset)
{
	struct wss_pageset **const sets[] = {&refset->at_start, &refset->at_end, &refset->ever,
					     &refset->unbroken, &refset->written};

	wss_reference_free(&refset->reference);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		wss_pageset_free(*sets[i]);
		*sets[i] = NULL;
	}
	if (refset->budget)
		wss_pageset_budget_clear(refset->budget);
}

int wss_refset_finish(struct wss_refset *refset, uint64_t end_ns,
		      const struct wss_refset_result **ret_result, struct wss_error *err)
{
	struct wss_refset_result *result = &refset->result;
	struct wss_run everything = {0, wss_recording_pages(refset->recording)};

	if (!result->windows)
		return wss_error_set(err, WSS_ERR_FAILED, "no window lies in this time");
	if (result->to_ns > end_ns)
		result->to_ns = end_ns;
	if (wss_marks_sort(&result->marks, err) < 0)
		return -1;
	classify_pages(refset, everything, &result->all);
	for (size_t i = 0; i < refset->recording->n_regions; i++)
		classify_pages(refset,
			       (struct wss_run){refset->regions[i].first, refset->regions[i].n},
			       &result->regions[i]);
	/* Printing may also need memory. */
	free_sets(refset);
	wss_phases_find(result);
	*ret_result = result;
	return 0;
}

void wss_refset_free(struct wss_refset *refset)
{
	if (!refset)
		return;
	free_sets(refset);
	free(refset->regions);
	free(refset->changed);
	free(refset->result.points);
	free(refset->result.notes);
	wss_marks_free(&refset->result.marks);
	free(refset->result.phases);
	free(refset->result.regions);
	free(refset);
}
