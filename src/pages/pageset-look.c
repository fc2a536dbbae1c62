/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Searching, counting and comparing sets of pages without changing them. */
#include "pages/pageset-private.h"

static struct wss_part part_of(const struct wss_pageset *set)
{
	return set ? (struct wss_part){.node = set->root} : (struct wss_part){.full = false};
}

bool wss_pageset_has(const struct wss_pageset *set, uint64_t page)
{
	struct wss_part part = part_of(set);

	if (page >= set->n_pages)
		return false;
	for (unsigned shift = set->shift; part.node && shift > WSS_LEAF_SHIFT;
	     shift -= WSS_NODE_BITS)
		part = wss_part_slot(part, (unsigned)(page >> shift) % WSS_NODE_SLOTS);
	return wss_part_word(part, (unsigned)(page >> WSS_LEAF_SHIFT) % WSS_NODE_SLOTS) >>
		       (page % 64) &
	       1;
}

/* Leaf of the page that was found, from which the next search starts. */
struct found {
	struct wss_part set, without;
	uint64_t from; /* position in the leaf */
	bool leaf;     /* the leaf is neither full nor empty */
};

static bool find_in_leaf(struct wss_part set, struct wss_part without, uint64_t from, bool value,
			 uint64_t *ret_page)
{
	unsigned first = (unsigned)(from / 64);
	uint64_t sure = wss_part_full(without) | ~(wss_part_full(set) | wss_part_mixed(set));

	/* Skips words that cannot contain a match. */
	if (!value)
		sure = wss_part_full(set) & ~(wss_part_full(without) | wss_part_mixed(without));
	for (uint64_t left = ~sure & wss_node_mask(first, 64); left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t word = wss_part_word(set, i) & ~wss_part_word(without, i);

		if (!value)
			word = ~word;
		if (i == first)
			word &= UINT64_MAX << from % 64;
		if (word) {
			*ret_page = i * 64 + (uint64_t)__builtin_ctzll(word);
			return true;
		}
	}
	return false;
}

/*
 * Finds the first page of a node at or after from, counted from the node's first page, that is in
 * set and not in without (value true), or is not (false). ret_found may be NULL.
 */
static bool find(struct wss_part set, struct wss_part without, unsigned shift, uint64_t from,
		 bool value, uint64_t *ret_page, struct found *ret_found)
{
	unsigned first = (unsigned)(from >> shift);
	uint64_t some = wss_part_full(set) | wss_part_mixed(set), all = wss_part_full(set);

	wss_pageset_step(shift == WSS_LEAF_SHIFT ? wss_bits(wss_part_mixed(set)) : 0);
	if (wss_part_same(set, without) && set.node) {
		*ret_page = from;
		return !value;
	}
	if (shift == WSS_LEAF_SHIFT) {
		bool is = find_in_leaf(set, without, from, value, ret_page);

		if (ret_found)
			*ret_found = (struct found){set, without, *ret_page, is};
		return is;
	}
	/* Slots that may contain a match, and slots that contain only matches. */
	all &= ~(wss_part_full(without) | wss_part_mixed(without));
	some &= ~wss_part_full(without);
	for (uint64_t left = (value ? some : ~all) & wss_node_mask(first, 64); left;
	     left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t base = (uint64_t)i << shift, start = i == first ? from - base : 0;

		if ((value ? all : ~some) & wss_node_bit(i)) {
			*ret_page = base + start;
			return true;
		}
		if (find(wss_part_slot(set, i), wss_part_slot(without, i), shift - WSS_NODE_BITS,
			 start, value, ret_page, ret_found)) {
			*ret_page += base;
			return true;
		}
	}
	return false;
}

static uint64_t find_page(const struct wss_pageset *set, const struct wss_pageset *without,
			  uint64_t from, bool value, struct found *ret_found)
{
	uint64_t page = 0;

	if (from >= set->n_pages ||
	    !find(part_of(set), part_of(without), set->shift, from, value, &page, ret_found) ||
	    page > set->n_pages)
		return set->n_pages;
	return page;
}

bool wss_pageset_next(const struct wss_pageset *set, const struct wss_pageset *without,
		      uint64_t from, struct wss_run *ret_run)
{
	struct found found = {.leaf = false};
	uint64_t first = find_page(set, without, from, true, &found), end;

	if (first == set->n_pages)
		return false;
	/* Most runs end in the leaf in which they begin. */
	if (found.leaf && find_in_leaf(found.set, found.without, found.from, false, &end))
		end += first - found.from;
	else
		end = find_page(set, without, first, false, NULL);
	*ret_run = (struct wss_run){first, (end < set->n_pages ? end : set->n_pages) - first};
	return true;
}

uint64_t wss_pageset_count_run(const struct wss_pageset *set, struct wss_run run)
{
	return wss_pageset_compare(set, set, NULL, run).both;
}

