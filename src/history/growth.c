/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/growth.h"

#include <math.h>

#include "base/number.h"
#include "measure/curve.h"

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

/* Returns the ratio of the growth from b to c to that from a to b, per e; at most 1. */
static double decay_at(const struct point *a, const struct point *b, const struct point *c)
{
	double before = per_e(a, b), after = per_e(b, c);

	if (after <= 0)
		return 0;
	return before <= after ? 1 : after / before;
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
	growth.step_e = log(last->seconds / points[n - 2].seconds);
	/* The slower of two: a single flat step may be a pause of the guest. */
	growth.decay = n < 4 ? 1
			     : fmax(decay_at(&points[n - 4], &points[n - 3], &points[n - 2]),
				    decay_at(&points[n - 3], &points[n - 2], last));
	return growth;
}

bool wss_growth_goes_on(const struct wss_growth *growth)
{
	return growth->known && growth->per_doubling > WSS_KNEE_GROWTH;
}

/* Returns the sum of decay^i, i from 1 to n; n need not be whole. */
static double decaying_steps(double decay, double n)
{
	return decay < 1 ? decay * (1 - pow(decay, n)) / (1 - decay) : n;
}

uint64_t wss_growth_beyond_bytes(const struct wss_growth *growth)
{
	double steps;

	if (!wss_growth_goes_on(growth) || growth->seconds >= WSS_GROWTH_HORIZON_S)
		return 0;
	steps = log(WSS_GROWTH_HORIZON_S / growth->seconds) / growth->step_e;
	return wss_u64_from_double(growth->per_e_bytes * growth->step_e *
				   decaying_steps(growth->decay, steps));
}
