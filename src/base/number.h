/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on figures from outside: from files, guests, QEMU and libvirt. Nothing here
 * overflows: results saturate.
 */
#pragma once

#include <stdint.h>

/* Upper bound of any amount of memory; larger figures are invalid. */
#define WSS_BYTES_MAX (1ULL << 60)

/*
 * Valid times, in s since 1970: from the beginning of the year 0 to the end of 9999. A wrong
 * clock may have been before 1970.
 */
#define WSS_TIME_MIN_S (-62167219200LL)
#define WSS_TIME_MAX_S 253402300799LL

/* Truncates; 0 for negative numbers and NaN. */
static inline uint64_t wss_u64_from_double(double number)
{
	if (!(number >= 1))
		return 0;
	/* The smallest double that does not fit. */
	return number < 18446744073709551616.0 ? (uint64_t)number : UINT64_MAX;
}

static inline uint64_t wss_u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t wss_u64_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns the ending of a noun after this number in a message: "guest%s". */
static inline const char *wss_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* These give the nearest number that there is. */
static inline uint64_t wss_u64_sub(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static inline uint64_t wss_u64_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t wss_u64_mul(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
