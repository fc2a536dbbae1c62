/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The floor of a guest's size: what the guest has in use, touched or not. Without swap its anonymous memory and its
 * kernel cannot go, so a guest that touches little may still end with an out-of-memory error at a size that holds its
 * working set. Windows do not show that memory; what shows it is named by the source.
 */
#pragma once

#include <stdint.h>
#include <time.h>

/* A squeeze tells nothing of a guest's memory that is longer ago. */
#define WSS_FLOOR_SQUEEZE_S (28 * 86400)

enum wss_floor_source {
	WSS_FLOOR_UNASKED, /* only the working set is to fit: the caller knows the floor otherwise */
	WSS_FLOOR_UNKNOWN, /* nothing shows it: there is no size */
	/*
	 * The guest's own statistics: its size less what it could give up without swapping (MemAvailable), and as much page
	 * cache as the working set may be made of.
	 */
	WSS_FLOOR_STATISTICS,
	WSS_FLOOR_SQUEEZE,    /* the smallest size at which it did not page while it was squeezed */
	WSS_FLOOR_BALLOONING, /* it has run for an hour with this size */
	WSS_FLOOR_FREE_REPORTING, /* its resident memory, where it reports what is free to the host */
};

struct wss_floor {
	enum wss_floor_source source;
	uint64_t bytes; /* the largest in the span; 0: there is none */
	/* STATISTICS: below this it has paged while it was squeezed; 0: unknown. */
	uint64_t least_bytes;
	time_t time; /* STATISTICS: when the guest said so last */
};

/* Returns "statistics", "squeeze", "ballooning" or "free page reporting"; NULL: there is none. */
const char *wss_floor_source_name(enum wss_floor_source source);

/*
 * Returns the memory to leave to a guest on top of what it cannot give up: the headroom, in percent, on its working set,
 * but at least half of the headroom on all that it holds, most of which may be cold.
 */
uint64_t wss_floor_spare(uint64_t unreclaimable_bytes, uint64_t wss_bytes,
			 uint64_t headroom_percent);

/* Returns the floor in bytes, with spare memory where the source does not include it; 0: there is none. */
uint64_t wss_floor_bytes(const struct wss_floor *floor, uint64_t wss_bytes,
			 uint64_t headroom_percent);
