/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/balloon-private.h"

#include "base/number.h"
#include "host/guest.h"
#include "sizing/sizing.h"

uint64_t wss_balloon_with_reserve(uint64_t bytes, uint64_t headroom_percent, uint64_t reserve_bytes)
{
	return wss_u64_add(bytes + bytes / 100 * headroom_percent, reserve_bytes);
}

/*
 * Memory in use that the guest, by its own statistics, cannot give up; absent without
 * statistics.
 */
static struct wss_amount held_by_guest(const struct wss_balloon_view *view)
{
	if (!view->usable_bytes.known || !view->actual_bytes.known ||
	    view->usable_bytes.value > view->actual_bytes.value)
		return (struct wss_amount){0};
	return wss_amount_of(view->actual_bytes.value - view->usable_bytes.value);
}

uint64_t wss_balloon_spare(const struct wss_balloon_view *view, uint64_t held, uint64_t percent)
{
	return wss_floor_spare(held, view->wss_bytes.known ? view->wss_bytes.value : held, percent);
}

uint64_t wss_balloon_reserve(const struct wss_balloon_view *view)
{
	const struct wss_balloon_stats stats = {.actual_bytes = view->actual_bytes,
						.usable_bytes = view->usable_bytes,
						.free_bytes = view->free_bytes,
						.cache_bytes = view->cache_bytes,
						.managed_bytes = view->managed_bytes};

	return wss_balloon_stats_reserve(&stats, view->managed_of_bytes);
}

struct wss_amount wss_balloon_used(const struct wss_balloon_view *view)
{
	uint64_t loose = wss_u64_add(view->free_bytes.value, view->cache_bytes.value);

	if (!view->managed_bytes.known || !view->free_bytes.known || !view->cache_bytes.known ||
	    loose > view->managed_bytes.value)
		return (struct wss_amount){0};
	return wss_amount_of(view->managed_bytes.value - loose);
}

uint64_t wss_balloon_history_floor(const struct wss_balloon_limits *limits, uint64_t reserve_bytes)
{
	return wss_u64_max(limits->minimum_bytes, wss_u64_add(limits->needed_bytes, reserve_bytes));
}

uint64_t wss_balloon_floor(const struct wss_balloon_limits *limits,
			   const struct wss_balloon_view *view, uint64_t reserve_bytes)
{
	const struct wss_keep keep = {.minimum_bytes = limits->minimum_bytes,
				      .headroom_percent = limits->headroom_percent,
				      .need_bytes = limits->needed_bytes,
				      .wss_bytes = view->wss_bytes,
				      .in_use_bytes = held_by_guest(view),
				      .reserve_bytes = reserve_bytes};

	return wss_keep_bytes(&keep);
}

struct wss_amount wss_balloon_roomy(const struct wss_balloon_view *view, uint64_t percent)
{
	struct wss_amount held = held_by_guest(view);
	uint64_t wss = view->wss_bytes.value, cache = view->cache_bytes.value;

	if (!held.known || !view->wss_bytes.known || !view->cache_bytes.known)
		return (struct wss_amount){0};
	return wss_amount_of(wss_u64_add(held.value + wss_balloon_spare(view, held.value, percent),
					 wss < cache ? wss : cache));
}
