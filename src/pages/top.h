/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Selects the first N of any number of page ranges, with memory for 2 N. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A range of page indices with its figures. */
struct wss_page_range {
	uint64_t first;
	uint64_t n;	/* pages from the first to the last */
	uint64_t pages; /* pages of them that count */
	uint64_t value; /* windows that touched it; in a comparison 1: gained, 0: lost */
};

/* Whether a precedes b. A total order. */
typedef bool (*wss_range_before)(const struct wss_page_range *a, const struct wss_page_range *b);

/* By value, then by pages, then by index. */
bool wss_range_hotter(const struct wss_page_range *a, const struct wss_page_range *b);

/* By pages, then by index. */
bool wss_range_larger(const struct wss_page_range *a, const struct wss_page_range *b);

struct wss_top {
	wss_range_before before;
	size_t limit;
	size_t n;
	uint64_t seen; /* number of ranges offered */
	bool chosen;   /* ranges[limit - 1] is the last of the selection so far */
	uint64_t random;
	struct wss_page_range *ranges;
};

/* limit: at least 1. */
void wss_top_init(struct wss_top *top, size_t limit, wss_range_before before);
void wss_top_offer(struct wss_top *top, const struct wss_page_range *range);

/* Sorts the selection; nothing may be offered afterwards. */
void wss_top_sort(struct wss_top *top);
void wss_top_free(struct wss_top *top);
