/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/bound.h"

#include <math.h>

/* Rounding error of a product: 5 + 1e-15, rounded up, must remain 5. */
#define ROUNDING 1e-6

enum wss_bound wss_bound_of(uint64_t value, struct wss_amount low, struct wss_amount high)
{
	if (low.known && high.known && low.value == high.value)
		return WSS_BOUND_EXACT;
	if (high.known && value == high.value)
		return WSS_BOUND_AT_MOST;
	return low.known || high.known ? WSS_BOUND_AT_LEAST : WSS_BOUND_EXACT;
}

double wss_bound_round(double value, enum wss_bound bound)
{
	switch (bound) {
	case WSS_BOUND_AT_MOST:
		return ceil(value - ROUNDING);
	case WSS_BOUND_AT_LEAST:
		return floor(value + ROUNDING);
	default:
		return round(value);
	}
}

const char *wss_bound_name(enum wss_bound bound)
{
	static const char *const names[] = {
		[WSS_BOUND_EXACT] = "exact",
		[WSS_BOUND_AT_MOST] = "at most",
		[WSS_BOUND_AT_LEAST] = "at least",
	};

	return names[bound];
}
