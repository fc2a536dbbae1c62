/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "pages/heat.h"

/*
 * A page that comes when n windows are left, including the current one, and goes when m are left
 * was touched in n - m of them; a page that stays, in n. Unsigned differences may wrap, because the
 * sums are small.
 *
 * A note is a page and its difference to the page before it. The notes of a chunk lie one after the
 * other in store, two numbers each; a chunk with so many notes that one number per page takes no
 * more room has those instead.
 */
#define CHUNK WSS_PAGESET_CHUNK_PAGES
/* Limit of the notes kept in the first pass, and smallest slice, as a count of numbers: 64 MiB. */
#define STORE_ROOM (1ULL << 24)
/*
 * A slice has one number for this many bytes of recordings. A run takes at least two bytes in
 * a recording, and four numbers here.
 */
#define BYTES_PER_NUMBER 2

void wss_heat_init(struct wss_heat *heat, uint64_t pages, uint64_t data_bytes)
{
	uint64_t room = data_bytes / BYTES_PER_NUMBER;

	*heat = (struct wss_heat){.pages = pages,
				  .counting = true,
				  .kept = true,
				  .slice_room = room > STORE_ROOM ? room : STORE_ROOM,
				  .n_chunks = (size_t)((pages + CHUNK - 1) / CHUNK)};
	heat->notes = wss_xcalloc(heat->n_chunks + 1, sizeof(*heat->notes));
	heat->place = wss_xcalloc(heat->n_chunks + 1, sizeof(*heat->place));
	heat->differences = wss_xcalloc(CHUNK, sizeof(*heat->differences));
}

void wss_heat_recording(struct wss_heat *heat, uint64_t windows)
{
	heat->windows_left = (uint32_t)windows;
}

static uint64_t numbers_of(const struct wss_heat *heat, size_t chunk)
{
	return 2ULL * heat->notes[chunk] < CHUNK ? 2ULL * heat->notes[chunk] : CHUNK;
}

/* Keeps a note of the first pass if there is room; otherwise it will come again in a later pass. */
static void note_keep(struct wss_heat *heat, uint64_t page, uint32_t difference)
{
	/*
	 * Counts no further than a chunk's pages, because beyond that a chunk takes no more
	 * room.
	 */
	if (heat->notes[page / CHUNK] < CHUNK)
		heat->notes[page / CHUNK]++;
	if (heat->kept && heat->n == heat->room) {
		uint64_t room = heat->room ? 2 * heat->room : 4096;
		uint32_t *store =
			room <= STORE_ROOM ? realloc(heat->store, room * sizeof(*store)) : NULL;

		heat->kept = store;
		if (!store) {
			free(heat->store);
			heat->store = NULL;
			return;
		}
		heat->store = store;
		heat->room = room;
	}
	if (!heat->kept)
		return;
	heat->store[heat->n++] = (uint32_t)page;
	heat->store[heat->n++] = difference;
}

static void note_put(struct wss_heat *heat, uint64_t page, uint32_t difference)
{
	size_t chunk = (size_t)(page / CHUNK);
	uint64_t at;

	if (chunk < heat->first || chunk >= heat->end)
		return;
	at = heat->place[chunk];
	if (numbers_of(heat, chunk) == CHUNK) {
		heat->store[at + page % CHUNK] += difference;
		return;
	}
	heat->store[at] = (uint32_t)page;
	heat->store[at + 1] = difference;
	heat->place[chunk] += 2;
}

static void heat_note_add(struct wss_heat *heat, uint64_t page, uint32_t difference)
{
	if (page >= heat->pages)
		return;
	if (heat->counting)
		note_keep(heat, page, difference);
	else
		note_put(heat, page, difference);
}

int wss_heat_change(void *opaque, enum wss_change change, struct wss_run run, struct wss_error *err)
{
	struct wss_heat *heat = opaque;
	uint32_t difference = heat->windows_left;

	(void)err;
	if (change != WSS_CHANGE_TOUCHED && change != WSS_CHANGE_UNTOUCHED)
		return 0;
	if (change == WSS_CHANGE_UNTOUCHED)
		difference = 0 - difference;
	heat_note_add(heat, run.first, difference);
	heat_note_add(heat, run.first + run.n, 0 - difference);
	return 0;
}

int wss_heat_end(void *opaque, const struct wss_interval *interval,
		 const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_heat *heat = opaque;

	(void)sets;
	(void)err;
	heat->windows_left -= !interval->gap;
	return 0;
}

