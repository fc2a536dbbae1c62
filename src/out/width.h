/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much room a UTF-8 text takes on a terminal, and how to make it fit. Widths are in columns
 * of the terminal: a CJK character takes two, a combining one none.
 */
#ifndef WSS_OUT_WIDTH_H
#define WSS_OUT_WIDTH_H

#include <stddef.h>

/* Columns that text takes; a byte that is no UTF-8 counts as one. */
int wss_text_width(const char *text);

/*
 * Shortens text, in a buffer of size bytes, to at most width columns (1 or more), with an
 * ellipsis at its end where anything is left out.
 */
void wss_text_cut(char *text, size_t size, int width);

/*
 * Bytes at the start of text that fit into a line of width columns, at least one character. The
 * line ends before a blank where there is one in it; text that has no blank is broken anywhere.
 */
size_t wss_text_line(const char *text, int width);

#endif
