/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adding whole leaves to a set, and removing them: nodes that become full or empty are freed. */
#include "pages/pageset-private.h"

/*
 * Fills or empties the slots of a mask in a node that no other set shares. Returns the number of
 * pages that changed.
 */
static uint64_t fill_slots(struct wss_pageset *set, struct wss_node *node, unsigned shift,
			   uint64_t mask, bool in)
{
	uint64_t same = in ? node->full : ~node->full & ~node->mixed;
	uint64_t changed = (uint64_t)wss_bits(mask & ~same) << shift;

	for (uint64_t left = mask & node->mixed; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t n = node->slots[wss_node_place(node, i)].node->count;

		/* A mixed slot was counted as if all of it changed. */
		changed -= in ? n : (1ULL << shift) - n;
	}
	wss_node_remove(set->budget, node, shift, mask, in);
	node->full = in ? node->full | mask : node->full & ~mask;
	return changed;
}

static int fill(struct wss_pageset *set, struct wss_node **at, unsigned shift, uint64_t first,
		uint64_t end, bool in, uint64_t *changed);

/* Changes the pages first to end - 1 of slot i, a part of it. */
static int fill_part(struct wss_pageset *set, struct wss_node **at, unsigned shift, unsigned i,
		     uint64_t first, uint64_t end, bool in, uint64_t *changed)
{
	uint64_t bit = wss_node_bit(i);
	struct wss_node **child;
	int r;

	if (!((*at)->mixed & bit)) {
		if (!((*at)->full & bit) == !in)
			return 0;
		if (wss_node_expand(set->budget, at, shift, i) < 0)
			return -1;
	}
	child = &(*at)->slots[wss_node_place(*at, i)].node;
	r = fill(set, child, shift - WSS_NODE_BITS, first, end, in, changed);
	if (wss_node_uniform(*child))
		wss_node_remove(set->budget, *at, shift, bit, (*child)->full);
	return r;
}

/*
 * Changes the pages first to end - 1, which are whole leaves, of an inner node. Adds up the
 * number of changed pages.
 */
static int fill(struct wss_pageset *set, struct wss_node **at, unsigned shift, uint64_t first,
		uint64_t end, bool in, uint64_t *changed)
{
	uint64_t before = *changed;
	int r;

	wss_pageset_step(wss_bits((*at)->mixed));
	r = wss_node_own(set->budget, at, shift);

	if (r < 0)
		return -1;
	while (first < end && r == 0) {
		unsigned i = wss_node_slot(first, shift);
		uint64_t base = (uint64_t)i << shift, stop = base + (1ULL << shift);

		if (first == base && end >= stop) {
			unsigned next = (unsigned)(end >> shift);

			*changed += fill_slots(set, *at, shift, wss_node_mask(i, next), in);
			stop = (uint64_t)next << shift;
		} else {
			stop = stop < end ? stop : end;
			r = fill_part(set, at, shift, i, first - base, stop - base, in, changed);
		}
		first = stop;
	}
	(*at)->count = in ? (*at)->count + (*changed - before) : (*at)->count - (*changed - before);
	return r;
}

int64_t wss_pageset_fill(struct wss_pageset *set, uint64_t first, uint64_t end, bool in)
{
	uint64_t changed = 0;
	int r;

	if (first >= end)
		return 0;
	wss_pageset_settle(set);
	r = fill(set, &set->root, set->shift, first << WSS_LEAF_BITS, end << WSS_LEAF_BITS, in,
		 &changed);
	set->count = in ? set->count + changed : set->count - changed;
	return r < 0 ? -1 : (int64_t)changed;
}
