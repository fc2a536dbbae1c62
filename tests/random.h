/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The same numbers in each run and on every machine: xorshift64 (Marsaglia, Xorshift RNGs, 2003).
 */
#pragma once

#include <stdint.h>

static uint64_t random_state = 0x9e3779b97f4a7c15;

static inline uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}
