/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Making sets of pages from others. A result shares common parts with its sources, so the next
 * operation recognizes them without descending into them, and its time depends only on the
 * changes since.
 */
#include "pages/pageset-private.h"

static const struct wss_part nothing = {.full = false};

static bool is_nothing(struct wss_part part)
{
	return !part.node && !part.full;
}

static bool is_all(struct wss_part part)
{
	return !part.node && part.full;
}

static struct wss_part share(struct wss_part part)
{
	if (part.node)
		part.node->refs++;
	return part;
}

/* A result under construction. It may turn out to be the same as one of its sources. */
struct merge {
	struct wss_pageset_budget *budget;
	struct wss_node *node;
	unsigned shift;
	unsigned n; /* number of its slots */
};

static int merge_begin(struct merge *merge, struct wss_pageset_budget *budget, unsigned shift,
		       uint64_t mixed_at_most)
{
	*merge = (struct merge){.budget = budget, .shift = shift};
	merge->node = wss_node_new(budget, wss_bits(mixed_at_most));
	return merge->node ? 0 : -1;
}

/* Adds a slot, in ascending order. Takes part over. */
static void merge_put(struct merge *merge, unsigned i, struct wss_part part)
{
	if (part.node) {
		merge->node->mixed |= wss_node_bit(i);
		merge->node->slots[merge->n++].node = part.node;
	} else if (part.full) {
		merge->node->full |= wss_node_bit(i);
	}
	merge->node->count += wss_part_count(part, merge->shift - WSS_NODE_BITS);
}

static void merge_put_word(struct merge *merge, unsigned i, uint64_t word)
{
	if (word == UINT64_MAX) {
		merge->node->full |= wss_node_bit(i);
	} else if (word) {
		merge->node->mixed |= wss_node_bit(i);
		merge->node->slots[merge->n++].word = word;
	}
	merge->node->count += (uint64_t)wss_bits(word);
}

static bool merge_is(const struct merge *merge, struct wss_part part)
{
	const struct wss_node *node = merge->node;

	if (!part.node || node->count != part.node->count || node->mixed != part.node->mixed ||
	    node->full != part.node->full)
		return false;
	for (unsigned i = 0; i < merge->n; i++)
		if (merge->shift == WSS_LEAF_SHIFT
			    ? node->slots[i].word != part.node->slots[i].word
			    : node->slots[i].node != part.node->slots[i].node)
			return false;
	return true;
}

/*
 * Returns the result, or a or b if that is the same, preferring the one that the next
 * comparison uses.
 */
static struct wss_part merge_end(struct merge *merge, struct wss_part a, struct wss_part b)
{
	struct wss_part part = {.node = merge->node};

	if (merge_is(merge, a))
		part = share(a);
	else if (merge_is(merge, b))
		part = share(b);
	else if (!part.node->mixed && !part.node->full)
		part = nothing;
	else if (!part.node->mixed && part.node->full == UINT64_MAX)
		part = (struct wss_part){.full = true};
	if (part.node != merge->node)
		wss_node_put(merge->budget, merge->node, merge->shift);
	return part;
}

/* Whether all of b is in a. Descends only into nodes that differ. */
static bool covers(struct wss_part a, struct wss_part b, unsigned shift)
{
	uint64_t both = wss_part_mixed(a) & wss_part_mixed(b);
	bool alike = wss_part_mixed(a) == wss_part_mixed(b);
	unsigned n = 0;

	wss_pageset_step(wss_bits(both));
	if (wss_part_same(a, b))
		return true;
	if ((wss_part_full(b) & ~wss_part_full(a)) ||
	    (wss_part_mixed(b) & ~(wss_part_full(a) | wss_part_mixed(a))))
		return false;
	for (; both; both &= both - 1, n++) {
		unsigned i = (unsigned)__builtin_ctzll(both);
		union wss_slot in_a = a.node->slots[alike ? n : wss_node_place(a.node, i)];
		union wss_slot in_b = b.node->slots[alike ? n : wss_node_place(b.node, i)];

		if (shift == WSS_LEAF_SHIFT ? (in_b.word & ~in_a.word) != 0
					    : in_a.node != in_b.node &&
						      !covers((struct wss_part){.node = in_a.node},
							      (struct wss_part){.node = in_b.node},
							      shift - WSS_NODE_BITS))
			return false;
	}
	return true;
}

