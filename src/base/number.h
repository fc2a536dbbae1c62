/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic on figures that come from outside: from files, guests, QEMU and libvirt. Nothing
 * here overflows, whatever they say: what does not fit becomes the largest number that does.
 */
#ifndef WSS_BASE_NUMBER_H
#define WSS_BASE_NUMBER_H

#include <stdint.h>

/* More bytes than any memory has: an amount above it is none. */
#define WSS_BYTES_MAX (1ULL << 60)

/*
 * From the beginning of the year 0 to the end of 9999, in s since 1970: other times are none. A
 * clock that was wrong may have been before 1970.
 */
#define WSS_TIME_MIN_S (-62167219200LL)
#define WSS_TIME_MAX_S 253402300799LL

/* Cut off at the point; 0 for what is negative or not a number. */
static inline uint64_t wss_u64_from_double(double number)
{
	if (!(number >= 1))
		return 0;
	/* The smallest double above what fits. */
	return number < 18446744073709551616.0 ? (uint64_t)number : UINT64_MAX;
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

#endif
