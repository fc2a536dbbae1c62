/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/growth.h"

#include <math.h>

#include "base/number.h"
#include "wss/curve.h"

#define PAGE 4096.0

struct point {
	double seconds, bytes;
};

/*
 * Reads the mean curve at the times that nearly all windows reached. Returns the number of
 * points.
 */
static size_t growth_points(const struct wss_summary *summary, struct point *points)
{
	size_t n = 0;

	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		const struct wss_summary_point *from = &summary->curve[k];

		if (!from->n || !wss_summary_point_is_typical(summary, k))
			continue;
		points[n++] = (struct point){(double)wss_summary_time_ns(k) / 1e9,
					     (double)from->sum_pages * PAGE / (double)from->n};
	}
	return n;
}

/* Returns the growth between two points, in bytes for each factor e of time. */
static double per_e(const struct point *a, const struct point *b)
{
	return (b->bytes - a->bytes) / log(b->seconds / a->seconds);
}

/*
 * Returns the growth between two points with each doubling of time, as a share: the exponent
 * of a power law through both. It is 1 for an unfinished loop.
 */
static double per_doubling(const struct point *a, const struct point *b)
{
	if (b->bytes <= a->bytes)
		return 0;
	if (a->bytes <= 0)
		return 1;
	return pow(b->bytes / a->bytes, M_LN2 / log(b->seconds / a->seconds)) - 1;
}

struct wss_growth wss_growth_of(const struct wss_summary *summary)
{
	struct point points[WSS_SUMMARY_POINTS];
	size_t n = growth_points(summary, points), half = 0;
	struct wss_growth growth = {.known = n >= 2};
	const struct point *last = &points[n ? n - 1 : 0];

	if (!growth.known)
		return growth;
	while (half + 2 < n && points[half + 1].seconds <= last->seconds / 2)
		half++;
	growth.seconds = last->seconds;
	growth.per_e_bytes = fmax(0, per_e(&points[half], last));
	growth.per_doubling = per_doubling(&points[half], last);
	/* The curve may be steeper at the very end, as for an unfinished loop. */
	growth.per_e_bytes = fmax(growth.per_e_bytes, per_e(&points[n - 2], last));
	return growth;
}

bool wss_growth_goes_on(const struct wss_growth *growth)
{
	return growth->known && growth->per_doubling > WSS_KNEE_GROWTH;
}

uint64_t wss_growth_beyond_bytes(const struct wss_growth *growth)
{
	if (!wss_growth_goes_on(growth) || growth->seconds >= WSS_GROWTH_HORIZON_S)
		return 0;
	return wss_u64_from_double(growth->per_e_bytes *
				   log(WSS_GROWTH_HORIZON_S / growth->seconds));
}
