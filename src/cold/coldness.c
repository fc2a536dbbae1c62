/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cold/coldness.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "pages/recording.h"

#define SPLIT_BYTES (WSS_COLD_UNIT_PAGES * sizeof(uint16_t))

struct wss_cold_budget {
	atomic_int references;
	atomic_uint_fast64_t used_bytes, limit_bytes;
	atomic_bool refused;
};

/* A part of the address space, and its first unit. */
struct part {
	struct wss_run pages;
	uint64_t first_unit, n_units;
};

struct wss_coldness {
	size_t n_parts;
	struct part parts[WSS_COLD_PARTS_MAX];
	uint64_t n_pages, n_units;
	uint16_t *serials; /* of the units that are whole */
	uint16_t **splits; /* of each unit: a serial for each of its pages; NULL: it is whole */
	uint64_t bytes, split_bytes, limit_bytes;
	struct wss_cold_budget *budget; /* NULL: none */
	bool is_coarse;			/* nothing is split: the budget was short */
	struct wss_cold_timeline timeline;
};

/* A unit, or the pages of it that belong to its part. */
struct unit {
	uint64_t number;
	uint64_t first; /* page */
	unsigned n;
};

/* --- the budget --- */

struct wss_cold_budget *wss_cold_budget_new(uint64_t limit_bytes)
{
	struct wss_cold_budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return NULL;
	budget->references = 1;
	budget->limit_bytes = limit_bytes;
	return budget;
}

struct wss_cold_budget *wss_cold_budget_ref(struct wss_cold_budget *budget)
{
	if (budget)
		atomic_fetch_add(&budget->references, 1);
	return budget;
}

void wss_cold_budget_unref(struct wss_cold_budget *budget)
{
	if (budget && atomic_fetch_sub(&budget->references, 1) == 1)
		free(budget);
}

void wss_cold_budget_set_limit(struct wss_cold_budget *budget, uint64_t limit_bytes)
{
	budget->limit_bytes = limit_bytes;
}

uint64_t wss_cold_budget_used(const struct wss_cold_budget *budget)
{
	return budget->used_bytes;
}

bool wss_cold_budget_is_short(struct wss_cold_budget *budget)
{
	return atomic_exchange(&budget->refused, false) || budget->used_bytes > budget->limit_bytes;
}

/* Takes memory, unless that would be more than the limit. */
static bool budget_take(struct wss_cold_budget *budget, uint64_t bytes)
{
	uint_fast64_t used;

	if (!budget)
		return true;
	used = budget->used_bytes;
	do {
		if (wss_u64_add(used, bytes) > budget->limit_bytes) {
			budget->refused = true;
			return false;
		}
	} while (!atomic_compare_exchange_weak(&budget->used_bytes, &used, used + bytes));
	return true;
}

static void budget_return(struct wss_cold_budget *budget, uint64_t bytes)
{
	if (budget)
		atomic_fetch_sub(&budget->used_bytes, bytes);
}

/* --- parts and units --- */

static uint64_t unit_of_page(uint64_t page)
{
	return page / WSS_COLD_UNIT_PAGES;
}

static bool parts_are_valid(const struct wss_run *parts, size_t n)
{
	uint64_t end = 0, pages = 0;

	if (!n || n > WSS_COLD_PARTS_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!parts[i].n || parts[i].first < end || parts[i].n > WSS_PAGESET_MAX_PAGES ||
		    __builtin_add_overflow(parts[i].first, parts[i].n, &end))
			return false;
		pages += parts[i].n;
	}
	return pages <= WSS_PAGESET_MAX_PAGES;
}

static void coldness_set_parts(struct wss_coldness *coldness, const struct wss_run *parts, size_t n)
{
	coldness->n_parts = n;
	for (size_t i = 0; i < n; i++) {
		uint64_t last = parts[i].first + parts[i].n - 1;
		struct part *part = &coldness->parts[i];

		part->pages = parts[i];
		part->first_unit = coldness->n_units;
		part->n_units = unit_of_page(last) - unit_of_page(parts[i].first) + 1;
		coldness->n_units += part->n_units;
		coldness->n_pages += parts[i].n;
	}
}

struct wss_coldness *wss_coldness_new(const struct wss_run *parts, size_t n, uint64_t limit_bytes,
				      struct wss_cold_budget *budget)
{
	struct wss_coldness *coldness;
	uint64_t bytes;

