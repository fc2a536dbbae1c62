/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tree behind a set of pages. A node has 64 slots, each of them empty, full or mixed; only the
 * mixed ones take memory. The slots of a leaf are words of 64 pages, those of the nodes above are
 * nodes. Sets share nodes until one of them changes, so copies cost nothing, and the parts that two
 * sets have in common are neither stored nor walked twice.
 */
#pragma once

#include "pages/pageset.h"

/* Number of pages in a slot as a power of two: in a leaf, and the increase with each level. */
#define WSS_LEAF_SHIFT 6
#define WSS_NODE_BITS 6
#define WSS_NODE_SLOTS 64U
#define WSS_NODE_LEVELS 5
#define WSS_LEAF_BITS (WSS_LEAF_SHIFT + WSS_NODE_BITS)
#define WSS_LEAF_PAGES (1U << WSS_LEAF_BITS)

union wss_slot {
	uint64_t word;
	struct wss_node *node;
};

struct wss_node {
	uint32_t refs;
	uint32_t room;	/* number of slots allocated */
	uint64_t count; /* number of pages */
	uint64_t mixed; /* bit i: slot i is mixed; slots[] has only the mixed ones, in order */
	uint64_t full;	/* bit i: all pages of slot i are in; never together with mixed */
	union wss_slot slots[];
};

/* Part of a set: a node, or a part that is full or empty. */
struct wss_part {
	struct wss_node *node; /* NULL: full or empty */
	bool full;
};

struct wss_pageset {
	uint64_t n_pages;
	uint64_t count;
	unsigned shift; /* of the root's slots */
	unsigned depth; /* number of nodes above each leaf */
	struct wss_node *root;
	struct wss_pageset_budget *budget; /* may be NULL */
	/*
	 * The leaf that changed last and the nodes above it, root first, none of them shared; see
	 * pageset-change.c.
	 */
	struct {
		uint64_t leaf;	/* number of the leaf */
		unsigned known; /* number of valid nodes in path */
		bool valid;	/* path is complete, including the leaf */
		struct wss_node *path[WSS_NODE_LEVELS];
		/* Pages that path[i] counts and path[i - 1] does not count yet, modulo 2^64. */
		uint64_t pending[WSS_NODE_LEVELS];
	} finger;
};

/*
 * Returns the number of bits set. Without a machine instruction, compilers would call a slower
 * function.
 */
static inline unsigned wss_bits(uint64_t word)
{
#ifdef __POPCNT__
	return (unsigned)__builtin_popcountll(word);
#else
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (unsigned)(word * 0x0101010101010101 >> 56);
#endif
}

static inline uint64_t wss_node_bit(unsigned i)
{
	return 1ULL << i;
}

/* Returns a mask of the bits first to end - 1; first < end <= 64. */
static inline uint64_t wss_node_mask(unsigned first, unsigned end)
{
	return UINT64_MAX << first & UINT64_MAX >> (64 - end);
}

/* Returns the slot that a page is in. */
static inline unsigned wss_node_slot(uint64_t page, unsigned shift)
{
	return (unsigned)(page >> shift) % WSS_NODE_SLOTS;
}

/* Whether the node is full or empty. */
static inline bool wss_node_uniform(const struct wss_node *node)
{
	return !node->mixed && (!node->full || node->full == UINT64_MAX);
}

static inline unsigned wss_node_place(const struct wss_node *node, unsigned i)
{
	uint64_t below = wss_node_bit(i) - 1, mixed = node->mixed & below;

	/* Counting bits would take longer than the rest of most changes. */
	return mixed == below ? i : mixed ? wss_bits(mixed) : 0;
}

static inline uint64_t wss_part_full(struct wss_part part)
{
	return part.node ? part.node->full : part.full ? UINT64_MAX : 0;
}

static inline uint64_t wss_part_mixed(struct wss_part part)
{
	return part.node ? part.node->mixed : 0;
}

static inline bool wss_part_same(struct wss_part a, struct wss_part b)
{
	return a.node == b.node && (a.node || a.full == b.full);
}

