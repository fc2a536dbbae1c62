/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The growth curve of the written set: how much memory a guest writes within a time, with
 * bounds. Rewriting the same memory adds nothing. This is what a migration sends again after
 * it has taken that time for a pass.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/sample.h"

/* Which end of the bounds, or what lies between them. */
enum wss_end { WSS_END_LOW, WSS_END_EXPECTED, WSS_END_HIGH };
#define WSS_ENDS 3

#define WSS_WRITES_MAX 128

/* A point of the curve; bytes are in the order of enum wss_end. */
struct wss_writes_point {
	double seconds;
	double bytes[WSS_ENDS];
};

struct wss_writes {
	size_t n;
	struct wss_writes_point points[WSS_WRITES_MAX]; /* times ascend, and so do bytes */
};

/*
 * Adds a point. It replaces points at the same time or later, so that points are added in the
 * order of time; bytes that are below those of an earlier point are raised to them, because a
 * set does not shrink, and bounds are widened to include what is expected. A point at or
 * before 0 s, or beyond WSS_WRITES_MAX, is left out.
 */
void wss_writes_add(struct wss_writes *writes, double seconds, double low_bytes, double bytes,
		    double high_bytes);

/* Returns the largest rate of any of these points, in bytes/s; 0 if there is none. Times are above 0. */
double wss_writes_fastest(const struct wss_writes_point *points, size_t n, enum wss_end end);

/* Returns the time of the last point, in s; 0 if there is none. */
double wss_writes_seconds(const struct wss_writes *writes);

/*
 * Returns the bytes written within a time of at least 0 s.
 *
 * Between two points the curve is a straight line. Before the first, the low end and what is
 * expected are a line from 0, and the high end is the first point itself: the guest may have
 * written everything at once. After the last point the low end stays where it is, the high end
 * goes on as steeply as from half of the time to the last point, and what is expected goes on
 * along the logarithm of time (history/growth.h), which lies between both. 0 if there is no point.
 */
double wss_writes_at(const struct wss_writes *writes, double seconds, enum wss_end end);

/*
 * Returns the written set that QEMU's page sampling found: the content of mib_per_s * seconds
 * MiB changed, rounded down, where per_gib pages were sampled in each GiB of ram_bytes. The
 * bounds are two standard errors of that share.
 */
struct wss_writes_point wss_writes_sampled(double ram_bytes, unsigned seconds, uint64_t mib_per_s,
					   unsigned per_gib);

/*
 * Combines a growth curve of touched memory, n_touched points of a window, with n_measured
 * figures of the written set in the order of time. What is touched is the upper bound of what
 * is written, at any time. Before the first figure, what is expected has the shape of the
 * touched set, and the low end is a straight line from 0. Without figures all that is touched
 * may be written, and is expected to be, and the low end is 0. Either list may be
 * empty. Where the curve only has bounds, as on huge pages, the high end of the figures
 * bounds what is written as well, and before the first figure all follows a power law
 * through the first two.
 */
void wss_writes_combine(struct wss_writes *ret_writes, const struct wss_curve_point *touched,
			size_t n_touched, const struct wss_writes_point *measured,
			size_t n_measured);