	if (!parts_are_valid(parts, n) || !(coldness = calloc(1, sizeof(*coldness))))
		return NULL;
	coldness_set_parts(coldness, parts, n);
	coldness->limit_bytes = limit_bytes;
	coldness->timeline.never_pages = coldness->n_pages;
	bytes = coldness->n_units * (sizeof(*coldness->serials) + sizeof(*coldness->splits));
	if (!budget_take(budget, bytes + sizeof(*coldness))) {
		free(coldness);
		return NULL;
	}
	coldness->budget = wss_cold_budget_ref(budget);
	coldness->bytes = bytes;
	coldness->serials = calloc(coldness->n_units, sizeof(*coldness->serials));
	coldness->splits = calloc(coldness->n_units, sizeof(*coldness->splits));
	if (coldness->serials && coldness->splits)
		return coldness;
	wss_coldness_free(coldness);
	return NULL;
}

void wss_coldness_free(struct wss_coldness *coldness)
{
	if (!coldness)
		return;
	for (uint64_t i = 0; coldness->splits && i < coldness->n_units; i++)
		free(coldness->splits[i]);
	free(coldness->splits);
	free(coldness->serials);
	budget_return(coldness->budget, wss_coldness_bytes(coldness));
	wss_cold_budget_unref(coldness->budget);
	free(coldness);
}

size_t wss_coldness_parts(const struct wss_coldness *coldness,
			  struct wss_run ret_parts[WSS_COLD_PARTS_MAX])
{
	for (size_t i = 0; i < coldness->n_parts; i++)
		ret_parts[i] = coldness->parts[i].pages;
	return coldness->n_parts;
}

uint64_t wss_coldness_pages(const struct wss_coldness *coldness)
{
	return coldness->n_pages;
}

uint64_t wss_coldness_bytes(const struct wss_coldness *coldness)
{
	return coldness->bytes + sizeof(*coldness);
}

uint64_t wss_coldness_split_bytes(const struct wss_coldness *coldness)
{
	return coldness->split_bytes;
}

/* The unit that has a page of the part. */
static struct unit part_unit(const struct part *part, uint64_t page)
{
	uint64_t block = unit_of_page(page);
	uint64_t first = wss_u64_max(block * WSS_COLD_UNIT_PAGES, part->pages.first);
	uint64_t end =
		wss_u64_min((block + 1) * WSS_COLD_UNIT_PAGES, part->pages.first + part->pages.n);

	return (struct unit){
		.number = part->first_unit + block - unit_of_page(part->pages.first),
		.first = first,
		.n = (unsigned)(end - first),
	};
}

/* --- serials --- */

static uint64_t *coldness_count(struct wss_coldness *coldness, uint16_t serial)
{
	if (serial == WSS_COLD_NEVER)
		return &coldness->timeline.never_pages;
	if (serial == WSS_COLD_ABSENT)
		return &coldness->timeline.absent_pages;
	return &coldness->timeline.slots[serial - 1].pages;
}

static void unit_free_split(struct wss_coldness *coldness, uint64_t number)
{
	if (!coldness->splits[number])
		return;
	free(coldness->splits[number]);
	coldness->splits[number] = NULL;
	coldness->bytes -= SPLIT_BYTES;
	coldness->split_bytes -= SPLIT_BYTES;
	budget_return(coldness->budget, SPLIT_BYTES);
}

/* Whole again, if all pages of the unit agree. */
static void unit_try_join(struct wss_coldness *coldness, const struct unit *unit)
{
	const uint16_t *split = coldness->splits[unit->number];
	size_t rest = (unit->n - 1) * sizeof(*split);

	if (!split || split[0] != split[unit->n - 1] || memcmp(split, split + 1, rest) != 0)
		return;
	coldness->serials[unit->number] = split[0];
	unit_free_split(coldness, unit->number);
}

