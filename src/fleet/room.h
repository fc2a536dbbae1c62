/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What still fits on a host beside its guests, by what they need together in each hour of the
 * week, and which of them to shrink first.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/pack.h"
#include "measure/sample.h"

/* What a guest needs, apart from its week. */
struct wss_room_need {
	uint64_t flat_bytes;		 /* in hours that were not measured */
	struct wss_amount minimum_bytes; /* it never needs less than this */
	struct wss_amount maximum_bytes; /* nor more than this */
};

/* Returns what a guest needs in an hour in which its set was hour; unknown: it was not measured. */
uint64_t wss_room_need_in(const struct wss_room_need *need, struct wss_amount hour);

/* Sums of what guests need in each hour of the week. All zero: no guest yet. */
struct wss_room {
	uint64_t bytes[WSS_PACK_HOURS];
	bool measured[WSS_PACK_HOURS]; /* at least one guest was measured in it */
};

/* Adds a guest. week: its largest working set of each hour, 0: not measured; NULL: none was. */
void wss_room_add(struct wss_room *room, const struct wss_room_need *need,
		  const uint64_t *week_bytes);

struct wss_room_host {
	uint64_t memory_bytes; /* never exceeded */
	/* Exceeded in over_hours of the week at most; not above memory_bytes. */
	uint64_t limit_bytes;
	unsigned over_hours; /* 0 to WSS_PACK_HOURS - 1 */
};

struct wss_room_answer {
	uint64_t fits_bytes;  /* the largest steady need of a further guest */
	uint64_t short_bytes; /* what the host lacks already; one of both is 0 */
	/* The hour of the week that leaves no more than that; unknown if nothing was measured in it. */
	struct wss_amount hour;
	uint64_t need_bytes;	      /* what its guests need in their worst hour together */
	struct wss_amount worst_hour; /* that hour, likewise */
};

struct wss_room_answer wss_room_ask(const struct wss_room *room, const struct wss_room_host *host);

/*
 * Returns the predicted share of hours in which a guest needs more than a size, if it did so in
 * some of its measured hours: (above + 1) / (hours + 2), Laplace's rule of succession. So a guest
 * of whom little is known is a greater risk than one that has kept below the size for weeks.
 */
double wss_room_risk(uint64_t above, uint64_t hours);

/* A guest that could shrink. */
struct wss_room_shrink {
	uint64_t gain_bytes; /* what the host gets back */
	double risk;	     /* as wss_room_risk(), above 0 */
	size_t guest;	     /* the caller's index of it */
};

/* Sorts by gain per risk, the largest first; equal ones by gain, then by index. */
void wss_room_rank(struct wss_room_shrink *list, size_t n);
