/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adding runs of pages to a set, and removing them.
 *
 * Millions of changes come, mostly in the order of addresses, so a set keeps a finger on the leaf
 * that changed last and on the nodes above it. The next change climbs from there only as far as it
 * must. The finger holds only nodes that no other set shares: where the path to a leaf leads
 * through a shared node, the finger ends above that node. A node counts its pages only when the
 * finger leaves it or a node below it; pending[] holds the difference until then.
 */
#include "pages/pageset-private.h"

#define LEAF_PAGES WSS_LEAF_PAGES

_Static_assert(LEAF_PAGES == WSS_PAGESET_NEAR_PAGES, "a leaf is fetched at a time");

static unsigned slot_of(uint64_t leaf, unsigned shift)
{
	return wss_node_slot(leaf << WSS_LEAF_BITS, shift);
}

/* Removes the finger from the lowest node. */
static inline void finger_climb(struct wss_pageset *set)
{
	unsigned d = --set->finger.known;

	set->finger.valid = false;
	if (!d || !set->finger.pending[d])
		return;
	set->finger.path[d - 1]->count += set->finger.pending[d];
	set->finger.pending[d - 1] += set->finger.pending[d];
}

static inline void finger_extend(struct wss_pageset *set, struct wss_node *node)
{
	set->finger.path[set->finger.known] = node;
	set->finger.pending[set->finger.known] = 0;
	set->finger.known++;
}

void wss_pageset_settle(const struct wss_pageset *set)
{
	/* The finger is only a cache: the content of the set does not change. */
	struct wss_pageset *mutable = (struct wss_pageset *)set;

	while (mutable->finger.known)
		finger_climb(mutable);
}

/*
 * Finds the leaf with this number, and whether a node on the path to it is shared. If none is, and
 * the leaf is neither full nor empty, the finger is on it afterwards.
 */
static struct wss_part find_leaf(struct wss_pageset *set, uint64_t leaf, bool *ret_shared)
{
	uint64_t differ = leaf ^ set->finger.leaf;
	unsigned shift;
	struct wss_node *node;

	wss_pageset_step(0);
	while (set->finger.known &&
	       differ >> (WSS_NODE_BITS * (set->depth + 1 - set->finger.known)))
		finger_climb(set);
	set->finger.leaf = leaf;
	if (!set->finger.known && set->root->refs == 1)
		finger_extend(set, set->root);
	*ret_shared = !set->finger.known;
	node = *ret_shared ? set->root : set->finger.path[set->finger.known - 1];
	shift = set->shift;
	if (set->finger.known)
		shift -= WSS_NODE_BITS * (set->finger.known - 1);
	for (; shift > WSS_LEAF_SHIFT; shift -= WSS_NODE_BITS) {
		unsigned i = slot_of(leaf, shift), place;

		if (!(node->mixed & wss_node_bit(i)))
			return (struct wss_part){.full = node->full & wss_node_bit(i)};
		place = wss_node_place(node, i);
		node = node->slots[place].node;
		wss_pageset_step(0);
		*ret_shared |= node->refs > 1;
		if (!*ret_shared)
			finger_extend(set, node);
	}
	set->finger.valid = !*ret_shared;
	return (struct wss_part){.node = node};
}

/* Returns the pointer to a node of the finger. */
static struct wss_node **finger_pointer(struct wss_pageset *set, unsigned depth)
{
	struct wss_node *parent;
	unsigned shift = set->shift - WSS_NODE_BITS * (depth - 1);

	if (!depth)
		return &set->root;
	parent = set->finger.path[depth - 1];
	return &parent->slots[wss_node_place(parent, slot_of(set->finger.leaf, shift))].node;
}

/* Puts the finger on the leaf that find_leaf() looked for, so that it can be changed. */
static int reach(struct wss_pageset *set)
{
	struct wss_node **at;

	while (set->finger.known <= set->depth) {
		unsigned d = set->finger.known, shift = set->shift - WSS_NODE_BITS * d;

		if (d) {
			unsigned above = shift + WSS_NODE_BITS;
			unsigned i = slot_of(set->finger.leaf, above);

			at = finger_pointer(set, d - 1);
			if (!((*at)->mixed & wss_node_bit(i)) &&
			    wss_node_expand(set->budget, at, above, i) < 0)
				return -1;
			set->finger.path[d - 1] = *at;
		}
		at = finger_pointer(set, d);
		if (wss_node_own(set->budget, at, shift) < 0)
			return -1;
		finger_extend(set, *at);
	}
	set->finger.valid = true;
	return 0;
}

/*
 * Sets or clears n bits of a word of the finger's leaf. Returns the number of changed bits, or -1
 * when out of memory.
 */
static int change_word(struct wss_pageset *set, unsigned i, uint64_t bits, unsigned n, bool in)
{
	struct wss_node *leaf = set->finger.path[set->depth];
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
		struct wss_node **at = finger_pointer(set, set->depth);

		slot = wss_node_insert(set->budget, at, i);
		set->finger.path[set->depth] = *at;
		if (!slot)
			return -1;
		slot->word = word;
	}
	return bits == all ? (int)n : (int)wss_bits(bits);
}

