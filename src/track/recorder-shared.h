/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the BPF program of the recorder and the program that loads it share.
 */
#ifndef WSS_TRACK_RECORDER_SHARED_H
#define WSS_TRACK_RECORDER_SHARED_H

#include <linux/types.h>

#define WSS_RECORDER_RANGES 16

/*
 * Buckets of time since the invalidation: the first up to 2^16 ns (66 us), then four to each
 * doubling, so that neighbours are at most a factor of 1.25 apart (10 a decade or more), up
 * to 2^40 ns (1100 s); the last has all that came later.
 */
#define WSS_TOUCH_FIRST_BITS 16
#define WSS_TOUCH_LAST_BITS 40
#define WSS_TOUCH_BUCKETS (4 * (WSS_TOUCH_LAST_BITS - WSS_TOUCH_FIRST_BITS) + 2)

/* The bucket of ns. */
static inline __u32 wss_touch_bucket(__u64 ns)
{
	__u64 rest = ns;
	__u32 bits = 0; /* position of the highest bit that is set */

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

/* Times in this bucket and in those before are less than this, ns; bucket is not the last. */
static inline __u64 wss_touch_bound(__u32 bucket)
{
	if (!bucket)
		return 1ULL << WSS_TOUCH_FIRST_BITS;
	return (__u64)(4 + (bucket - 1) % 4 + 1) << (WSS_TOUCH_FIRST_BITS - 2 + (bucket - 1) / 4);
}

#endif
