/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/floor.h"

#include <stddef.h>

#include "base/number.h"

const char *wss_floor_source_name(enum wss_floor_source source)
{
	static const char *const names[] = {NULL,      NULL,	     "statistics",
					    "squeeze", "ballooning", "free page reporting"};

	return names[source];
}

uint64_t wss_floor_spare(uint64_t unreclaimable_bytes, uint64_t wss_bytes,
			 uint64_t headroom_percent)
{
	return wss_u64_max(wss_bytes / 100 * headroom_percent,
			   unreclaimable_bytes / 200 * headroom_percent);
}

uint64_t wss_floor_bytes(const struct wss_floor *floor, uint64_t wss_bytes,
			 uint64_t headroom_percent)
{
	switch (floor->source) {
	case WSS_FLOOR_STATISTICS:
	case WSS_FLOOR_FREE_REPORTING:
		return wss_u64_max(
			floor->least_bytes,
			wss_u64_add(floor->bytes,
				    wss_floor_spare(floor->bytes, wss_bytes, headroom_percent)));
	case WSS_FLOOR_SQUEEZE:
	case WSS_FLOOR_BALLOONING:
		return floor->bytes;
	default:
		return 0;
	}
}
