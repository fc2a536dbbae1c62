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

/* Whether words of this distance are near enough for one to be a slip of the other. */
bool wss_is_slip(const char *typed, unsigned distance);

#endif
