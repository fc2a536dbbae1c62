/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The marks of a recording. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pages/recording.h"

struct wss_pageset_budget;

struct wss_mark {
	uint64_t time_ns; /* since the recording's start */
	char text[WSS_MARK_TEXT_MAX];
};

/* All zero is an empty list; only memory limits its length. */
struct wss_marks {
	size_t n, room;
	struct wss_mark *list;
	bool disordered;		   /* not sorted by time until wss_marks_sort() */
	struct wss_pageset_budget *budget; /* memory budget of the list; NULL: unlimited */
};

/*
 * Appends a mark; text is copied, and has at most WSS_MARK_TEXT_MAX - 1 bytes.
 * WSS_ERR_NO_MEMORY.
 */
int wss_marks_add(struct wss_marks *marks, uint64_t time_ns, const char *text,
		  struct wss_error *err);

/* Sorts by time; marks with the same time keep their order. WSS_ERR_NO_MEMORY. */
int wss_marks_sort(struct wss_marks *marks, struct wss_error *err);

/* Frees the list. */
void wss_marks_free(struct wss_marks *marks);