/* Counts without descending into nodes that both have in common. */
static uint64_t count_without(struct wss_part set, struct wss_part without, unsigned shift)
{
	uint64_t some = (wss_part_full(set) | wss_part_mixed(set)) & ~wss_part_full(without);
	uint64_t sum = 0;

	wss_pageset_step(wss_bits(some));
	if (wss_part_same(set, without))
		return 0;
	if (!without.node && !without.full)
		return wss_part_count(set, shift);
	if (!set.node)
		return set.full ? wss_part_count(set, shift) - wss_part_count(without, shift) : 0;
	if (shift > WSS_LEAF_SHIFT)
		some &= wss_part_differ(set, without);
	for (; some; some &= some - 1) {
		unsigned i = (unsigned)__builtin_ctzll(some);

		if (shift == WSS_LEAF_SHIFT) {
			sum += wss_bits(wss_part_word(set, i) & ~wss_part_word(without, i));
		} else {
			sum += count_without(wss_part_slot(set, i), wss_part_slot(without, i),
					     shift - WSS_NODE_BITS);
		}
	}
	return sum;
}

uint64_t wss_pageset_count_without(const struct wss_pageset *set, const struct wss_pageset *without)
{
	wss_pageset_settle(set);
	wss_pageset_settle(without);
	return set->count ? count_without(part_of(set), part_of(without), set->shift) : 0;
}

/* The compared sets, or the same part of each. */
struct parts {
	struct wss_part a, b, all;
};

static struct parts parts_at(const struct parts *parts, unsigned i)
{
	return (struct parts){wss_part_slot(parts->a, i), wss_part_slot(parts->b, i),
			      wss_part_slot(parts->all, i)};
}

/* Adds up bits that stand for pages, or for slots with the given number of pages. */
static void add_bits(struct wss_pageset_overlap *sum, uint64_t a, uint64_t b, uint64_t all,
		     uint64_t mask, unsigned shift)
{
	sum->both += (uint64_t)wss_bits(a & b & mask) << shift;
	sum->only_a += (uint64_t)wss_bits(a & ~b & mask) << shift;
	sum->only_b += (uint64_t)wss_bits(b & ~a & mask) << shift;
	sum->neither += (uint64_t)wss_bits(all & ~(a | b) & mask) << shift;
}

/* Counts over the pages first to end - 1 of a node. */
static void compare(const struct parts *parts, unsigned shift, uint64_t first, uint64_t end,
		    struct wss_pageset_overlap *sum)
{
	uint64_t mixed =
		wss_part_mixed(parts->a) | wss_part_mixed(parts->b) | wss_part_mixed(parts->all);
	unsigned a = (unsigned)(first >> shift), b = (unsigned)((end - 1) >> shift);
	uint64_t whole = wss_node_mask(a, b + 1) & ~mixed;

	wss_pageset_step(b - a);
	/* Most parts of most sets are the same. */
	if (wss_part_same(parts->a, parts->b) && first == 0 &&
	    end == (uint64_t)WSS_NODE_SLOTS << shift &&
	    ((!parts->all.node && !parts->all.full) || wss_part_same(parts->a, parts->all))) {
		sum->both += wss_part_count(parts->a, shift);
		return;
	}
	/* Slots at the edges may be covered in part. */
	if (first % (1ULL << shift))
		whole &= ~wss_node_bit(a);
	if (end % (1ULL << shift))
		whole &= ~wss_node_bit(b);
	add_bits(sum, wss_part_full(parts->a), wss_part_full(parts->b), wss_part_full(parts->all),
		 whole, shift);
	for (uint64_t left = wss_node_mask(a, b + 1) & ~whole; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t base = (uint64_t)i << shift, size = 1ULL << shift;
		uint64_t from = i == a ? first - base : 0, to = i == b ? end - base : size;

		if (shift == WSS_LEAF_SHIFT) {
			add_bits(sum, wss_part_word(parts->a, i), wss_part_word(parts->b, i),
				 wss_part_word(parts->all, i),
				 wss_node_mask((unsigned)from, (unsigned)to), 0);
		} else {
			struct parts slot = parts_at(parts, i);

			compare(&slot, shift - WSS_NODE_BITS, from, to, sum);
		}
	}
}

struct wss_pageset_overlap wss_pageset_compare(const struct wss_pageset *a,
					       const struct wss_pageset *b,
					       const struct wss_pageset *all, struct wss_run run)
{
	const struct parts parts = {part_of(a), part_of(b), part_of(all)};
	struct wss_pageset_overlap sum = {0};

	if (run.first >= a->n_pages || !run.n)
		return sum;
	wss_pageset_settle(a);
	wss_pageset_settle(b);
	if (all)
		wss_pageset_settle(all);
	compare(&parts, a->shift, run.first,
		run.n < a->n_pages - run.first ? run.first + run.n : a->n_pages, &sum);
	return sum;
}