/* Computes the intersection; the caller owns ret. */
static int meet(struct wss_pageset_budget *budget, struct wss_part a, struct wss_part b,
		unsigned shift, struct wss_part *ret)
{
	uint64_t some =
		(wss_part_full(a) | wss_part_mixed(a)) & (wss_part_full(b) | wss_part_mixed(b));
	struct merge merge;

	wss_pageset_step(wss_bits(some));
	if (!some || is_all(a) || is_all(b) || wss_part_same(a, b)) {
		*ret = !some ? nothing : share(is_all(a) ? b : a);
		return 0;
	}
	/* The touched pages are a subset of the earlier ones; this mostly holds for whole nodes. */
	if (covers(a, b, shift)) {
		*ret = share(b);
		return 0;
	}
	if (covers(b, a, shift)) {
		*ret = share(a);
		return 0;
	}
	if (merge_begin(&merge, budget, shift, some) < 0)
		return -1;
	for (uint64_t left = some; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		struct wss_part in_a, in_b, slot;

		if (shift == WSS_LEAF_SHIFT) {
			merge_put_word(&merge, i, wss_part_word(a, i) & wss_part_word(b, i));
			continue;
		}
		in_a = wss_part_slot(a, i);
		in_b = wss_part_slot(b, i);
		/* Most are the same. */
		if (wss_part_same(in_a, in_b)) {
			slot = share(in_a);
		} else if (meet(budget, in_a, in_b, shift - WSS_NODE_BITS, &slot) < 0) {
			wss_node_put(budget, merge.node, shift);
			return -1;
		}
		merge_put(&merge, i, slot);
	}
	*ret = merge_end(&merge, b, a);
	return 0;
}

/* Computes set without the pages that are in gone and not in but; the caller owns ret. */
static int leave(struct wss_pageset_budget *budget, struct wss_part set, struct wss_part gone,
		 struct wss_part but, unsigned shift, struct wss_part *ret)
{
	uint64_t some = wss_part_full(set) | wss_part_mixed(set), differ;
	struct merge merge;

	wss_pageset_step(wss_bits(some));
	if (is_nothing(set) || is_nothing(gone) || is_all(but) || wss_part_same(set, but) ||
	    wss_part_same(gone, but)) {
		*ret = share(set);
		return 0;
	}
	if (is_all(gone))
		return meet(budget, set, but, shift, ret);
	/* Slots that are removed as a whole. */
	some &= ~(wss_part_full(gone) & ~(wss_part_full(but) | wss_part_mixed(but)));
	if (merge_begin(&merge, budget, shift, some) < 0)
		return -1;
	differ = shift > WSS_LEAF_SHIFT ? wss_part_differ(set, but) : 0;
	for (uint64_t left = some; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		struct wss_part in_set, slot;

		if (shift == WSS_LEAF_SHIFT) {
			merge_put_word(&merge, i,
				       wss_part_word(set, i) &
					       (~wss_part_word(gone, i) | wss_part_word(but, i)));
			continue;
		}
		in_set = wss_part_slot(set, i);
		if (!(differ & wss_node_bit(i))) {
			slot = share(in_set);
		} else if (leave(budget, in_set, wss_part_slot(gone, i), wss_part_slot(but, i),
				 shift - WSS_NODE_BITS, &slot) < 0) {
			wss_node_put(budget, merge.node, shift);
			return -1;
		}
		merge_put(&merge, i, slot);
	}
	*ret = merge_end(&merge, but, set);
	return 0;
}

/* Replaces the set's root, which is always a node, by a part. */
static int replace(struct wss_pageset *set, struct wss_part part)
{
	struct wss_node *root = part.node;

	if (!root) {
		root = wss_node_new(set->budget, 0);
		if (!root)
			return -1;
		root->full = part.full ? UINT64_MAX : 0;
		root->count = wss_part_count(part, set->shift);
	}
	wss_node_put(set->budget, set->root, set->shift);
	set->root = root;
	set->count = root->count;
	return 0;
}

int wss_pageset_keep(struct wss_pageset *set, const struct wss_pageset *other)
{
	struct wss_part part;

	wss_pageset_settle(set);
	wss_pageset_settle(other);
	if (meet(set->budget, (struct wss_part){.node = set->root},
		 (struct wss_part){.node = other->root}, set->shift, &part) < 0)
		return -1;
	return replace(set, part);
}

int wss_pageset_take_out(struct wss_pageset *set, const struct wss_pageset *gone,
			 const struct wss_pageset *but)
{
	struct wss_part part;

	wss_pageset_settle(set);
	wss_pageset_settle(gone);
	wss_pageset_settle(but);
	if (leave(set->budget, (struct wss_part){.node = set->root},
		  (struct wss_part){.node = gone->root}, (struct wss_part){.node = but->root},
		  set->shift, &part) < 0)
		return -1;
	return replace(set, part);
}