/* Does the same for all bits of the words in mask. */
static int change_words(struct wss_pageset *set, uint64_t mask, bool in)
{
	struct wss_node *leaf = set->finger.path[set->depth];
	int changed = 64 * (int)wss_bits(mask & ~leaf->mixed & (in ? ~leaf->full : leaf->full));

	wss_pageset_step(wss_bits(leaf->mixed));
	for (uint64_t left = mask & leaf->mixed; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		int n = (int)wss_bits(leaf->slots[wss_node_place(leaf, i)].word);

		changed += in ? 64 - n : n;
	}
	wss_node_remove(set->budget, leaf, WSS_LEAF_SHIFT, mask, in);
	leaf->full = in ? leaf->full | mask : leaf->full & ~mask;
	return changed;
}

/* Removes nodes that have become full or empty from the finger's lower end. */
static void collapse(struct wss_pageset *set)
{
	while (set->finger.known > 1) {
		unsigned d = set->finger.known - 1;
		unsigned above = set->shift - WSS_NODE_BITS * (d - 1);
		struct wss_node *node = set->finger.path[d];

		if (!wss_node_uniform(node))
			break;
		finger_climb(set);
		wss_node_remove(set->budget, set->finger.path[d - 1], above,
				wss_node_bit(slot_of(set->finger.leaf, above)), node->full);
	}
}

static inline void count(struct wss_pageset *set, int changed, bool in)
{
	uint64_t difference = in ? (uint64_t)changed : 0 - (uint64_t)changed;

	set->finger.path[set->depth]->count += difference;
	set->finger.pending[set->depth] += difference;
	set->count += difference;
}

/* Changes the pages first to end - 1 of the finger's leaf. */
static int64_t change_at_finger(struct wss_pageset *set, unsigned first, unsigned end, bool in)
{
	unsigned a = first / 64, b = (end - 1) / 64;
	int total = 0;

	for (unsigned i = a; i <= b;) {
		unsigned low = i == a ? first % 64 : 0, high = i == b ? (end - 1) % 64 + 1 : 64;
		unsigned next = i + 1;
		int changed;

		if (low == 0 && high == 64) {
			next = end / 64;
			changed = change_words(set, wss_node_mask(i, next), in);
		} else {
			changed = change_word(set, i, wss_node_mask(low, high), high - low, in);
		}
		if (changed < 0)
			return -1;
		count(set, changed, in);
		total += changed;
		i = next;
	}
	if (wss_node_uniform(set->finger.path[set->depth]))
		collapse(set);
	return total;
}

static bool would_change(struct wss_part leaf, unsigned first, unsigned end, bool in)
{
	wss_pageset_step((end - first) / 64);
	for (unsigned i = first / 64; i <= (end - 1) / 64; i++) {
		uint64_t word = wss_part_word(leaf, i);
		uint64_t bits = wss_node_mask(i == first / 64 ? first % 64 : 0,
					      i == (end - 1) / 64 ? (end - 1) % 64 + 1 : 64);

		if (bits & (in ? ~word : word))
			return true;
	}
	return false;
}

/* Changes the pages first to end - 1 of a leaf. */
static int64_t change_leaf(struct wss_pageset *set, uint64_t leaf, unsigned first, unsigned end,
			   bool in)
{
	if (!set->finger.valid || set->finger.leaf != leaf) {
		bool shared;
		struct wss_part part = find_leaf(set, leaf, &shared);

		if (!part.node && part.full == in)
			return 0;
		/* A node that other sets share is copied only if it really changes. */
		if (shared && !would_change(part, first, end, in))
			return 0;
		if (!set->finger.valid && reach(set) < 0)
			return -1;
	}
	return change_at_finger(set, first, end, in);
}

void wss_pageset_expect(const struct wss_pageset *set, uint64_t page)
{
	const struct wss_node *node = set->root;

	if (page >= set->n_pages || (set->finger.valid && set->finger.leaf == page / LEAF_PAGES))
		return;
	for (unsigned shift = set->shift; shift > WSS_LEAF_SHIFT; shift -= WSS_NODE_BITS) {
		unsigned i = wss_node_slot(page, shift);

		if (!(node->mixed & wss_node_bit(i)))
			return;
		node = node->slots[wss_node_place(node, i)].node;
	}
	__builtin_prefetch(node, 1);
	/* The slots are on the next cache line. */
	__builtin_prefetch(&node->slots[4], 1);
}

/*
 * Fast path for the most frequent change: some bits of one word of the finger's leaf, with the
 * word mixed before and after, so that no node moves. Returns false for any other change.
 */
static inline bool change_at_once(struct wss_pageset *set, uint64_t first, uint64_t end, bool in,
				  int64_t *ret_changed)
{
	unsigned i = (unsigned)(first / 64) % WSS_NODE_SLOTS, low = first % 64;
	uint64_t mask = wss_node_mask(low, low + (unsigned)(end - first)), bits, word;
	struct wss_node *leaf = set->finger.path[set->depth];
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

	if (first >= set->n_pages || !n || set->count == (in ? set->n_pages : 0))
		return 0;
	end = n < set->n_pages - first ? first + n : set->n_pages;
	head = first / LEAF_PAGES;
	tail = end / LEAF_PAGES;
	if (set->finger.valid && set->finger.leaf == head && first / 64 == (end - 1) / 64 &&
	    change_at_once(set, first, end, in, &total))
		return total;
	if (head == (end - 1) / LEAF_PAGES)
		return change_leaf(set, head, first % LEAF_PAGES, (end - 1) % LEAF_PAGES + 1, in);
	if (first % LEAF_PAGES) {
		total = change_leaf(set, head++, first % LEAF_PAGES, LEAF_PAGES, in);
		if (total < 0)
			return -1;
	}
	changed = wss_pageset_fill(set, head, tail, in);
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