/* Returns slot i of an inner node. */
static inline struct wss_part wss_part_slot(struct wss_part part, unsigned i)
{
	if (!part.node)
		return part;
	if (part.node->mixed & wss_node_bit(i))
		return (struct wss_part){
			.node = part.node->slots[wss_node_place(part.node, i)].node};
	return (struct wss_part){.full = part.node->full & wss_node_bit(i)};
}

/* Returns slot i of a leaf. */
static inline uint64_t wss_part_word(struct wss_part part, unsigned i)
{
	if (!part.node)
		return part.full ? UINT64_MAX : 0;
	if (part.node->mixed & wss_node_bit(i))
		return part.node->slots[wss_node_place(part.node, i)].word;
	return part.node->full & wss_node_bit(i) ? UINT64_MAX : 0;
}

/*
 * Returns the slots that two parts do not share; those may still have the same pages. Sets that come
 * from each other share most of them. The parts are above the leaves.
 */
static inline uint64_t wss_part_differ(struct wss_part a, struct wss_part b)
{
	uint64_t in_a = wss_part_mixed(a), in_b = wss_part_mixed(b);
	uint64_t differ = (wss_part_full(a) ^ wss_part_full(b)) | (in_a ^ in_b);
	unsigned place_a = 0, place_b = 0;

	for (uint64_t left = in_a & in_b ? in_a | in_b : 0; left; left &= left - 1) {
		uint64_t bit = left & -left;
		bool both = in_a & in_b & bit;

		if (both && a.node->slots[place_a].node != b.node->slots[place_b].node)
			differ |= bit;
		place_a += (in_a & bit) != 0;
		place_b += (in_b & bit) != 0;
	}
	return differ;
}

/* Returns the number of pages in a part; shift is that of its slots. */
static inline uint64_t wss_part_count(struct wss_part part, unsigned shift)
{
	return part.node ? part.node->count : part.full ? (uint64_t)WSS_NODE_SLOTS << shift : 0;
}

/*
 * Adds to wss_pageset_steps() of this thread: visits of nodes, which may not be in the processor's
 * cache, and blocks of eight slots that are looked at or moved.
 */
extern _Thread_local uint64_t wss_pageset_steps_taken;

static inline void wss_pageset_step(unsigned slots)
{
	wss_pageset_steps_taken += 1 + slots / 8;
}

/* Makes an empty node with room for this number of slots; NULL when out of memory or budget. */
struct wss_node *wss_node_new(struct wss_pageset_budget *budget, unsigned room);

/* Moves a node without children to another budget, even if that exceeds the limit. */
void wss_node_move(const struct wss_node *node, struct wss_pageset_budget *from,
		   struct wss_pageset_budget *to);

/* Drops a reference and frees a node without references. shift: of its slots. */
void wss_node_put(struct wss_pageset_budget *budget, struct wss_node *node, unsigned shift);

/* Makes *node a node that nobody else references. Returns -1 when out of memory. */
int wss_node_own(struct wss_pageset_budget *budget, struct wss_node **node, unsigned shift);

/*
 * Makes slot i, which is not mixed, a mixed one. *node must not be shared, and may move. Returns
 * the slot for the caller to fill in, or NULL when out of memory.
 */
union wss_slot *wss_node_insert(struct wss_pageset_budget *budget, struct wss_node **node,
				unsigned i);

/*
 * Replaces slot i, which is full or empty, by a node. *node must not be shared, and may move.
 * Returns -1 when out of memory.
 */
int wss_node_expand(struct wss_pageset_budget *budget, struct wss_node **node, unsigned shift,
		    unsigned i);

/* Makes the mixed slots of mask full or empty, and drops their nodes. */
void wss_node_remove(struct wss_pageset_budget *budget, struct wss_node *node, unsigned shift,
		     uint64_t mask, bool full);

/* Takes the finger off, so that all nodes count their pages. Call before anything but a change. */
void wss_pageset_settle(const struct wss_pageset *set);

/* Adds or removes all pages of the leaves first to end - 1, like wss_pageset_add(). */
int64_t wss_pageset_fill(struct wss_pageset *set, uint64_t first, uint64_t end, bool in);
