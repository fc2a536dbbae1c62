/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/writes.h"

#include <math.h>

void wss_writes_add(struct wss_writes *writes, double seconds, double low_bytes, double bytes,
		    double high_bytes)
{
	struct wss_writes_point *point;

	while (writes->n && writes->points[writes->n - 1].seconds >= seconds)
		writes->n--;
	if (!(seconds > 0) || writes->n == WSS_WRITES_MAX)
		return;
	point = &writes->points[writes->n];
	*point = (struct wss_writes_point){
		seconds, {fmin(low_bytes, bytes), bytes, fmax(high_bytes, bytes)}};
	for (size_t end = 0; writes->n && end < WSS_ENDS; end++)
		point->bytes[end] = fmax(point->bytes[end], point[-1].bytes[end]);
	writes->n++;
}

double wss_writes_fastest(const struct wss_writes_point *points, size_t n, enum wss_end end)
{
	double fastest = 0;

	for (size_t i = 0; i < n; i++)
		fastest = fmax(fastest, points[i].bytes[end] / points[i].seconds);
	return fastest;
}

double wss_writes_seconds(const struct wss_writes *writes)
{
	return writes->n ? writes->points[writes->n - 1].seconds : 0;
}

/* Reads the curve at a time that is not after its last point. */
static double writes_within(const struct wss_writes *writes, double seconds, enum wss_end end)
{
	const struct wss_writes_point *point = writes->points;
	double from_s = 0, from_bytes = 0;

	while (point->seconds < seconds)
		point++;
	if (point > writes->points) {
		from_s = point[-1].seconds;
		from_bytes = point[-1].bytes[end];
	} else if (end == WSS_END_HIGH && seconds > 0) {
		return point->bytes[end];
	}
	return from_bytes +
	       (point->bytes[end] - from_bytes) * (seconds - from_s) / (point->seconds - from_s);
}

double wss_writes_at(const struct wss_writes *writes, double seconds, enum wss_end end)
{
	double last_s = wss_writes_seconds(writes), last, grown;

	if (!writes->n)
		return 0;
	if (seconds <= last_s)
		return writes_within(writes, seconds, end);
	last = writes->points[writes->n - 1].bytes[end];
	if (end == WSS_END_LOW)
		return last;
	grown = last - writes_within(writes, last_s / 2, end);
	return end == WSS_END_HIGH ? last + grown * (seconds - last_s) / (last_s / 2)
				   : last + grown * log2(seconds / last_s);
}

struct wss_writes_point wss_writes_sampled(double ram_bytes, unsigned seconds, uint64_t mib_per_s,
					   unsigned per_gib)
{
	double samples = fmax(1, ram_bytes * 0x1p-30 * per_gib);
	double least = fmin((double)mib_per_s * seconds * 0x1p20, ram_bytes);
	/* With one page more of each kind, no share has an error of 0. */
	double share = (least / ram_bytes * samples + 1) / (samples + 2);
	double error = 2 * sqrt(share * (1 - share) / samples) * ram_bytes;

	return (struct wss_writes_point){seconds,
					 {fmax(0, least - error),
					  fmin(least + seconds * 0x1p19, ram_bytes),
					  fmin(least + seconds * 0x1p20 + error, ram_bytes)}};
}

static double touched_high(const struct wss_curve_point *point)
{
	return (double)(point->high_bytes ? point->high_bytes : point->bytes);
}

/*
 * Returns what was measured at a time. Before the first figure it follows a power law through
 * the first two, 1 for a set that grows steadily, 0 for one that is complete; the high end
 * half as steeply.
 */
static double measured_at(const struct wss_writes *measured, double seconds, enum wss_end end)
{
	const struct wss_writes_point *first = measured->points;
	double exponent = 1;

	if (end == WSS_END_LOW || seconds >= first->seconds)
		return wss_writes_at(measured, seconds, end);
	if (measured->n > 1 && first[0].bytes[WSS_END_EXPECTED] > 0)
		exponent =
			log(first[1].bytes[WSS_END_EXPECTED] / first[0].bytes[WSS_END_EXPECTED]) /
			log(first[1].seconds / first[0].seconds);
	exponent = fmin(exponent, 1) * (end == WSS_END_HIGH ? 0.5 : 1);
	return first->bytes[end] * pow(seconds / first->seconds, exponent);
}

