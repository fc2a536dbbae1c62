/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "wss/pageset-private.h"

/* What malloc() adds, near enough. */
#define OVERHEAD 16
#define ROOM_LEAST 4U

static size_t bytes_of(unsigned room)
{
	return sizeof(struct wss_node) + room * sizeof(union wss_slot);
}

bool wss_pageset_charge(struct wss_pageset_budget *budget, uint64_t bytes)
{
	if (!budget)
		return true;
	if (budget->used_bytes + bytes > budget->limit_bytes) {
		budget->exceeded = true;
		return false;
	}
	budget->used_bytes += bytes;
	return true;
}

static void discharge(struct wss_pageset_budget *budget, size_t bytes)
{
	if (budget)
		budget->used_bytes -= bytes;
}

struct wss_node *wss_node_new(struct wss_pageset_budget *budget, unsigned room)
{
	struct wss_node *node;

	if (room < ROOM_LEAST)
		room = ROOM_LEAST;
	if (!wss_pageset_charge(budget, bytes_of(room) + OVERHEAD))
		return NULL;
	node = malloc(bytes_of(room));
	if (!node) {
		discharge(budget, bytes_of(room) + OVERHEAD);
		return NULL;
	}
	*node = (struct wss_node){.refs = 1, .room = room};
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
	discharge(budget, bytes_of(node->room) + OVERHEAD);
	free(node);
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
	unsigned room = (*node)->room,
		 more = 2 * room < WSS_NODE_SLOTS ? 2 * room : WSS_NODE_SLOTS;
	struct wss_node *larger;

	if (!wss_pageset_charge(budget, bytes_of(more) - bytes_of(room)))
		return -1;
	larger = realloc(*node, bytes_of(more));
	if (!larger) {
		discharge(budget, bytes_of(more) - bytes_of(room));
		return -1;
	}
	larger->room = more;
	*node = larger;
	return 0;
}

union wss_slot *wss_node_insert(struct wss_pageset_budget *budget, struct wss_node **node,
				unsigned i)
{
	unsigned n = wss_bits((*node)->mixed);
	unsigned place = wss_node_place(*node, i);
	union wss_slot *slot;

	if (n == (*node)->room && make_room(budget, node) < 0)
		return NULL;
	slot = &(*node)->slots[place];
	memmove(slot + 1, slot, (n - place) * sizeof(*slot));
	(*node)->mixed |= wss_node_bit(i);
	(*node)->full &= ~wss_node_bit(i);
	return slot;
}

void wss_node_remove(struct wss_pageset_budget *budget, struct wss_node *node, unsigned shift,
		     uint64_t mask, bool full)
{
	unsigned from = 0, to = 0;

	mask &= node->mixed;
	/* Most often it is one. */
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
