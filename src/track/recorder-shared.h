/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Definitions that the recorder's BPF program shares with the program that loads it. */
#ifndef WSS_TRACK_RECORDER_SHARED_H
#define WSS_TRACK_RECORDER_SHARED_H

#include <linux/types.h>

#define WSS_RECORDER_RANGES 16

/*
 * Buckets of time since the invalidation: the first up to 2^16 ns (66 us), then four for each
 * doubling, so that neighbours are at most a factor of 1.25 apart (10 a decade or more), up to
 * 2^40 ns (1100 s); the last has everything later.
 */
#define WSS_TOUCH_FIRST_BITS 16
#define WSS_TOUCH_LAST_BITS 40
#define WSS_TOUCH_BUCKETS (4 * (WSS_TOUCH_LAST_BITS - WSS_TOUCH_FIRST_BITS) + 2)

/* Returns the bucket of a time. */
static inline __u32 wss_touch_bucket(__u64 ns)
{
	__u64 rest = ns;
	__u32 bits = 0; /* position of the highest bit set */

	if (ns < 1ULL << WSS_TOUCH_FIRST_BITS)
		return 0;
	if (ns >= 1ULL << WSS_TOUCH_LAST_BITS)
		return WSS_TOUCH_BUCKETS - 1;
	for (__u32 step = 32; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			bits += step;
		}
	}
	return 1 + 4 * (bits - WSS_TOUCH_FIRST_BITS) + (__u32)((ns >> (bits - 2)) & 3);
}

/*
 * Returns the exclusive upper bound, in ns, of the times in this bucket. bucket must not be
 * the last one.
 */
static inline __u64 wss_touch_bound(__u32 bucket)
{
	if (!bucket)
		return 1ULL << WSS_TOUCH_FIRST_BITS;
	return (__u64)(4 + (bucket - 1) % 4 + 1) << (WSS_TOUCH_FIRST_BITS - 2 + (bucket - 1) / 4);
}

#endif
