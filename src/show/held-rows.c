/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "show/held-rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/stop.h"
#include "show/report-private.h"

/* The cells of most rows take less. */
#define TEXT_BYTES_LEAST 4096

struct wss_held_row {
	size_t key_at;	 /* position of the key's text, if it is one */
	size_t cells_at; /* position of the first cell; grows from row to row as they come */
	enum wss_kind kind;
	union {
		uint64_t number;
		double real;
	} key;
};

static bool row_make_room(struct wss_held_rows *held)
{
	size_t room = held->room ? 2 * held->room : 16;
	struct wss_held_row *rows;

	if (held->n < held->room)
		return true;
	rows = reallocarray(held->rows, room, sizeof(*rows));
	if (!rows)
		return false;
	held->rows = rows;
	held->room = room;
	return true;
}

static bool is_real_kind(enum wss_kind kind)
{
	return kind == WSS_KIND_SHARE || kind == WSS_KIND_FACTOR;
}

bool wss_held_rows_add(struct wss_held_rows *held, const struct wss_value *key)
{
	struct wss_held_row row = {.key_at = held->used_bytes};

	if (!row_make_room(held))
		return false;
	if (key) {
		row.kind = key->kind;
		if (is_real_kind(key->kind))
			row.key.real = key->real;
		else
			row.key.number = key->number;
	}
	if (row.kind == WSS_KIND_TEXT && !wss_held_rows_text(held, key->text))
		return false;
	row.cells_at = held->used_bytes;
	held->rows[held->n++] = row;
	return true;
}

bool wss_held_rows_text(struct wss_held_rows *held, const char *text)
{
	size_t bytes = strlen(text) + 1,
	       room = held->room_bytes ? held->room_bytes : TEXT_BYTES_LEAST;
	char *texts;

	while (room - held->used_bytes < bytes)
		room *= 2;
	if (room != held->room_bytes) {
		texts = realloc(held->texts, room);
		if (!texts)
			return false;
		held->texts = texts;
		held->room_bytes = room;
	}
	memcpy(held->texts + held->used_bytes, text, bytes);
	held->used_bytes += bytes;
	return true;
}

void wss_held_rows_drop(struct wss_held_rows *held)
{
	held->used_bytes = held->rows[--held->n].key_at;
}

struct order {
	const struct wss_held_rows *held;
	bool falling;
	bool interruptible;
};

static struct wss_value key_of(const struct wss_held_rows *held, const struct wss_held_row *row)
{
	return (struct wss_value){
		.kind = row->kind,
		.text = row->kind == WSS_KIND_TEXT ? held->texts + row->key_at : NULL,
		.number = is_real_kind(row->kind) ? 0 : row->key.number,
		.real = is_real_kind(row->kind) ? row->key.real : 0,
	};
}

static int row_compare(const void *a, const void *b, void *opaque)
{
	const struct order *order = opaque;
	const struct wss_held_row *x = a, *y = b;
	struct wss_value x_key = key_of(order->held, x), y_key = key_of(order->held, y);
	int difference = 0;

	/* After a stop request nobody needs the order. */
	if (order->interruptible && wss_stop_requested())
		return 0;
	if ((x->kind == WSS_KIND_ABSENT) != (y->kind == WSS_KIND_ABSENT))
		return x->kind == WSS_KIND_ABSENT ? 1 : -1;
	if (x->kind != WSS_KIND_ABSENT)
		difference = wss_value_compare(&x_key, &y_key);
	if (difference)
		return order->falling ? -difference : difference;
	return (x->cells_at > y->cells_at) - (x->cells_at < y->cells_at);
}

void wss_held_rows_sort(struct wss_held_rows *held, bool falling, bool interruptible)
{
	struct order order = {held, falling, interruptible};

	if (held->n)
		qsort_r(held->rows, held->n, sizeof(*held->rows), row_compare, &order);
}

const char *wss_held_rows_cells(const struct wss_held_rows *held, size_t i)
{
	return held->texts + held->rows[i].cells_at;
}

void wss_held_rows_free(struct wss_held_rows *held)
{
	free(held->texts);
	free(held->rows);
	*held = (struct wss_held_rows){.n = 0};
}
