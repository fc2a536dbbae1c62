/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texts from outside: names of guests, what QEMU and libvirt say, what is in files. Here is
 * decided what of them is shown, whatever the output.
 */
#ifndef WSS_BASE_TEXT_H
#define WSS_BASE_TEXT_H

#include <stdbool.h>

/* Length of the character at text, 1 to 4; 0 where there is no valid UTF-8. */
int wss_text_character(const char *text);

/* The code of the character at text, whose length is len (1 to 4). */
unsigned wss_text_code(const char *text, int len);

/*
 * Length of the character at text if it is not to be shown, and *ret_code: control and format
 * characters, which move a terminal's cursor or let the text around them appear in another
 * order; line and paragraph separators; what takes no room, so that two names look the same;
 * and noncharacters, which no XML may have. 0: it is another, or no valid UTF-8.
 */
int wss_text_hidden(const char *text, unsigned *ret_code);

/* Length of the character at text if it may be shown, else 0: hidden, or no valid UTF-8. */
int wss_text_shown(const char *text);

/* Length of the character at text if it is a space of any width, else 0. */
int wss_text_space(const char *text);

/* Puts a '?' in the place of each byte of what is hidden, or is no valid UTF-8. */
void wss_text_sanitize(char *text);

#endif
