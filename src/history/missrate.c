/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/missrate.h"

#include <math.h>

#include "base/number.h"

#define PAGE 4096.0

typedef struct wss_missrate_point point;

static double missrate_slope(const point *a, const point *b)
{
	return (b->bytes - a->bytes) / (b->seconds - a->seconds);
}

/* Finds the corners of the least concave majorant of (0, 0) and the points, in order of time. */
static size_t find_corners(const double *seconds, const double *bytes, size_t n, point *corners)
{
	size_t used = 1;

	corners[0] = (point){0, 0};
	for (size_t i = 0; i < n; i++) {
		point next = {seconds[i], bytes[i]};

		/* Working sets do not shrink with time: a decrease is noise. */
		if (next.bytes < corners[used - 1].bytes)
			next.bytes = corners[used - 1].bytes;
		while (used > 1 && missrate_slope(&corners[used - 2], &corners[used - 1]) <
					   missrate_slope(&corners[used - 1], &next))
			used--;
		corners[used++] = next;
	}
	return used;
}

/*
 * Evaluates the majorant at all measured times, not only at its corners: its slope is later
 * taken between neighbours, which must not be far apart.
 */
void wss_missrate_init(struct wss_missrate *missrate, const double *seconds, const double *bytes,
		       size_t n)
{
	point corners[WSS_SUMMARY_POINTS + 1];
	size_t at = 0, n_corners;

	if (n > WSS_SUMMARY_POINTS)
		n = WSS_SUMMARY_POINTS;
	n_corners = find_corners(seconds, bytes, n, corners);
	missrate->points[0] = corners[0];
	for (size_t i = 0; i < n; i++) {
		while (at + 2 < n_corners && corners[at + 1].seconds < seconds[i])
			at++;
		missrate->points[i + 1] = (point){
			seconds[i],
			corners[at].bytes + (seconds[i] - corners[at].seconds) *
						    missrate_slope(&corners[at], &corners[at + 1])};
		/* Rounding must not make the curve fall: no rate is negative. */
		if (missrate->points[i + 1].bytes < missrate->points[i].bytes)
			missrate->points[i + 1].bytes = missrate->points[i].bytes;
	}
	missrate->n = n + 1;
}

bool wss_missrate_from_summary(struct wss_missrate *missrate, const struct wss_summary *summary)
{
	double seconds[WSS_SUMMARY_POINTS], bytes[WSS_SUMMARY_POINTS];
	size_t n = 0;

	if (summary->samples < WSS_MISSRATE_WINDOWS_MIN)
		return false;
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		const struct wss_summary_point *from = &summary->curve[k];

		if (!from->n || !wss_summary_point_is_typical(summary, k))
			continue;
		seconds[n] = (double)wss_summary_time_ns(k) / 1e9;
		bytes[n++] = (double)from->sum_pages * PAGE / (double)from->n;
	}
	if (n < 3)
		return false;
	wss_missrate_init(missrate, seconds, bytes, n);
	return missrate->n >= 2;
}

uint64_t wss_missrate_known_bytes(const struct wss_missrate *missrate)
{
	return wss_u64_from_double(missrate->points[missrate->n - 1].bytes);
}

static double missrate_segment(const struct wss_missrate *missrate, size_t i)
{
	return missrate_slope(&missrate->points[i], &missrate->points[i + 1]);
}

/* A larger ratio of neighbouring slopes counts as a kink, as at the end of a loop. */
#define KINK 2

/*
 * Slope of segment i at its end towards segment j: the mean of both, as on a smooth curve; at
 * a kink each keeps its own.
 */
static double slope_towards(const struct wss_missrate *missrate, size_t i, size_t j)
{
	double own = missrate_segment(missrate, i), other;

	if (j >= missrate->n - 1) /* no neighbour on that side */
		return own;
	other = missrate_segment(missrate, j);
	return own > KINK * other || other > KINK * own ? own : (own + other) / 2;
}

double wss_missrate_at(const struct wss_missrate *missrate, uint64_t bytes, bool *ret_bound)
{
	const point *points = missrate->points;
	double size = (double)bytes, share = 1;
	size_t i = 0;

	*ret_bound = size > points[missrate->n - 1].bytes;
	while (i + 2 < missrate->n && points[i + 1].bytes <= size)
		i++;
	if (*ret_bound)
		return missrate_segment(missrate, i) / PAGE;
	if (points[i + 1].bytes > points[i].bytes)
		share = (size - points[i].bytes) / (points[i + 1].bytes - points[i].bytes);
	return (slope_towards(missrate, i, i - 1) * (1 - share) +
		slope_towards(missrate, i, i + 1) * share) /
	       PAGE;
}

double wss_missrate_loss(double rate, uint64_t fault_ns)
{
	double lost = rate * (double)fault_ns / 1e9;

	return lost / (1 + lost);
}

bool wss_missrate_size(const struct wss_missrate *missrate, double loss, uint64_t fault_ns,
		       uint64_t *ret_bytes)
{
	uint64_t low = 0, high = wss_missrate_known_bytes(missrate);
	bool bound;

	if (wss_missrate_loss(wss_missrate_at(missrate, high, &bound), fault_ns) > loss)
		return false;
	/* The rate falls as the size grows, so bisection finds the size to within a page. */
	while (high - low > (uint64_t)PAGE) {
		uint64_t middle = low + (high - low) / 2;

		if (wss_missrate_loss(wss_missrate_at(missrate, middle, &bound), fault_ns) > loss)
			low = middle;
		else
			high = middle;
	}
	*ret_bytes = high;
	return true;
}

/* W(t) = W(T) + T W'(T) ln(t / T) has the wanted slope at t = T W'(T) / wanted. */
uint64_t wss_missrate_reach_bytes(const struct wss_missrate *missrate, double loss,
				  uint64_t fault_ns)
{
	const point *last = &missrate->points[missrate->n - 1];
	double rises = missrate_segment(missrate, missrate->n - 2);
	double wanted = loss / (1 - loss) * 1e9 / (double)fault_ns * PAGE, reach = last->bytes;

	if (rises > wanted)
		reach += last->seconds * rises * log(rises / wanted);
	return reach < 9e18 ? wss_u64_from_double(reach) : (uint64_t)9e18;
}
