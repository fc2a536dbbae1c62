/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/pageset.h"

#include <stdlib.h>
#include <string.h>

#define WORDS WSS_PAGESET_CHUNK_WORDS

struct wss_pageset {
	uint64_t n_pages;
	uint64_t count;
	size_t n_chunks;
	/* Each is empty_chunk, full_chunk, or a bitmap of its own. */
	const uint64_t **chunks;
	uint32_t *chunk_counts;
};

static const uint64_t empty_chunk[WORDS];
static const uint64_t full_chunk[WORDS] = { [0 ... WORDS - 1] = UINT64_MAX };

static bool owned(const uint64_t *chunk)
{
	return chunk != empty_chunk && chunk != full_chunk;
}

struct wss_pageset *wss_pageset_new(uint64_t n_pages)
{
	struct wss_pageset *set;

	if (n_pages > WSS_PAGESET_MAX_PAGES)
		return NULL;
	set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	set->n_pages = n_pages;
	set->n_chunks = (n_pages + WSS_PAGESET_CHUNK_PAGES - 1) / WSS_PAGESET_CHUNK_PAGES;
	set->chunks = calloc(set->n_chunks + 1, sizeof(*set->chunks));
	set->chunk_counts = calloc(set->n_chunks + 1, sizeof(*set->chunk_counts));
	if (!set->chunks || !set->chunk_counts) {
		set->n_chunks = 0;
		wss_pageset_free(set);
		return NULL;
	}
	for (size_t i = 0; i < set->n_chunks; i++)
		set->chunks[i] = empty_chunk;
	return set;
}

static void replace_chunk(struct wss_pageset *set, size_t i, const uint64_t *chunk)
{
	if (owned(set->chunks[i]))
		free((void *)set->chunks[i]);
	set->chunks[i] = chunk;
}

void wss_pageset_free(struct wss_pageset *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->n_chunks; i++)
		replace_chunk(set, i, empty_chunk);
	free(set->chunks);
	free(set->chunk_counts);
	free(set);
}

uint64_t wss_pageset_size(const struct wss_pageset *set)
{
	return set->n_pages;
}

uint64_t wss_pageset_count(const struct wss_pageset *set)
{
	return set->count;
}

/* A bitmap of its own for chunk i, to be changed; NULL when memory is short. */
static uint64_t *writable_chunk(struct wss_pageset *set, size_t i)
{
	uint64_t *copy;

	if (owned(set->chunks[i]))
		return (uint64_t *)set->chunks[i];
	copy = malloc(sizeof(empty_chunk));
	if (!copy)
		return NULL;
	memcpy(copy, set->chunks[i], sizeof(empty_chunk));
	set->chunks[i] = copy;
	return copy;
}

/* The bits of word w, of a run that begins at bit first and ends before bit end. */
static uint64_t mask_of(unsigned w, unsigned first, unsigned end)
{
	uint64_t mask = UINT64_MAX;

	if (first > w * 64)
		mask &= UINT64_MAX << (first - w * 64);
	if (end < (w + 1) * 64)
		mask &= UINT64_MAX >> ((w + 1) * 64 - end);
	return mask;
}

/* Sets or clears bits [first, end) of a chunk; gives how many changed, -1 without memory. */
static int change_chunk(struct wss_pageset *set, size_t i, unsigned first, unsigned end, bool in)
{
	uint32_t count = set->chunk_counts[i];
	uint64_t *words;
	int changed = 0;

	if (set->chunks[i] == (in ? full_chunk : empty_chunk))
		return 0;
	if (first == 0 && end == WSS_PAGESET_CHUNK_PAGES) {
		replace_chunk(set, i, in ? full_chunk : empty_chunk);
		set->chunk_counts[i] = in ? WSS_PAGESET_CHUNK_PAGES : 0;
		return (int)(in ? WSS_PAGESET_CHUNK_PAGES - count : count);
	}
	words = writable_chunk(set, i);
	if (!words)
		return -1;
	for (unsigned w = first / 64; w <= (end - 1) / 64; w++) {
		uint64_t bits = mask_of(w, first, end) & (in ? ~words[w] : words[w]);

		words[w] ^= bits;
		changed += __builtin_popcountll(bits);
	}
	count = in ? count + (uint32_t)changed : count - (uint32_t)changed;
	set->chunk_counts[i] = count;
	if (count == 0 || count == WSS_PAGESET_CHUNK_PAGES)
		replace_chunk(set, i, count ? full_chunk : empty_chunk);
	return changed;
}

static int64_t change(struct wss_pageset *set, uint64_t first, uint64_t n, bool in)
{
	int64_t total = 0;
	uint64_t end;

	if (first >= set->n_pages)
		return 0;
	end = n < set->n_pages - first ? first + n : set->n_pages;
	while (first < end) {
		size_t i = (size_t)(first / WSS_PAGESET_CHUNK_PAGES);
		uint64_t base = (uint64_t)i * WSS_PAGESET_CHUNK_PAGES;
		uint64_t stop = base + WSS_PAGESET_CHUNK_PAGES < end ? base + WSS_PAGESET_CHUNK_PAGES
								     : end;
		int changed = change_chunk(set, i, (unsigned)(first - base),
					   (unsigned)(stop - base), in);

		if (changed < 0)
			return -1;
		set->count = in ? set->count + (uint64_t)changed : set->count - (uint64_t)changed;
		total += changed;
		first = stop;
	}
	return total;
}

int64_t wss_pageset_add(struct wss_pageset *set, uint64_t first, uint64_t n)
{
	return change(set, first, n, true);
}

int64_t wss_pageset_remove(struct wss_pageset *set, uint64_t first, uint64_t n)
{
	return change(set, first, n, false);
}

