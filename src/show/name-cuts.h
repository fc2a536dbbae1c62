/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names that are cut to fit a table. Names of guests often differ only at their end, or only in the
 * middle; two that were cut must still look different, and each the same in all its rows.
 */
#pragma once

#include <stddef.h>

/* A name that did not fit, and the text that stands for it. */
struct wss_name_cut;

/* Starts as all zero. */
struct wss_name_cuts {
	struct wss_name_cut *cuts;
	size_t n;
};

/*
 * Shortens a name, in a buffer of size bytes, to at most width columns (1 or more) with an ellipsis:
 * in its middle, or elsewhere if another name would then look the same.
 */
void wss_name_cuts_apply(struct wss_name_cuts *cuts, char *name, size_t size, int width);

/* Forgets all names. */
void wss_name_cuts_free(struct wss_name_cuts *cuts);
