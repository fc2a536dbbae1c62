/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pages that a window has seen: a read-only view of what a method keeps of them, be that a
 * bitmap or a set. Nothing is copied, so that a view costs the same for any size of guest. Pages
 * are of 4 KiB and numbered by guest-physical address: page i begins at i * 4096.
 */
#ifndef WSS_WSS_PAGES_H
#define WSS_WSS_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "wss/pageset.h"

struct wss_pages {
	bool known;		       /* false: nobody knows which pages; they are not none */
	const struct wss_pageset *set; /* NULL: the bitmap has them */
	const uint64_t *words;	       /* bit i % 64 of word i / 64 is page i */
	uint64_t n_words;
};

/* What one window has seen. Zero: nothing is known. */
struct wss_page_view {
	struct wss_pages touched;
	struct wss_pages written;
};

/* Views, known. What they show stays the caller's and must outlive them; it may grow meanwhile. */
struct wss_pages wss_pages_of_bits(const uint64_t *words, uint64_t n_words);
struct wss_pages wss_pages_of_set(const struct wss_pageset *set);

/*
 * The first run of adjacent pages at page from or behind, cut off at page end. false: there is none
 * before end, or the pages are not known.
 */
bool wss_pages_next(const struct wss_pages *pages, uint64_t from, uint64_t end,
		    struct wss_run *ret_run);

#endif