static bool unit_split(struct wss_coldness *coldness, const struct unit *unit)
{
	uint16_t *split;

	if (coldness->splits[unit->number])
		return true;
	if (coldness->is_coarse || coldness->bytes + SPLIT_BYTES > coldness->limit_bytes ||
	    !budget_take(coldness->budget, SPLIT_BYTES))
		return false;
	split = malloc(SPLIT_BYTES);
	if (!split) {
		budget_return(coldness->budget, SPLIT_BYTES);
		return false;
	}
	for (size_t i = 0; i < WSS_COLD_UNIT_PAGES; i++)
		split[i] = coldness->serials[unit->number];
	coldness->splits[unit->number] = split;
	coldness->bytes += SPLIT_BYTES;
	coldness->split_bytes += SPLIT_BYTES;
	return true;
}

/* All pages of the unit get a serial. */
static void unit_fill(struct wss_coldness *coldness, const struct unit *unit, uint16_t serial)
{
	const uint16_t *split = coldness->splits[unit->number];

	if (split)
		for (unsigned i = 0; i < unit->n; i++)
			--*coldness_count(coldness, split[i]);
	else
		*coldness_count(coldness, coldness->serials[unit->number]) -= unit->n;
	unit_free_split(coldness, unit->number);
	coldness->serials[unit->number] = serial;
	*coldness_count(coldness, serial) += unit->n;
}

/*
 * Some pages, n, of a unit that cannot be split get a serial: a touch makes all of it touched, and of what is taken
 * only the amount is known.
 */
static void unit_set_whole(struct wss_coldness *coldness, const struct unit *unit, unsigned n,
			   uint16_t serial)
{
	uint16_t now = coldness->serials[unit->number];

	coldness->timeline.granularity_bytes = WSS_COLD_UNIT_PAGES * WSS_PAGE_BYTES;
	coldness->timeline.no_memory = true;
	if (serial == WSS_COLD_ABSENT)
		coldness->timeline.taken_bytes =
			wss_u64_add(coldness->timeline.taken_bytes, (uint64_t)n << WSS_PAGE_SHIFT);
	if (serial != WSS_COLD_ABSENT && (now == WSS_COLD_ABSENT || serial > now))
		unit_fill(coldness, unit, serial);
}

/* The n pages at offset first of the unit get a serial. */
static void unit_set(struct wss_coldness *coldness, const struct unit *unit, unsigned first,
		     unsigned n, uint16_t serial)
{
	uint16_t *split = coldness->splits[unit->number];

	if (n == unit->n) {
		unit_fill(coldness, unit, serial);
		return;
	}
	if (!split && coldness->serials[unit->number] == serial)
		return;
	if (!unit_split(coldness, unit)) {
		unit_set_whole(coldness, unit, n, serial);
		return;
	}
	split = coldness->splits[unit->number];
	for (unsigned i = first; i < first + n; i++) {
		--*coldness_count(coldness, split[i]);
		split[i] = serial;
	}
	*coldness_count(coldness, serial) += n;
	unit_try_join(coldness, unit);
}

/* Calls set for the pages of a run, which are in the part, unit by unit. */
static void part_each_unit(struct wss_coldness *coldness, const struct part *part,
			   struct wss_run run, uint16_t serial,
			   void (*set)(struct wss_coldness *coldness, const struct unit *unit,
				       unsigned first, unsigned n, uint16_t serial))
{
	while (run.n) {
		struct unit unit = part_unit(part, run.first);
		uint64_t n = wss_u64_min(run.n, unit.first + unit.n - run.first);

		set(coldness, &unit, (unsigned)(run.first - unit.first), (unsigned)n, serial);
		run.first += n;
		run.n -= n;
	}
}

/* Of a unit that the host maps as a whole. */
static void unit_touch_all(struct wss_coldness *coldness, const struct unit *unit, unsigned first,
			   unsigned n, uint16_t serial)
{
	(void)first;
	(void)n;
	if (coldness->splits[unit->number] || coldness->serials[unit->number] != serial)
		unit_fill(coldness, unit, serial);
}

/* --- windows --- */

static void coldness_merge(struct wss_coldness *coldness)
{
	uint16_t moved[WSS_COLD_SLOTS_MAX + 1];

	wss_cold_timeline_merge(&coldness->timeline, moved);
	for (size_t i = 0; i < coldness->n_parts; i++) {
		const struct part *part = &coldness->parts[i];

		for (uint64_t page = part->pages.first; page < part->pages.first + part->pages.n;) {
			struct unit unit = part_unit(part, page);
			uint16_t *split = coldness->splits[unit.number];
			uint16_t *serials = split ? split : &coldness->serials[unit.number];

			for (unsigned j = 0; j < (split ? unit.n : 1); j++)
				if (serials[j] != WSS_COLD_ABSENT)
					serials[j] = moved[serials[j]];
			unit_try_join(coldness, &unit);
			page += unit.n;
		}
	}
}

