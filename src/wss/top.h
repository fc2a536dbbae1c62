/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first so many of a list of page ranges of any length, in the memory of twice as many.
 */
#ifndef WSS_WSS_TOP_H
#define WSS_WSS_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of page indices and what is known of it. */
struct wss_page_range {
	uint64_t first;
	uint64_t n;	/* from the first to the last page */
	uint64_t pages; /* those in it that count */
	uint64_t value; /* how often they were touched; for differences 1: gained, 0: lost */
};

/* Does a come before b? A total order. */
typedef bool (*wss_range_before)(const struct wss_page_range *a, const struct wss_page_range *b);

/* By value, then by pages, then by index. */
bool wss_range_hotter(const struct wss_page_range *a, const struct wss_page_range *b);

/* By pages, then by index. */
bool wss_range_larger(const struct wss_page_range *a, const struct wss_page_range *b);

struct wss_top {
	wss_range_before before;
	size_t limit;
	size_t n;
	uint64_t seen; /* ranges offered */
	bool chosen;   /* ranges[limit - 1] is the last of the first so many of those seen */
	uint64_t random;
	struct wss_page_range *ranges;
};

/* limit at least 1. -1 when memory is short. */
int wss_top_init(struct wss_top *top, size_t limit, wss_range_before before);
void wss_top_offer(struct wss_top *top, const struct wss_page_range *range);

/* Puts what there is in order; nothing is to be offered behind that. */
void wss_top_sort(struct wss_top *top);
void wss_top_free(struct wss_top *top);

#endif
