/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/pageset.h"

#include <stdlib.h>

#include "wss/pageset-private.h"

#define LEAF_PAGES 4096U
#define LEAF_BITS 12

static unsigned slot_of(uint64_t page, unsigned shift)
{
	return (unsigned)(page >> shift) % WSS_NODE_SLOTS;
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
	set->shift = WSS_LEAF_SHIFT;
	while (n_pages > (uint64_t)WSS_NODE_SLOTS << set->shift)
		set->shift += WSS_NODE_BITS;
	set->root = wss_node_new(NULL, 0);
	if (!set->root) {
		free(set);
		return NULL;
	}
	return set;
}

void wss_pageset_limit(struct wss_pageset *set, struct wss_pageset_budget *budget)
{
	wss_node_move(set->root, set->budget, budget);
	set->budget = budget;
}

void wss_pageset_free(struct wss_pageset *set)
{
	if (!set)
		return;
	wss_node_put(set->budget, set->root, set->shift);
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

void wss_pageset_settle(const struct wss_pageset *set)
{
	/* It is a cache: what the set holds does not change. */
	struct wss_pageset *mutable = (struct wss_pageset *)set;

	if (!set->finger.valid)
		return;
	for (unsigned i = 0; i < set->finger.depth; i++)
		mutable->finger.path[i]->count += set->finger.pending;
	mutable->finger.valid = false;
}

/*
 * The leaf with this number as it is, and whether anything on the way to it is shared. The
 * finger is on it where nothing is, and it is neither full nor empty.
 */
static struct wss_part find_leaf(struct wss_pageset *set, uint64_t leaf, bool *ret_shared)
{
	struct wss_part part = {.node = set->root};
	unsigned shift = set->shift, depth = 0;

	wss_pageset_settle(set);
	*ret_shared = set->root->refs > 1;
	set->finger.path[0] = set->root;
	for (; part.node && shift > WSS_LEAF_SHIFT; shift -= WSS_NODE_BITS) {
		part = wss_part_slot(part, slot_of(leaf << LEAF_BITS, shift));
		*ret_shared |= part.node && part.node->refs > 1;
		set->finger.path[++depth] = part.node;
	}
	if (part.node && !*ret_shared) {
		set->finger.depth = depth;
		set->finger.leaf = leaf;
		set->finger.pending = 0;
		set->finger.valid = true;
	}
	return part;
}

/* A node in the place of slot i, which is full or empty. *node may move. */
static int expand(struct wss_pageset *set, struct wss_node **node, unsigned shift, unsigned i)
{
	bool full = (*node)->full & wss_node_bit(i);
	struct wss_node *child = wss_node_new(set->budget, 0);
	union wss_slot *slot;

	if (!child)
		return -1;
	child->full = full ? UINT64_MAX : 0;
	child->count = full ? 1ULL << shift : 0;
	slot = wss_node_insert(set->budget, node, i);
	if (!slot) {
		wss_node_put(set->budget, child, shift - WSS_NODE_BITS);
		return -1;
	}
	slot->node = child;
	return 0;
}

/* Puts the finger on a leaf, to be changed. */
static int reach(struct wss_pageset *set, uint64_t leaf)
{
	struct wss_node **at = &set->root;
	unsigned shift = set->shift, depth = 0;

	wss_pageset_settle(set);
	for (;;) {
		unsigned i = slot_of(leaf << LEAF_BITS, shift);

		if (wss_node_own(set->budget, at, shift) < 0)
			return -1;
		if (shift > WSS_LEAF_SHIFT && !((*at)->mixed & wss_node_bit(i)) &&
		    expand(set, at, shift, i) < 0)
			return -1;
		set->finger.path[depth] = *at;
		if (shift == WSS_LEAF_SHIFT)
			break;
		at = &(*at)->slots[wss_node_place(*at, i)].node;
		shift -= WSS_NODE_BITS;
		depth++;
	}
	set->finger.depth = depth;
	set->finger.leaf = leaf;
	set->finger.pending = 0;
	set->finger.valid = true;
	return 0;
}

/* Where the pointer to the finger's leaf is. */
static struct wss_node **leaf_pointer(struct wss_pageset *set)
{
	struct wss_node *parent;
	unsigned i = (unsigned)(set->finger.leaf % WSS_NODE_SLOTS);

	if (!set->finger.depth)
		return &set->root;
	parent = set->finger.path[set->finger.depth - 1];
	return &parent->slots[wss_node_place(parent, i)].node;
}

/* Sets or clears n bits of a word of the finger's leaf; gives how many changed, -1 without
 * memory. */
static int change_word(struct wss_pageset *set, unsigned i, uint64_t bits, unsigned n, bool in)
{
	struct wss_node *leaf = set->finger.path[set->finger.depth];
	bool mixed = leaf->mixed & wss_node_bit(i);
	union wss_slot *slot = mixed ? &leaf->slots[wss_node_place(leaf, i)] : NULL;
	uint64_t word = mixed ? slot->word : leaf->full & wss_node_bit(i) ? UINT64_MAX : 0;
	uint64_t all = bits;

	bits &= in ? ~word : word;
	if (!bits)
		return 0;
	word ^= bits;
	if (mixed && word != 0 && word != UINT64_MAX) {
		slot->word = word;
	} else if (mixed) {
		wss_node_remove(set->budget, leaf, WSS_LEAF_SHIFT, wss_node_bit(i), word);
	} else if (word == 0 || word == UINT64_MAX) {
		leaf->full ^= wss_node_bit(i);
	} else {
		struct wss_node **at = leaf_pointer(set);

		slot = wss_node_insert(set->budget, at, i);
		set->finger.path[set->finger.depth] = *at;
		if (!slot)
			return -1;
		slot->word = word;
	}
	return bits == all ? (int)n : (int)wss_bits(bits);
}

/* The same for all of some words. */
static int change_words(struct wss_pageset *set, uint64_t mask, bool in)
{
	struct wss_node *leaf = set->finger.path[set->finger.depth];
	int changed =
		64 * (int)wss_bits(mask & ~leaf->mixed & (in ? ~leaf->full : leaf->full));

	for (uint64_t left = mask & leaf->mixed; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		int n = (int)wss_bits(leaf->slots[wss_node_place(leaf, i)].word);

		changed += in ? 64 - n : n;
	}
	wss_node_remove(set->budget, leaf, WSS_LEAF_SHIFT, mask, in);
	leaf->full = in ? leaf->full | mask : leaf->full & ~mask;
	return changed;
}

static bool uniform(const struct wss_node *node)
{
	return !node->mixed && (!node->full || node->full == UINT64_MAX);
}

/* Takes nodes on the finger's way out that are full or empty now. */
static void collapse(struct wss_pageset *set)
{
	unsigned shift = WSS_LEAF_SHIFT + WSS_NODE_BITS;

	wss_pageset_settle(set);
	for (unsigned d = set->finger.depth; d > 0; d--, shift += WSS_NODE_BITS) {
		struct wss_node *node = set->finger.path[d];

		if (!uniform(node))
			break;
		wss_node_remove(set->budget, set->finger.path[d - 1], shift,
				wss_node_bit(slot_of(set->finger.leaf << LEAF_BITS, shift)),
				node->full);
	}
}

static void count(struct wss_pageset *set, int changed, bool in)
{
	uint64_t difference = in ? (uint64_t)changed : 0 - (uint64_t)changed;

	set->finger.path[set->finger.depth]->count += difference;
	set->finger.pending += difference;
	set->count += difference;
}

/* Pages first to end - 1 of the finger's leaf. */
static int64_t change_at_finger(struct wss_pageset *set, unsigned first, unsigned end, bool in)
{
	unsigned a = first / 64, b = (end - 1) / 64;
	int total = 0;

	for (unsigned i = a; i <= b;) {
		unsigned low = i == a ? first % 64 : 0,
			 high = i == b ? (end - 1) % 64 + 1 : 64;
		unsigned next = i + 1;
		int changed;

		if (low == 0 && high == 64) {
			next = end / 64;
			changed = change_words(set, wss_node_mask(i, next), in);
		} else {
			changed =
				change_word(set, i, wss_node_mask(low, high), high - low, in);
		}
		if (changed < 0)
			return -1;
		count(set, changed, in);
		total += changed;
		i = next;
	}
	if (uniform(set->finger.path[set->finger.depth]))
		collapse(set);
	return total;
}

static bool would_change(struct wss_part leaf, unsigned first, unsigned end, bool in)
{
	for (unsigned i = first / 64; i <= (end - 1) / 64; i++) {
		uint64_t word = wss_part_word(leaf, i);
		uint64_t bits = wss_node_mask(i == first / 64 ? first % 64 : 0,
					      i == (end - 1) / 64 ? (end - 1) % 64 + 1 : 64);

		if (bits & (in ? ~word : word))
			return true;
	}
	return false;
}

/* Pages first to end - 1 of a leaf. */
static int64_t change_leaf(struct wss_pageset *set, uint64_t leaf, unsigned first,
			   unsigned end, bool in)
{
	if (!set->finger.valid || set->finger.leaf != leaf) {
		bool shared;
		struct wss_part part = find_leaf(set, leaf, &shared);

		if (!part.node && part.full == in)
			return 0;
		/* What others have, too, is copied only to be changed. */
		if (shared && !would_change(part, first, end, in))
			return 0;
		if (!set->finger.valid && reach(set, leaf) < 0)
			return -1;
	}
	return change_at_finger(set, first, end, in);
}

/* The slots of a mask, all of each; their node is nobody else's. Gives how many pages changed.
 */
static uint64_t fill_slots(struct wss_pageset *set, struct wss_node *node, unsigned shift,
			   uint64_t mask, bool in)
{
	uint64_t same = in ? node->full : ~node->full & ~node->mixed;
	uint64_t changed = (uint64_t)wss_bits(mask & ~same) << shift;

	for (uint64_t left = mask & node->mixed; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t n = node->slots[wss_node_place(node, i)].node->count;

		/* A mixed slot was taken for one that changes as a whole. */
		changed -= in ? n : (1ULL << shift) - n;
	}
	wss_node_remove(set->budget, node, shift, mask, in);
	node->full = in ? node->full | mask : node->full & ~mask;
	return changed;
}

static int fill(struct wss_pageset *set, struct wss_node **at, unsigned shift, uint64_t first,
		uint64_t end, bool in, uint64_t *changed);

/* Pages first to end - 1 of slot i, in part. */
static int fill_part(struct wss_pageset *set, struct wss_node **at, unsigned shift, unsigned i,
		     uint64_t first, uint64_t end, bool in, uint64_t *changed)
{
	uint64_t bit = wss_node_bit(i);
	struct wss_node **child;
	int r;

	if (!((*at)->mixed & bit)) {
		if (!((*at)->full & bit) == !in)
			return 0;
		if (expand(set, at, shift, i) < 0)
			return -1;
	}
	child = &(*at)->slots[wss_node_place(*at, i)].node;
	r = fill(set, child, shift - WSS_NODE_BITS, first, end, in, changed);
	if (uniform(*child))
		wss_node_remove(set->budget, *at, shift, bit, (*child)->full);
	return r;
}

/* Pages first to end - 1 of a node that is no leaf: whole leaves. Adds up how many changed. */
static int fill(struct wss_pageset *set, struct wss_node **at, unsigned shift, uint64_t first,
		uint64_t end, bool in, uint64_t *changed)
{
	uint64_t before = *changed;
	int r = wss_node_own(set->budget, at, shift);

	if (r < 0)
		return -1;
	while (first < end && r == 0) {
		unsigned i = slot_of(first, shift);
		uint64_t base = (uint64_t)i << shift, stop = base + (1ULL << shift);

		if (first == base && end >= stop) {
			unsigned next = (unsigned)(end >> shift);

			*changed += fill_slots(set, *at, shift, wss_node_mask(i, next), in);
			stop = (uint64_t)next << shift;
		} else {
			stop = stop < end ? stop : end;
			r = fill_part(set, at, shift, i, first - base, stop - base, in,
				      changed);
		}
		first = stop;
	}
	(*at)->count =
		in ? (*at)->count + (*changed - before) : (*at)->count - (*changed - before);
	return r;
}

/* Leaves first to end - 1, all of each. */
static int64_t change_leaves(struct wss_pageset *set, uint64_t first, uint64_t end, bool in)
{
	uint64_t changed = 0;
	int r;

	if (first >= end)
		return 0;
	wss_pageset_settle(set);
	r = fill(set, &set->root, set->shift, first << LEAF_BITS, end << LEAF_BITS, in,
		 &changed);
	set->count = in ? set->count + changed : set->count - changed;
	return r < 0 ? -1 : (int64_t)changed;
}

/*
 * The change that most changes are: of bits of one mixed word of the finger's leaf, which is
 * mixed behind that, too. false: it is another one. Nothing moves.
 */
static inline bool change_at_once(struct wss_pageset *set, uint64_t first, uint64_t end,
				  bool in, int64_t *ret_changed)
{
	unsigned i = (unsigned)(first / 64) % WSS_NODE_SLOTS, low = first % 64;
	uint64_t mask = wss_node_mask(low, low + (unsigned)(end - first)), bits, word;
	struct wss_node *leaf = set->finger.path[set->finger.depth];
	union wss_slot *slot;

	if (!(leaf->mixed & wss_node_bit(i)))
		return false;
	slot = &leaf->slots[wss_node_place(leaf, i)];
	bits = in ? mask & ~slot->word : mask & slot->word;
	word = slot->word ^ bits;
	if (word == 0 || word == UINT64_MAX)
		return false;
	slot->word = word;
	*ret_changed = bits == mask ? (int64_t)(end - first) : (int64_t)wss_bits(bits);
	count(set, (int)*ret_changed, in);
	return true;
}

static int64_t change(struct wss_pageset *set, uint64_t first, uint64_t n, bool in)
{
	uint64_t end, head, tail;
	int64_t total = 0, changed;

	if (first >= set->n_pages || !n)
		return 0;
	end = n < set->n_pages - first ? first + n : set->n_pages;
	head = first / LEAF_PAGES;
	tail = end / LEAF_PAGES;
	if (set->finger.valid && set->finger.leaf == head && first / 64 == (end - 1) / 64 &&
	    change_at_once(set, first, end, in, &total))
		return total;
	if (head == (end - 1) / LEAF_PAGES)
		return change_leaf(set, head, first % LEAF_PAGES, (end - 1) % LEAF_PAGES + 1,
				   in);
	if (first % LEAF_PAGES) {
		total = change_leaf(set, head++, first % LEAF_PAGES, LEAF_PAGES, in);
		if (total < 0)
			return -1;
	}
	changed = change_leaves(set, head, tail, in);
	if (changed < 0)
		return -1;
	total += changed;
	changed = end % LEAF_PAGES ? change_leaf(set, tail, 0, end % LEAF_PAGES, in) : 0;
	return changed < 0 ? -1 : total + changed;
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
	wss_pageset_settle(to);
	wss_pageset_settle(from);
	from->root->refs++;
	wss_node_put(to->budget, to->root, to->shift);
	to->root = from->root;
	to->count = from->count;
	return 0;
}
