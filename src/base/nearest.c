/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/nearest.h"

#include <string.h>

#define WORD_MAX 63

static unsigned min_unsigned(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned wss_edit_distance(const char *a, const char *b)
{
	size_t a_len = strnlen(a, WORD_MAX), b_len = strnlen(b, WORD_MAX);
	unsigned row[WORD_MAX + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned replace = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = min_unsigned(replace, min_unsigned(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_len];
}

bool wss_is_slip(const char *typed, unsigned distance)
{
	return distance <= 1 + strnlen(typed, WORD_MAX) / 3;
}

void wss_nearest_offer(struct wss_nearest *nearest, const char *word)
{
	size_t len = strlen(nearest->typed);
	unsigned distance = wss_edit_distance(nearest->typed, word);

	if (len && !strncmp(nearest->typed, word, len))
		distance = 0;
	if (!nearest->word || distance < nearest->distance) {
		nearest->word = word;
		nearest->distance = distance;
	}
}

const char *wss_nearest_word(const struct wss_nearest *nearest)
{
	return nearest->word && wss_is_slip(nearest->typed, nearest->distance) ? nearest->word
									       : NULL;
}
