/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/writes.h"

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
	return from_bytes + (point->bytes[end] - from_bytes) * (seconds - from_s) /
				    (point->seconds - from_s);
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
