/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Relation of a figure to the true one. */
#pragma once

#include "base/amount.h"

enum wss_bound {
	WSS_BOUND_EXACT,
	WSS_BOUND_AT_MOST,  /* the true one may be smaller */
	WSS_BOUND_AT_LEAST, /* the true one may be larger */
};

/*
 * Returns how value, one of the bounds low and high of a size, relates to that size; unknown
 * bounds are ignored. Exact if value equals both, or neither is known.
 */
enum wss_bound wss_bound_of(uint64_t value, struct wss_amount low, struct wss_amount high);

/* Returns how a figure from windows of this granularity relates to the true one: above 4 KiB they only limit it from above. */
static inline enum wss_bound wss_bound_of_granularity(uint64_t granularity_bytes)
{
	return granularity_bytes > 4096 ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT;
}

/* Returns value as a whole number, rounded so that it remains the bound that it is; to the nearest where it is exact. */
double wss_bound_round(double value, enum wss_bound bound);

/* "exact", "at most", "at least". */
const char *wss_bound_name(enum wss_bound bound);
