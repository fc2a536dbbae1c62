/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/pageset.h"

#include <stdlib.h>

#include "pages/pageset-private.h"

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
	while (n_pages > (uint64_t)WSS_NODE_SLOTS << set->shift) {
		set->shift += WSS_NODE_BITS;
		set->depth++;
	}
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
