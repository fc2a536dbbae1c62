/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of pages, numbered from 0. Time and memory follow the number of runs of adjacent pages
 * in it, whatever their length, up to about 1/28000 of the memory that it describes: 36 MiB for
 * 1 TiB. A copy shares the memory of what it was made of until one of the two changes, so
 * that sets must not be used by several threads when one is a copy of another.
 */
#ifndef WSS_WSS_PAGESET_H
#define WSS_WSS_PAGESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many pages at most: 16 TiB of 4 KiB each. */
#define WSS_PAGESET_MAX_PAGES (1ULL << 32)

#define WSS_PAGESET_CHUNK_PAGES 32768U

#define WSS_PAGESET_MAX_CHUNKS (WSS_PAGESET_MAX_PAGES / WSS_PAGESET_CHUNK_PAGES)

/* n adjacent pages. */
struct wss_run {
	uint64_t first;
	uint64_t n;
};

struct wss_pageset;

/* Slots of a node come in multiples of this; a node has up to 64. */
#define WSS_SPARE_STEP 4U
#define WSS_SPARE_SIZES 16

struct wss_node;

/* Nodes of one size that are free for the next that are needed; the last of them first. */
struct wss_pageset_spare {
	struct wss_node **nodes;
	size_t n, room;
};

/* How much memory some sets may take together. At first all zero but for the limit. */
struct wss_pageset_budget {
	uint64_t limit_bytes;
	uint64_t used_bytes; /* spare nodes included */
	bool exceeded;	     /* something failed because used_bytes had reached the limit */
	struct wss_pageset_spare spare[WSS_SPARE_SIZES];
	uint64_t spare_bytes;
};

/* Frees the spare nodes; after the sets that were limited by the budget are freed, all is. */
void wss_pageset_budget_clear(struct wss_pageset_budget *budget);

/* Memory of others that counts, too. false: there is not so much left, and none was taken. */
bool wss_pageset_charge(struct wss_pageset_budget *budget, uint64_t bytes);

/* An empty set of pages 0 to n_pages - 1; NULL when memory is short, or n_pages over the limit. */
struct wss_pageset *wss_pageset_new(uint64_t n_pages);

/*
 * Of an empty set: what it takes from now on counts, and adding to it or taking from it fails
 * where the budget is used up. budget outlives the set, and what is copied from it; NULL: no limit.
 */
void wss_pageset_limit(struct wss_pageset *set, struct wss_pageset_budget *budget);

/* Takes NULL. */
void wss_pageset_free(struct wss_pageset *set);

uint64_t wss_pageset_size(const struct wss_pageset *set);  /* n_pages of wss_pageset_new() */
uint64_t wss_pageset_count(const struct wss_pageset *set); /* pages in it */

/*
 * Puts the pages of a run in, or takes them out; those behind the end are ignored. Gives how
 * many were not in it, or were in it, before; -1 when memory is short (the set is then
 * valid, but only part of the run may be done).
 */
int64_t wss_pageset_add(struct wss_pageset *set, uint64_t first, uint64_t n);
int64_t wss_pageset_remove(struct wss_pageset *set, uint64_t first, uint64_t n);

/*
 * Says that a run at page will be added or removed soon. The set stays as it is; what the change
 * needs is fetched into the processor's cache. Once for pages with the same number when divided
 * by WSS_PAGESET_NEAR_PAGES.
 */
#define WSS_PAGESET_NEAR_PAGES 4096U
void wss_pageset_expect(const struct wss_pageset *set, uint64_t page);

/*
 * Makes to the same as from, of the same size and budget. Takes neither time nor memory, and
 * never fails: 0.
 */
int wss_pageset_copy(struct wss_pageset *to, const struct wss_pageset *from);

/* Takes out of set what is not in other, of the same size and budget. -1 when memory is short. */
int wss_pageset_keep(struct wss_pageset *set, const struct wss_pageset *other);

/*
 * Takes out of set what is in gone and not in but; all of the same size and budget. -1 when
 * memory is short.
 */
int wss_pageset_take_out(struct wss_pageset *set, const struct wss_pageset *gone,
			 const struct wss_pageset *but);

bool wss_pageset_has(const struct wss_pageset *set, uint64_t page);

/*
 * Which chunks of 128 MiB some runs have covered in part. Only those can be mixed in sets that are
 * made of these runs, however many sets: so it says beforehand how much memory one may need.
 */
struct wss_pageset_parts {
	uint64_t seen[WSS_PAGESET_MAX_CHUNKS / 64];
	uint64_t n;
};

/* Notes a run. Gives how many chunks there are now. */
uint64_t wss_pageset_note_parts(struct wss_pageset_parts *parts, struct wss_run run);

/*
 * The first run of pages that are in set and not in without (may be NULL; of the same size),
 * at page from or behind. false: there is none.
 */
bool wss_pageset_next(const struct wss_pageset *set, const struct wss_pageset *without,
		      uint64_t from, struct wss_run *ret_run);

/* How many pages of the run are in the set. */
uint64_t wss_pageset_count_run(const struct wss_pageset *set, struct wss_run run);

/* How many pages are in set and not in without, of the same size. */
uint64_t wss_pageset_count_without(const struct wss_pageset *set,
				   const struct wss_pageset *without);

/* In set a but not in b, in b but not in a, in both; in all but in neither of them. */
struct wss_pageset_overlap {
	uint64_t only_a;
	uint64_t only_b;
	uint64_t both;
	uint64_t neither;
};

/* Counts over the pages of a run. The three are of the same size; all may be NULL. */
struct wss_pageset_overlap wss_pageset_compare(const struct wss_pageset *a,
					       const struct wss_pageset *b,
					       const struct wss_pageset *all, struct wss_run run);

#endif
