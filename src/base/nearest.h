/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the word that a mistyped one probably means. */
#pragma once

#include <stdbool.h>

/*
 * Returns the number of characters to insert, delete or replace to get from one word to the
 * other (Levenshtein distance, in bytes). Only the first 63 bytes of longer words are
 * compared.
 */
unsigned wss_edit_distance(const char *a, const char *b);

/* Nearest of the words offered so far. Initialize typed, and every other member to 0. */
struct wss_nearest {
	const char *typed;
	const char *word;
	unsigned distance;
};

/*
 * Offers a word, which must live as long as the struct is used. A word that begins with typed
 * counts as nearest.
 */
void wss_nearest_offer(struct wss_nearest *nearest, const char *word);

/*
 * Returns the nearest word if it is close enough to be what the user meant to type, else NULL;
 * of equally near words, the one offered first.
 */
const char *wss_nearest_word(const struct wss_nearest *nearest);

/* Whether a word at this distance is close enough to be what the user meant to type. */
bool wss_is_slip(const char *typed, unsigned distance);
