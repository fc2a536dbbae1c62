/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes to text at random places, for a fuzzer without libFuzzer. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../random.h"

/* Longest piece that is cut out or overwritten with junk. */
#define MUTATE_PIECE_MAX 64

/*
 * One change to data, of which size bytes, at least 1, of room are used: a byte, a piece cut
 * out, a piece doubled, or one of n pieces put in. Returns its new size, at least 1.
 */
static inline size_t mutate(uint8_t *data, size_t size, size_t room, const char *const *pieces,
			    size_t n)
{
	const char *piece = pieces[random_below(n)];
	size_t at = (size_t)random_below(size), rest = size - at;
	size_t len = 1 + (size_t)random_below(rest < MUTATE_PIECE_MAX ? rest : MUTATE_PIECE_MAX);
	size_t added = strlen(piece);

	switch (random_below(4)) {
	case 0:
		data[at] = (uint8_t)random_below(256);
		return size;
	case 1:
		if (len == size)
			return size;
		memmove(data + at, data + at + len, rest - len);
		return size - len;
	case 2:
		if (size + added > room)
			return size;
		memmove(data + at + added, data + at, rest);
		memcpy(data + at, piece, added);
		return size + added;
	default:
		if (size + len > room)
			return size;
		memmove(data + at + len, data + at, rest);
		return size + len;
	}
}
