/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room pages/: which pages of a guest were touched, and what follows from that. Structs in,
 * structs out; only reports and pictures write to a stream.
 *
 *   pageset.h    a set of pages; pages.h, this file: a view of the pages of one window
 *   recording.h  a recording as plain data; recording/ reads and writes the file
 *   refset.h     the reference set of a recording, its classes of pages and its phases
 *   heat.h       how often pages were touched
 *   moment.h     the set at a moment, for differences
 *   marks.h      the marks of a recording
 *   *-report.h, *-chart.h  the above as text, CSV, JSON and SVG
 *
 * In: the pages of each window, from a method or from a file. Out: sets, sizes, ranges. It has no
 * thread, and keeps nothing but what its callers hold.
 *
 * Begin with pageset.h and refset.h. What else a recording can show is a file with functions of a
 * struct wss_recfile_visitor (recording/reader.h), as refset.c has them.
 *
 * Guest-physical pages are 4 KiB. A page has a guest-physical frame number (gfn, its address /
 * 4096), and an index: its position among the pages of all regions, sorted by address. Everything
 * that counts or compares uses the index, so that holes in the address space cost nothing.
 */
#pragma once

/*
 * The pages touched in a window: a read-only view of a method's own bitmap or set. Nothing is
 * copied, so a view costs the same for any size of guest. Pages are 4 KiB and numbered by
 * guest-physical address: page i begins at i * 4096.
 */

#include <stdbool.h>
#include <stdint.h>

#include "pages/pageset.h"

struct wss_pages {
	/* false: it is unknown which pages, which is not the same as none */
	bool known;
	const struct wss_pageset *set; /* NULL: the pages are in the bitmap */
	const uint64_t *words;	       /* bit i % 64 of word i / 64 is page i */
	uint64_t n_words;
};

/* The pages touched and written in one window. All zero: nothing is known. */
struct wss_page_view {
	struct wss_pages touched;
	struct wss_pages written;
	/*
	 * Where touched is not known because the host maps the guest by more than 4 KiB: a page at least of
	 * each block of 2 MiB that was touched, and none of the others.
	 */
	struct wss_pages blocks;
};

/*
 * Make a view with known pages. The bitmap or set still belongs to the caller, must outlive
 * the view, and may grow meanwhile.
 */
struct wss_pages wss_pages_of_bits(const uint64_t *words, uint64_t n_words);
struct wss_pages wss_pages_of_set(const struct wss_pageset *set);

/*
 * Finds the first run of adjacent pages at or after page from, cut off at page end. Returns
 * false if there is none before end, or if the pages are not known.
 */
bool wss_pages_next(const struct wss_pages *pages, uint64_t from, uint64_t end,
		    struct wss_run *ret_run);