/* Whether the touched set is only bounded at a point, because huge pages count as a whole. */
static bool touched_is_coarse(const struct wss_curve_point *point)
{
	return point->high_bytes > point->low_bytes;
}

/* Returns what is known at a point of the touched curve, which is touched_first at the first
 * figure. */
static struct wss_writes_point writes_point_at(const struct wss_writes *measured,
					       const struct wss_curve_point *at,
					       double touched_first)
{
	struct wss_writes_point point = {.seconds = (double)at->ns / 1e9};
	double *bytes = point.bytes, touched = touched_high(at);

	bytes[WSS_END_LOW] = wss_writes_at(measured, point.seconds, WSS_END_LOW);
	bytes[WSS_END_EXPECTED] = bytes[WSS_END_HIGH] = touched;
	if (!measured->n)
		return point;
	if (touched_is_coarse(at) || point.seconds >= measured->points[0].seconds ||
	    !(touched_first > 0))
		bytes[WSS_END_EXPECTED] = measured_at(measured, point.seconds, WSS_END_EXPECTED);
	else
		bytes[WSS_END_EXPECTED] *=
			measured->points[0].bytes[WSS_END_EXPECTED] / touched_first;
	/* The high end of what was measured is nearer the truth then. */
	if (touched_is_coarse(at))
		bytes[WSS_END_HIGH] =
			fmin(touched, fmax(measured_at(measured, point.seconds, WSS_END_HIGH),
					   (double)at->low_bytes));
	bytes[WSS_END_HIGH] = fmax(bytes[WSS_END_HIGH], bytes[WSS_END_LOW]);
	bytes[WSS_END_EXPECTED] = fmin(bytes[WSS_END_EXPECTED], bytes[WSS_END_HIGH]);
	return point;
}

/* Reads the touched set at a time within the window; 0 if it is unknown. */
static double touched_at(const struct wss_curve_point *touched, size_t n, double seconds)
{
	size_t i = 0;

	while (i < n && (double)touched[i].ns < seconds * 1e9)
		i++;
	return i < n ? touched_high(&touched[i]) : 0;
}

void wss_writes_combine(struct wss_writes *ret_writes, const struct wss_curve_point *touched,
			size_t n_touched, const struct wss_writes_point *measured,
			size_t n_measured)
{
	struct wss_writes known = {.n = 0};
	double first = 0, end_s = n_touched ? (double)touched[n_touched - 1].ns / 1e9 : 0;

	for (size_t i = 0; i < n_measured; i++)
		wss_writes_add(&known, measured[i].seconds, measured[i].bytes[WSS_END_LOW],
			       measured[i].bytes[WSS_END_EXPECTED],
			       measured[i].bytes[WSS_END_HIGH]);
	if (known.n)
		first = touched_at(touched, n_touched, known.points[0].seconds);
	ret_writes->n = 0;
	for (size_t i = 0; i < n_touched && ret_writes->n < WSS_CURVE_MAX; i++) {
		struct wss_writes_point point = writes_point_at(&known, &touched[i], first);

		wss_writes_add(ret_writes, point.seconds, point.bytes[WSS_END_LOW],
			       point.bytes[WSS_END_EXPECTED], point.bytes[WSS_END_HIGH]);
	}
	/* Nobody knows what else is touched after the window. */
	for (size_t i = 0; i < known.n; i++)
		if (known.points[i].seconds > end_s)
			wss_writes_add(ret_writes, known.points[i].seconds,
				       known.points[i].bytes[WSS_END_LOW],
				       known.points[i].bytes[WSS_END_EXPECTED],
				       known.points[i].bytes[WSS_END_HIGH]);
}
