/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/pages.h"

struct wss_pages wss_pages_of_bits(const uint64_t *words, uint64_t n_words)
{
	return (struct wss_pages){.known = true, .words = words, .n_words = n_words};
}

struct wss_pages wss_pages_of_set(const struct wss_pageset *set)
{
	return (struct wss_pages){.known = true, .set = set};
}

/* Returns the first bit at or after from that equals value; end if there is none. */
static uint64_t find_bit(const uint64_t *words, uint64_t from, uint64_t end, bool value)
{
	while (from < end) {
		uint64_t word = value ? words[from / 64] : ~words[from / 64];

		word &= UINT64_MAX << (from % 64);
		if (word) {
			from = from / 64 * 64 + (uint64_t)__builtin_ctzll(word);
			break;
		}
		from = (from / 64 + 1) * 64;
	}
	return from < end ? from : end;
}

static bool next_in_bits(const struct wss_pages *pages, uint64_t from, uint64_t end,
			 struct wss_run *ret_run)
{
	uint64_t first;

	if (end > pages->n_words * 64)
		end = pages->n_words * 64;
	first = find_bit(pages->words, from, end, true);
	if (first >= end)
		return false;
	*ret_run = (struct wss_run){first, find_bit(pages->words, first, end, false) - first};
	return true;
}

static bool next_in_set(const struct wss_pages *pages, uint64_t from, uint64_t end,
			struct wss_run *ret_run)
{
	struct wss_run run;

	if (from >= end || !wss_pageset_next(pages->set, NULL, from, &run) || run.first >= end)
		return false;
	if (run.n > end - run.first)
		run.n = end - run.first;
	*ret_run = run;
	return true;
}

bool wss_pages_next(const struct wss_pages *pages, uint64_t from, uint64_t end,
		    struct wss_run *ret_run)
{
	if (!pages->known)
		return false;
	return pages->set ? next_in_set(pages, from, end, ret_run)
			  : next_in_bits(pages, from, end, ret_run);
}