/*
 * The ages of single pages come back once the budget has room for those of all pages, and as much again: others will
 * want some, too.
 */
static void coldness_try_refine(struct wss_coldness *coldness)
{
	const struct wss_cold_budget *budget = coldness->budget;
	uint64_t most_bytes = wss_u64_min(coldness->n_units * SPLIT_BYTES, coldness->limit_bytes);

	if (coldness->is_coarse && budget &&
	    wss_u64_add(budget->used_bytes, 2 * most_bytes) <= budget->limit_bytes)
		coldness->is_coarse = false;
}

void wss_coldness_add(struct wss_coldness *coldness, const struct wss_cold_window *window)
{
	uint16_t serial;

	if (wss_cold_timeline_full(&coldness->timeline))
		coldness_merge(coldness);
	serial = wss_cold_timeline_add(&coldness->timeline, window->start_ns, window->end_ns,
				       window->follows);
	if (!serial)
		return;
	coldness_try_refine(coldness);
	coldness->timeline.granularity_bytes = window->by_unit || coldness->is_coarse
						       ? WSS_COLD_UNIT_PAGES * WSS_PAGE_BYTES
						       : WSS_PAGE_BYTES;
	coldness->timeline.no_memory = coldness->is_coarse && !window->by_unit;
	for (size_t i = 0; i < coldness->n_parts; i++) {
		const struct part *part = &coldness->parts[i];
		uint64_t end = part->pages.first + part->pages.n;
		struct wss_run run = {part->pages.first, 0};

		while (wss_pages_next(&window->touched, run.first + run.n, end, &run))
			part_each_unit(coldness, part, run, serial,
				       window->by_unit ? unit_touch_all : unit_set);
	}
}

/* The n pages at offset first of the unit are held: those that were absent have come back. */
static void unit_return(struct wss_coldness *coldness, const struct unit *unit, unsigned first,
			unsigned n, uint16_t serial)
{
	if (!coldness->splits[unit->number]) {
		if (coldness->serials[unit->number] == WSS_COLD_ABSENT)
			unit_set(coldness, unit, first, n, serial);
		return;
	}
	for (unsigned i = first; i < first + n && coldness->splits[unit->number]; i++)
		if (coldness->splits[unit->number][i] == WSS_COLD_ABSENT)
			unit_set(coldness, unit, i, 1, serial);
}

void wss_coldness_set_held(struct wss_coldness *coldness, const struct wss_pages *held)
{
	coldness->timeline.taken_bytes = 0;
	for (size_t i = 0; i < coldness->n_parts; i++) {
		const struct part *part = &coldness->parts[i];
		uint64_t end = part->pages.first + part->pages.n, at = part->pages.first;
		struct wss_run run = {end, 0};

		while (at < end) {
			if (!wss_pages_next(held, at, end, &run))
				run = (struct wss_run){end, 0};
			part_each_unit(coldness, part, (struct wss_run){at, run.first - at},
				       WSS_COLD_ABSENT, unit_set);
			part_each_unit(coldness, part, run, (uint16_t)coldness->timeline.n,
				       unit_return);
			at = run.first + run.n;
		}
	}
}

void wss_coldness_set_taken(struct wss_coldness *coldness, uint64_t bytes)
{
	coldness->timeline.taken_bytes = bytes;
}

const struct wss_cold_timeline *wss_coldness_timeline(const struct wss_coldness *coldness)
{
	return &coldness->timeline;
}

bool wss_coldness_report(const struct wss_coldness *coldness, uint64_t now_ns,
			 struct wss_cold_report *ret_report)
{
	return wss_cold_timeline_report(&coldness->timeline, now_ns, ret_report);
}

/* --- to store it --- */

/* The part that has the page index, which becomes a page. NULL: there are fewer pages. */
static const struct part *coldness_part_at(const struct wss_coldness *coldness, uint64_t *index)
{
	for (size_t i = 0; i < coldness->n_parts; i++) {
		const struct part *part = &coldness->parts[i];

		if (*index < part->pages.n) {
			*index += part->pages.first;
			return part;
		}
		*index -= part->pages.n;
	}
	return NULL;
}

