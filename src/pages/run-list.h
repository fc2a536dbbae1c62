/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A short list of runs of pages. If the runs are far apart, it is cheaper to make and to walk
 * than a set (pages/pageset.h), which needs a node for each of them.
 */
#pragma once

#include "pages/pageset.h"

/* Limit on the number of runs in a list: 8 MiB. */
#define WSS_RUN_LIST_MAX (1U << 19)

/* Starts as all zero, except for the budget. */
struct wss_run_list {
	struct wss_run *runs;
	size_t n;
	size_t room;
	bool unsorted;			   /* some run does not come after the one before it */
	struct wss_pageset_budget *budget; /* limits its memory; may be NULL */
};

enum wss_run_list_result {
	WSS_RUN_LIST_NO_MEMORY = -1,
	WSS_RUN_LIST_OK,
	WSS_RUN_LIST_FULL,
};

/*
 * Appends a run of at least one page, which may overlap earlier ones. Unless the result is
 * WSS_RUN_LIST_OK, the list stays as it was.
 */
enum wss_run_list_result wss_run_list_add(struct wss_run_list *list, struct wss_run run);

/* Sorts the runs by page, and joins those that overlap or touch each other. */
void wss_run_list_sort(struct wss_run_list *list);

/* Removes all runs. Keeps the memory for later ones. */
void wss_run_list_clear(struct wss_run_list *list);

void wss_run_list_free(struct wss_run_list *list);