static void note_chunk(struct wss_pageset_parts *parts, uint64_t page)
{
	uint64_t chunk = page / WSS_PAGESET_CHUNK_PAGES, bit = 1ULL << (chunk % 64);

	if (page >= WSS_PAGESET_MAX_PAGES || parts->seen[chunk / 64] & bit)
		return;
	parts->seen[chunk / 64] |= bit;
	parts->n++;
}

uint64_t wss_pageset_note_parts(struct wss_pageset_parts *parts, struct wss_run run)
{
	uint64_t end = run.first + run.n;

	if (run.n && run.first % WSS_PAGESET_CHUNK_PAGES)
		note_chunk(parts, run.first);
	if (run.n && end % WSS_PAGESET_CHUNK_PAGES)
		note_chunk(parts, end - 1);
	return parts->n;
}

int wss_pageset_copy(struct wss_pageset *to, const struct wss_pageset *from)
{
	for (size_t i = 0; i < to->n_chunks; i++) {
		uint64_t *words;

		if (!owned(from->chunks[i])) {
			replace_chunk(to, i, from->chunks[i]);
		} else {
			words = writable_chunk(to, i);
			if (!words)
				return -1;
			memcpy(words, from->chunks[i], sizeof(empty_chunk));
		}
		to->count = to->count - to->chunk_counts[i] + from->chunk_counts[i];
		to->chunk_counts[i] = from->chunk_counts[i];
	}
	return 0;
}

bool wss_pageset_has(const struct wss_pageset *set, uint64_t page)
{
	return page < set->n_pages &&
	       (set->chunks[page / WSS_PAGESET_CHUNK_PAGES][page / 64 % WORDS] >> (page % 64) & 1);
}

static uint64_t word_at(const struct wss_pageset *set, const struct wss_pageset *without,
			uint64_t w)
{
	uint64_t word = set->chunks[w / WORDS][w % WORDS];

	return without ? word & ~without->chunks[w / WORDS][w % WORDS] : word;
}

/* Whether every page of chunk i is in (value true), or none (false), as far as can be told fast. */
static bool chunk_is(const struct wss_pageset *set, const struct wss_pageset *without, size_t i,
		     bool value)
{
	if (value)
		return set->chunks[i] == full_chunk &&
		       (!without || without->chunks[i] == empty_chunk);
	return set->chunks[i] == empty_chunk || (without && without->chunks[i] == full_chunk);
}

/* The first page at or behind from that is in (value true) or is not; n_pages if none. */
static uint64_t find(const struct wss_pageset *set, const struct wss_pageset *without,
		     uint64_t from, bool value)
{
	while (from < set->n_pages) {
		uint64_t w = from / 64, word;

		if (chunk_is(set, without, (size_t)(w / WORDS), !value)) {
			from = (w / WORDS + 1) * WSS_PAGESET_CHUNK_PAGES;
			continue;
		}
		word = word_at(set, without, w);
		word = (value ? word : ~word) & (UINT64_MAX << (from % 64));
		if (word) {
			from = w * 64 + (uint64_t)__builtin_ctzll(word);
			break;
		}
		from = (w + 1) * 64;
	}
	return from < set->n_pages ? from : set->n_pages;
}

bool wss_pageset_next(const struct wss_pageset *set, const struct wss_pageset *without,
		      uint64_t from, struct wss_run *ret_run)
{
	uint64_t first = find(set, without, from, true);

	if (first == set->n_pages)
		return false;
	*ret_run = (struct wss_run){ first, find(set, without, first, false) - first };
	return true;
}

uint64_t wss_pageset_count_run(const struct wss_pageset *set, struct wss_run run)
{
	struct wss_pageset_overlap overlap = wss_pageset_compare(set, set, NULL, run);

	return overlap.both;
}

static void compare_words(const uint64_t *a, const uint64_t *b, const uint64_t *all,
			  unsigned first, unsigned end, struct wss_pageset_overlap *sum)
{
	for (unsigned w = first / 64; w <= (end - 1) / 64; w++) {
		uint64_t mask = mask_of(w, first, end);

		sum->both += (uint64_t)__builtin_popcountll(a[w] & b[w] & mask);
		sum->only_a += (uint64_t)__builtin_popcountll(a[w] & ~b[w] & mask);
		sum->only_b += (uint64_t)__builtin_popcountll(b[w] & ~a[w] & mask);
		sum->neither += (uint64_t)__builtin_popcountll(all[w] & ~(a[w] | b[w]) & mask);
	}
}

struct wss_pageset_overlap wss_pageset_compare(const struct wss_pageset *a,
					       const struct wss_pageset *b,
					       const struct wss_pageset *all, struct wss_run run)
{
	struct wss_pageset_overlap sum = { 0 };
	uint64_t end, first = run.first;

	if (first >= a->n_pages)
		return sum;
	end = run.n < a->n_pages - first ? first + run.n : a->n_pages;
	while (first < end) {
		size_t i = (size_t)(first / WSS_PAGESET_CHUNK_PAGES);
		uint64_t base = (uint64_t)i * WSS_PAGESET_CHUNK_PAGES;
		uint64_t stop = base + WSS_PAGESET_CHUNK_PAGES < end ? base + WSS_PAGESET_CHUNK_PAGES
								     : end;

		if (a->chunks[i] != empty_chunk || b->chunks[i] != empty_chunk ||
		    (all && all->chunks[i] != empty_chunk))
			compare_words(a->chunks[i], b->chunks[i],
				      all ? all->chunks[i] : empty_chunk, (unsigned)(first - base),
				      (unsigned)(stop - base), &sum);
		first = stop;
	}
	return sum;
}
