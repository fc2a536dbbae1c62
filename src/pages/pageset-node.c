/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "pages/pageset-private.h"

/* Approximate overhead of malloc() for each block. */
#define OVERHEAD 16
/* A node grows by this number of slots at a time. */
#define ROOM_STEP WSS_SPARE_STEP
/* A budget keeps up to this part of its limit as spare nodes. */
#define SPARE_PART 4
/* Number of spare nodes that are prefetched ahead of the one that is taken. */
#define SPARE_AHEAD 8

_Thread_local uint64_t wss_pageset_steps_taken;

uint64_t wss_pageset_steps(void)
{
	return wss_pageset_steps_taken;
}

static size_t bytes_of(unsigned room)
{
	return sizeof(struct wss_node) + room * sizeof(union wss_slot);
}

static unsigned room_for(unsigned slots)
{
	return slots ? (slots + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP : ROOM_STEP;
}

static void discharge(struct wss_pageset_budget *budget, size_t bytes)
{
	if (budget)
		budget->used_bytes -= bytes;
}

void wss_pageset_budget_clear(struct wss_pageset_budget *budget)
{
	for (unsigned i = 0; i < WSS_SPARE_SIZES; i++) {
		struct wss_pageset_spare *spare = &budget->spare[i];

		while (spare->n) {
			struct wss_node *node = spare->nodes[--spare->n];

			discharge(budget, bytes_of(node->room) + OVERHEAD);
			free(node);
		}
		free(spare->nodes);
		*spare = (struct wss_pageset_spare){.n = 0};
	}
	budget->spare_bytes = 0;
}

bool wss_pageset_steps_exceeded(const struct wss_pageset_budget *budget)
{
	return budget && budget->last_step && wss_pageset_steps_taken > budget->last_step;
}

bool wss_pageset_charge(struct wss_pageset_budget *budget, uint64_t bytes)
{
	if (!budget)
		return true;
	if (budget->used_bytes + bytes > budget->limit_bytes)
		wss_pageset_budget_clear(budget);
	if (budget->used_bytes + bytes > budget->limit_bytes) {
		budget->exceeded = true;
		return false;
	}
	budget->used_bytes += bytes;
	return true;
}

/* Takes a spare node with exactly this room; NULL if the budget has none. */
static struct wss_node *spare_take(struct wss_pageset_budget *budget, unsigned room)
{
	struct wss_pageset_spare *spare;

	if (!budget)
		return NULL;
	spare = &budget->spare[room / ROOM_STEP - 1];
	if (!spare->n)
		return NULL;
	budget->spare_bytes -= bytes_of(room) + OVERHEAD;
	/* Nodes are mostly needed in series, and spare ones have left every cache. */
	if (spare->n > SPARE_AHEAD)
		__builtin_prefetch(spare->nodes[spare->n - 1 - SPARE_AHEAD], 1);
	return spare->nodes[--spare->n];
}

/* Keeps a node for later. Returns false if there are enough already, or no memory to record it. */
static bool spare_keep(struct wss_pageset_budget *budget, struct wss_node *node)
{
	struct wss_pageset_spare *spare;
	uint64_t bytes = bytes_of(node->room) + OVERHEAD;

	if (!budget || budget->spare_bytes + bytes > budget->limit_bytes / SPARE_PART)
		return false;
	spare = &budget->spare[node->room / ROOM_STEP - 1];
	if (spare->n == spare->room) {
		size_t room = spare->room ? 2 * spare->room : 64;
		void *nodes = realloc(spare->nodes, room * sizeof(*spare->nodes));

		if (!nodes)
			return false;
		spare->nodes = nodes;
		spare->room = room;
	}
	spare->nodes[spare->n++] = node;
	budget->spare_bytes += bytes;
	return true;
}

static void node_free(struct wss_pageset_budget *budget, struct wss_node *node)
{
	if (spare_keep(budget, node))
		return;
	discharge(budget, bytes_of(node->room) + OVERHEAD);
	free(node);
}

struct wss_node *wss_node_new(struct wss_pageset_budget *budget, unsigned room)
{
	struct wss_node *node;

	if (wss_pageset_steps_exceeded(budget))
		return NULL;
	room = room_for(room);
	node = spare_take(budget, room);
	if (!node) {
		if (!wss_pageset_charge(budget, bytes_of(room) + OVERHEAD))
			return NULL;
		node = malloc(bytes_of(room));
	}
	if (!node) {
		discharge(budget, bytes_of(room) + OVERHEAD);
		return NULL;
	}
	*node = (struct wss_node){.refs = 1, .room = room};
	wss_pageset_step(room);
	return node;
}

void wss_node_move(const struct wss_node *node, struct wss_pageset_budget *from,
		   struct wss_pageset_budget *to)
{
	discharge(from, bytes_of(node->room) + OVERHEAD);
	if (to)
		to->used_bytes += bytes_of(node->room) + OVERHEAD;
}

void wss_node_put(struct wss_pageset_budget *budget, struct wss_node *node, unsigned shift)
{
	if (!node || --node->refs)
		return;
	if (shift > WSS_LEAF_SHIFT)
		for (int i = (int)wss_bits(node->mixed); i-- > 0;)
			wss_node_put(budget, node->slots[i].node, shift - WSS_NODE_BITS);
	node_free(budget, node);
}

int wss_node_own(struct wss_pageset_budget *budget, struct wss_node **node, unsigned shift)
{
	struct wss_node *old = *node, *copy;
	unsigned n = wss_bits(old->mixed);

	if (old->refs == 1)
		return 0;
	copy = wss_node_new(budget, n);
	if (!copy)
		return -1;
	copy->count = old->count;
	copy->mixed = old->mixed;
	copy->full = old->full;
	memcpy(copy->slots, old->slots, n * sizeof(copy->slots[0]));
	if (shift > WSS_LEAF_SHIFT)
		for (unsigned i = 0; i < n; i++)
			copy->slots[i].node->refs++;
	old->refs--;
	*node = copy;
	return 0;
}

static int make_room(struct wss_pageset_budget *budget, struct wss_node **node)
{
	struct wss_node *old = *node;
	unsigned room = old->room, more = 2 * room < WSS_NODE_SLOTS ? 2 * room : WSS_NODE_SLOTS;
	struct wss_node *larger = wss_node_new(budget, more);

	if (!larger)
		return -1;
	memcpy(larger, old, bytes_of(room));
	larger->room = more;
	node_free(budget, old);
	*node = larger;
	return 0;
}

union wss_slot *wss_node_insert(struct wss_pageset_budget *budget, struct wss_node **node,
				unsigned i)
{
	unsigned n = wss_bits((*node)->mixed);
	unsigned place = wss_node_place(*node, i);
	union wss_slot *slot;

	wss_pageset_step(n);
	if (n == (*node)->room && make_room(budget, node) < 0)
		return NULL;
	slot = &(*node)->slots[place];
	memmove(slot + 1, slot, (n - place) * sizeof(*slot));
	(*node)->mixed |= wss_node_bit(i);
	(*node)->full &= ~wss_node_bit(i);
	return slot;
}

int wss_node_expand(struct wss_pageset_budget *budget, struct wss_node **node, unsigned shift,
		    unsigned i)
{
	bool full = (*node)->full & wss_node_bit(i);
	struct wss_node *child = wss_node_new(budget, 0);
	union wss_slot *slot;

	if (!child)
		return -1;
	child->full = full ? UINT64_MAX : 0;
	child->count = full ? 1ULL << shift : 0;
	slot = wss_node_insert(budget, node, i);
	if (!slot) {
		wss_node_put(budget, child, shift - WSS_NODE_BITS);
		return -1;
	}
	slot->node = child;
	return 0;
}

void wss_node_remove(struct wss_pageset_budget *budget, struct wss_node *node, unsigned shift,
		     uint64_t mask, bool full)
{
	unsigned from = 0, to = 0;

	wss_pageset_step(wss_bits(node->mixed));
	mask &= node->mixed;
	/* Mostly there is exactly one. */
	if (shift == WSS_LEAF_SHIFT && mask && !(mask & (mask - 1))) {
		unsigned n = wss_bits(node->mixed);

		from = wss_node_place(node, (unsigned)__builtin_ctzll(mask));
		memmove(&node->slots[from], &node->slots[from + 1],
			(n - from - 1) * sizeof(node->slots[0]));
		node->mixed &= ~mask;
		node->full = full ? node->full | mask : node->full & ~mask;
		return;
	}
	for (uint64_t left = mask ? node->mixed : 0; left; left &= left - 1, from++) {
		if (!(mask & left & -left))
			node->slots[to++] = node->slots[from];
		else if (shift > WSS_LEAF_SHIFT)
			wss_node_put(budget, node->slots[from].node, shift - WSS_NODE_BITS);
	}
	node->mixed &= ~mask;
	node->full = full ? node->full | mask : node->full & ~mask;
}
