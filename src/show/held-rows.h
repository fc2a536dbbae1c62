/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rows of a table that are held back until all of them are known: their cells, and the value
 * to sort by. A report may have a million rows, so all texts share one block of memory.
 */
#pragma once

#include "show/report.h"

struct wss_held_row;

/* Starts as all zero. */
struct wss_held_rows {
	char *texts; /* one text after the other, each with its NUL */
	size_t used_bytes, room_bytes;
	struct wss_held_row *rows;
	size_t n, room;
};

/*
 * Begins the next row; wss_held_rows_text() then adds its cells. key may be NULL if the rows
 * are not sorted; its text is copied. Returns false when out of memory.
 */
bool wss_held_rows_add(struct wss_held_rows *held, const struct wss_value *key);

/* Adds a text to the row that was added last. Returns false when out of memory. */
bool wss_held_rows_text(struct wss_held_rows *held, const char *text);

/* Removes the row that was added last. */
void wss_held_rows_drop(struct wss_held_rows *held);

/*
 * Sorts by the keys. Unknown values come last in either order; equal rows keep their order. If
 * interruptible, a stop request leaves the rows in any order.
 */
void wss_held_rows_sort(struct wss_held_rows *held, bool falling, bool interruptible);

/* Returns the first text of row i; the others follow behind its NUL. */
const char *wss_held_rows_cells(const struct wss_held_rows *held, size_t i);

/* Frees all rows. */
void wss_held_rows_free(struct wss_held_rows *held);
