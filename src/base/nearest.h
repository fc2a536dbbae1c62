/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far a mistyped word is from one that exists. */
#ifndef WSS_BASE_NEAREST_H
#define WSS_BASE_NEAREST_H

#include <stdbool.h>

/*
 * Characters to insert, delete or replace to get from one word to the other (Levenshtein
 * distance, in bytes). Of longer words only the first 63 bytes are compared.
 */
unsigned wss_edit_distance(const char *a, const char *b);

/* The nearest of the words that were offered so far; all but typed starts as 0. */
struct wss_nearest {
	const char *typed;
	const char *word;
	unsigned distance;
};

/* Offers a word, which must live as long as the struct is used. One that typed begins is nearest. */
void wss_nearest_offer(struct wss_nearest *nearest, const char *word);

/* The nearest word where typed may be a slip of it, else NULL. Of equals, the first offered. */
const char *wss_nearest_word(const struct wss_nearest *nearest);

/* Whether words of this distance are near enough for one to be a slip of the other. */
bool wss_is_slip(const char *typed, unsigned distance);

#endif
