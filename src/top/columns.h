/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The columns of top: what each says of a guest, and what it sorts by. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/guests.h"

/* The sort key of a column: text, or a figure that may be unknown. */
struct wss_top_key {
	const char *text;
	struct wss_amount number;
};

struct wss_top_column {
	const char *name; /* to sort by it; NULL: one cannot */
	const char *header;
	int width;	 /* 0: what is left, see wss_top_layout() */
	int from;	 /* width of the screen from which it is shown */
	int letter;	 /* key to sort by it */
	bool left;	 /* aligned */
	bool descending; /* at first */
	const char *help;
	/* Returns what the guest is sorted by; NULL: one cannot sort by this column. */
	struct wss_top_key (*key)(const struct wss_guest_view *guest);
	/* Stores the text of a cell, which is "" before; late_ns: time since the view was taken. */
	void (*format)(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size);
};

/* In the order of the screen: the name of the guest first, the reason why it was not measured last. */
extern const struct wss_top_column wss_top_columns[];
extern const size_t wss_top_n_columns; /* at most WSS_TOP_COLUMNS_MAX */