bool wss_coldness_next(const struct wss_coldness *coldness, uint64_t from,
		       struct wss_cold_run *ret_run)
{
	const struct part *part = coldness_part_at(coldness, &from);
	uint64_t end;

	if (!part)
		return false;
	end = part->pages.first + part->pages.n;
	ret_run->n = 0;
	while (from < end) {
		struct unit unit = part_unit(part, from);
		const uint16_t *split = coldness->splits[unit.number];
		unsigned i = (unsigned)(from - unit.first), start = i;
		uint16_t serial = split ? split[i] : coldness->serials[unit.number];

		if (ret_run->n && serial != ret_run->serial)
			break;
		ret_run->serial = serial;
		while (i < unit.n && (!split || split[i] == serial))
			i++;
		ret_run->n += i - start;
		from += i - start;
		if (i < unit.n)
			break;
	}
	return true;
}

void wss_coldness_restore(struct wss_coldness *coldness, const struct wss_cold_timeline *timeline)
{
	coldness->timeline = *timeline;
	coldness->timeline.never_pages = coldness->n_pages;
	coldness->timeline.absent_pages = 0;
	for (size_t i = 0; i < timeline->n; i++)
		coldness->timeline.slots[i].pages = 0;
}

void wss_coldness_restore_run(struct wss_coldness *coldness, uint64_t from,
			      const struct wss_cold_run *run)
{
	uint64_t left = run->n;

	while (left) {
		uint64_t page = from, n;
		const struct part *part = coldness_part_at(coldness, &page);

		if (!part)
			return;
		n = wss_u64_min(left, part->pages.first + part->pages.n - page);
		part_each_unit(coldness, part, (struct wss_run){page, n}, run->serial, unit_set);
		from += n;
		left -= n;
	}
}

/* The newest serial of a unit that is split, and how many of its pages are not held; all: it is absent. */
static uint16_t split_newest(const uint16_t *split, unsigned n, uint64_t *ret_absent)
{
	uint16_t newest = WSS_COLD_NEVER;

	*ret_absent = 0;
	for (unsigned i = 0; i < n; i++) {
		if (split[i] == WSS_COLD_ABSENT)
			++*ret_absent;
		else if (split[i] > newest)
			newest = split[i];
	}
	return *ret_absent == n ? WSS_COLD_ABSENT : newest;
}

/* The units of to, which has the same parts or is the same, get the newest age of their pages. */
static void coldness_fill_units(const struct wss_coldness *from, struct wss_coldness *to)
{
	uint64_t taken_pages = 0;

	for (size_t i = 0; i < from->n_parts; i++) {
		const struct part *part = &from->parts[i];

		for (uint64_t page = part->pages.first; page < part->pages.first + part->pages.n;) {
			struct unit unit = part_unit(part, page);
			const uint16_t *split = from->splits[unit.number];
			uint16_t serial = from->serials[unit.number];
			uint64_t absent = 0;

			if (split)
				serial = split_newest(split, unit.n, &absent);
			if (serial != WSS_COLD_ABSENT)
				taken_pages += absent;
			unit_fill(to, &unit, serial);
			page += unit.n;
		}
	}
	to->timeline.taken_bytes =
		wss_u64_add(to->timeline.taken_bytes, taken_pages << WSS_PAGE_SHIFT);
	to->timeline.granularity_bytes = WSS_COLD_UNIT_PAGES * WSS_PAGE_BYTES;
	to->timeline.no_memory = true;
}

void wss_coldness_coarsen(struct wss_coldness *coldness)
{
	coldness_fill_units(coldness, coldness);
	coldness->is_coarse = true;
}

struct wss_coldness *wss_coldness_coarse(const struct wss_coldness *coldness)
{
	struct wss_run parts[WSS_COLD_PARTS_MAX];
	size_t n = wss_coldness_parts(coldness, parts);
	struct wss_coldness *coarse = wss_coldness_new(parts, n, 0, NULL);

	if (!coarse)
		return NULL;
	wss_coldness_restore(coarse, &coldness->timeline);
	coldness_fill_units(coldness, coarse);
	return coarse;
}
