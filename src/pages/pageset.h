/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A set of pages, numbered from 0. Time and memory depend on the number of runs of adjacent
 * pages, not on their length. A set takes at most about 1/28000 of the memory that it
 * describes: 36 MiB for 1 TiB. A copy shares memory with its source until one of them changes,
 * so different threads must not use a set and its copies at the same time.
 *
 * CRoaring's sets do not share what is equal: 1,000 windows of a recording of 1 TiB, each merged into a reference set
 * of 10 million scattered pages, take 30 s with CRoaring 0.2.66 and 9 ms here, which a file made to be expensive would
 * use. It takes 18 MiB where these take 35, but has no limit on the memory that sets have together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest number of pages: 16 TiB of 4 KiB each. */
#define WSS_PAGESET_MAX_PAGES (1ULL << 32)

#define WSS_PAGESET_CHUNK_PAGES 32768U

#define WSS_PAGESET_MAX_CHUNKS (WSS_PAGESET_MAX_PAGES / WSS_PAGESET_CHUNK_PAGES)

/* Run of n adjacent pages. */
struct wss_run {
	uint64_t first;
	uint64_t n;
};

struct wss_pageset;

/* Nodes have slots in multiples of this, up to 64. */
#define WSS_SPARE_STEP 4U
#define WSS_SPARE_SIZES 16

struct wss_node;

/* Stack of free nodes of one size. */
struct wss_pageset_spare {
	struct wss_node **nodes;
	size_t n, room;
};

/*
 * Limit on the combined memory of some sets, and on the work of a thread that changes them. Starts
 * as all zero except for the limits.
 */
struct wss_pageset_budget {
	uint64_t limit_bytes;
	uint64_t used_bytes; /* including spare nodes */
	bool exceeded;	     /* an operation failed because used_bytes reached the limit */
	/* Changes that need memory fail once wss_pageset_steps() is larger; 0: unlimited. */
	uint64_t last_step;
	struct wss_pageset_spare spare[WSS_SPARE_SIZES];
	uint64_t spare_bytes;
};

/*
 * Frees the spare nodes. After the sets under the budget have been freed, this frees the rest
 * of its memory.
 */
void wss_pageset_budget_clear(struct wss_pageset_budget *budget);

/*
 * Counts other memory against the budget. Returns false, and counts nothing, if that would
 * exceed the limit.
 */
bool wss_pageset_charge(struct wss_pageset_budget *budget, uint64_t bytes);

/*
 * Makes an empty set of pages 0 to n_pages - 1; NULL when out of memory, or if n_pages is over the
 * limit.
 */
struct wss_pageset *wss_pageset_new(uint64_t n_pages);

/*
 * Puts an empty set under a budget: its memory counts from now on, and changes fail once the budget
 * is used up. The budget must outlive the set and its copies; NULL means no limit.
 */
void wss_pageset_limit(struct wss_pageset *set, struct wss_pageset_budget *budget);

/*
 * Returns the number of steps that all operations on sets of this thread have taken so far: a
 * measure of time that does not depend on the machine. A step takes 2 to 50 ns.
 */
uint64_t wss_pageset_steps(void);

/* Whether this thread has taken more steps than a budget allows. NULL: unlimited. */
bool wss_pageset_steps_exceeded(const struct wss_pageset_budget *budget);

/* Frees a set; accepts NULL. */
void wss_pageset_free(struct wss_pageset *set);

uint64_t wss_pageset_size(const struct wss_pageset *set);  /* n_pages of wss_pageset_new() */
uint64_t wss_pageset_count(const struct wss_pageset *set); /* number of pages in the set */

/*
 * Adds the pages of a run, or removes them; pages beyond the end are ignored. Returns the
 * number of pages that changed, or -1 when out of memory (the set is then valid, but may
 * contain only part of the change).
 */
int64_t wss_pageset_add(struct wss_pageset *set, uint64_t first, uint64_t n);
int64_t wss_pageset_remove(struct wss_pageset *set, uint64_t first, uint64_t n);

/*
 * Announces that a run at page will be added or removed soon. The set does not change; the memory
 * that the change needs is fetched into the processor's cache. Call once for all pages with the
 * same number when divided by WSS_PAGESET_NEAR_PAGES.
 */
#define WSS_PAGESET_NEAR_PAGES 4096U
void wss_pageset_expect(const struct wss_pageset *set, uint64_t page);

/*
 * Makes to the same as from, which has the same size and budget. Takes neither time nor memory, and
 * always returns 0.
 */
int wss_pageset_copy(struct wss_pageset *to, const struct wss_pageset *from);

/*
 * Removes from set all pages that are not in other, of the same size and budget. Returns -1 when
 * out of memory.
 */
int wss_pageset_keep(struct wss_pageset *set, const struct wss_pageset *other);

/*
 * Removes from set the pages that are in gone and not in but; all have the same size and budget.
 * Returns -1 when out of memory.
 */
int wss_pageset_take_out(struct wss_pageset *set, const struct wss_pageset *gone,
			 const struct wss_pageset *but);

bool wss_pageset_has(const struct wss_pageset *set, uint64_t page);

/*
 * The chunks of 128 MiB that some runs have covered in part. Only these chunks can be mixed in
 * a set made from the runs, so their number bounds the memory of each such set.
 */
struct wss_pageset_parts {
	uint64_t seen[WSS_PAGESET_MAX_CHUNKS / 64];
	uint64_t n;
};

/* Notes a run. Returns the number of chunks so far. */
uint64_t wss_pageset_note_parts(struct wss_pageset_parts *parts, struct wss_run run);

/*
 * Finds the first run of pages, at page from or later, that are in set and not in without (may be
 * NULL; of the same size). Returns false if there is none.
 */
bool wss_pageset_next(const struct wss_pageset *set, const struct wss_pageset *without,
		      uint64_t from, struct wss_run *ret_run);

/* Returns the number of pages of the run that are in the set. */
uint64_t wss_pageset_count_run(const struct wss_pageset *set, struct wss_run run);

/* Returns the number of pages in set and not in without, of the same size. */
uint64_t wss_pageset_count_without(const struct wss_pageset *set,
				   const struct wss_pageset *without);

/*
 * Number of pages in set a but not in b, in b but not in a, in both; in all but in neither of them.
 */
struct wss_pageset_overlap {
	uint64_t only_a;
	uint64_t only_b;
	uint64_t both;
	uint64_t neither;
};

/* Compares three sets of the same size over the pages of a run; each may be NULL. */
struct wss_pageset_overlap wss_pageset_compare(const struct wss_pageset *a,
					       const struct wss_pageset *b,
					       const struct wss_pageset *all, struct wss_run run);
