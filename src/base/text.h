/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Decides which characters of text from outside may be shown in any output: names of guests,
 * messages of QEMU and libvirt, contents of files.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the length of the character at text, 1 to 4; 0 for invalid UTF-8. */
int wss_text_character(const char *text);

/* Returns the code point of the character at text, whose length is len (1 to 4). */
unsigned wss_text_code(const char *text, int len);

/*
 * Returns the length of the character at text, and *ret_code, if it must not be shown: control
 * and format characters, which move a terminal's cursor or reorder the text around them; line
 * and paragraph separators; characters without width, which make different names look the
 * same; and noncharacters, which XML does not allow. Returns 0 for any other character and for
 * invalid UTF-8.
 */
int wss_text_hidden(const char *text, unsigned *ret_code);

/*
 * Returns the length of the character at text if it may be shown; 0 if it is hidden or invalid
 * UTF-8.
 */
int wss_text_shown(const char *text);

/* Returns the length of the character at text if it is a space of any width, else 0. */
int wss_text_space(const char *text);

/*
 * Returns how many characters at the beginning stand for themselves in JSON and in metrics: printable ASCII without
 * double quotes and backslashes. Most texts have no others, and a page has thousands of texts.
 */
size_t wss_text_plain(const char *text);

/*
 * Copies a text and shortens it to size (at least 16) bytes: an ellipsis replaces the part before the last three quarters
 * of the result, so that a message that begins with a long name still says what is wrong.
 */
void wss_text_fit(const char *text, char *ret_text, size_t size);

/* Drops the last character of a text that was cut within it. */
void wss_text_drop_incomplete(char *text);

/* Returns the text as one word of a POSIX shell, in quotes if need be, malloc()ed; NULL when out of memory. */
char *wss_text_shell_word(const char *text);

/* Replaces each byte of a hidden character or of invalid UTF-8 by '?'. */
void wss_text_sanitize(char *text);
