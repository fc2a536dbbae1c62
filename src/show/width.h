/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Width of UTF-8 text on a terminal, and functions that make it fit. Widths are in columns of the
 * terminal: a CJK character takes two, a combining one none.
 */
#pragma once

#include <stddef.h>

/* Returns the width of text; a byte that is not UTF-8 counts as one column. */
int wss_text_width(const char *text);

/*
 * Shortens text, in a buffer of size bytes, to at most width columns (1 or more), ending it
 * with an ellipsis if anything is cut.
 */
void wss_text_cut(char *text, size_t size, int width);

/*
 * Does the same, but keeps head columns (0 to width - 1) of the start and as much of the end as fits,
 * with the ellipsis in between.
 */
void wss_text_cut_inside(char *text, size_t size, int width, int head);

/* Columns that the name of a guest takes at most in a message or a table, whatever its length. */
#define WSS_NAME_WIDTH_MAX 64
#define WSS_NAME_SHORT_MAX 512

/* Copies a name, with an ellipsis inside if it is wider than WSS_NAME_WIDTH_MAX. */
void wss_name_shorten(const char *name, char ret_text[static WSS_NAME_SHORT_MAX]);

/*
 * Returns the number of bytes at the start of text that fit into a line of width columns, at least
 * one character. The line ends before a blank if it contains one; text without a blank is broken
 * anywhere.
 */
size_t wss_text_line(const char *text, int width);