/* Places as many chunks as fit, at least one. Returns how many numbers they take. */
static uint64_t slice_lay_out(struct wss_heat *heat)
{
	uint64_t room = heat->kept ? UINT64_MAX : heat->slice_room, taken = 0;

	heat->first = heat->end;
	while (heat->end < heat->n_chunks && taken + numbers_of(heat, heat->end) <= room) {
		heat->place[heat->end] = taken;
		taken += numbers_of(heat, heat->end++);
	}
	return taken;
}

bool wss_heat_slice(struct wss_heat *heat, bool *ret_replay)
{
	uint32_t *kept = heat->counting && heat->kept ? heat->store : NULL;
	uint64_t taken = slice_lay_out(heat), n = heat->n;

	*ret_replay = !kept;
	if (heat->first == heat->n_chunks)
		return false;
	if (!kept)
		free(heat->store);
	heat->counting = false;
	heat->store = wss_xcalloc(taken + 1, sizeof(*heat->store));
	for (uint64_t i = 0; kept && i < n; i += 2)
		note_put(heat, kept[i], kept[i + 1]);
	free(kept);
	return true;
}

void wss_heat_flush(struct wss_page_range *carry, struct wss_top *top)
{
	if (carry->n && carry->value)
		wss_top_offer(top, carry);
	carry->n = 0;
}

/* State of the running sum along the memory. */
struct sum {
	struct wss_region_index regions;
	struct wss_page_range *carry;
	struct wss_top *top;
	uint64_t seen[CHUNK / 64]; /* pages of the chunk with a difference */
};

/* Extends the current range up to page, and splits it at the ends of regions. */
static void sum_extend(struct sum *sum, uint64_t page)
{
	struct wss_page_range *carry = sum->carry;

	while (carry->first + carry->n < page) {
		uint64_t at = carry->first + carry->n;
		uint64_t end = sum->regions.first[wss_region_index_of(&sum->regions, at) + 1];

		if (at == sum->regions.first[sum->regions.hint] && carry->n) {
			uint64_t value = carry->value;

			wss_heat_flush(carry, sum->top);
			*carry = (struct wss_page_range){.first = at, .value = value};
		}
		carry->n = carry->pages = (end < page ? end : page) - carry->first;
	}
}

/* Adds a difference from page on. */
static void sum_change(struct sum *sum, uint64_t page, uint32_t difference)
{
	uint32_t value = (uint32_t)sum->carry->value + difference;

	if (!difference)
		return;
	sum_extend(sum, page);
	wss_heat_flush(sum->carry, sum->top);
	*sum->carry = (struct wss_page_range){.first = page, .value = value};
}

static void add_chunk(struct wss_heat *heat, size_t chunk, uint64_t from, struct sum *sum)
{
	uint64_t base = (uint64_t)chunk * CHUNK;

	if (numbers_of(heat, chunk) == CHUNK) {
		for (uint64_t i = 0; i < CHUNK; i++)
			sum_change(sum, base + i, heat->store[from + i]);
		return;
	}
	for (uint64_t i = from; i < heat->place[chunk]; i += 2) {
		uint64_t page = heat->store[i] % CHUNK;

		heat->differences[page] += heat->store[i + 1];
		sum->seen[page / 64] |= 1ULL << page % 64;
	}
	for (uint64_t w = 0; w < CHUNK / 64 && heat->notes[chunk]; w++) {
		for (uint64_t left = sum->seen[w]; left; left &= left - 1) {
			uint64_t page = w * 64 + (uint64_t)__builtin_ctzll(left);

			sum_change(sum, base + page, heat->differences[page]);
			heat->differences[page] = 0;
		}
		sum->seen[w] = 0;
	}
}

void wss_heat_ranges(struct wss_heat *heat, const struct wss_recording *recording,
		     struct wss_page_range *carry, struct wss_top *top)
{
	struct sum sum = {.carry = carry, .top = top};
	uint64_t from = 0, end = (uint64_t)heat->end * CHUNK;

	wss_region_index_init(&sum.regions, recording);
	for (size_t chunk = heat->first; chunk < heat->end && !wss_stop_requested(); chunk++) {
		add_chunk(heat, chunk, from, &sum);
		from += numbers_of(heat, chunk);
	}
	sum_extend(&sum, end < heat->pages ? end : heat->pages);
}

void wss_heat_free(struct wss_heat *heat)
{
	free(heat->notes);
	free(heat->place);
	free(heat->store);
	free(heat->differences);
	*heat = (struct wss_heat){.pages = 0};
}
