/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/balloon-private.h"

#include "base/number.h"

/* Largest share of a guest that its kernel keeps free, in thousandths. */
#define WATERMARK_PERMILLE 75

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
		return (struct wss_amount){ 0 };
	return wss_amount_of(view->actual_bytes.value - view->usable_bytes.value);
}

uint64_t wss_balloon_spare(const struct wss_balloon_view *view, uint64_t held, uint64_t percent)
{
	uint64_t wss = view->wss_bytes.known ? view->wss_bytes.value : held;

	return wss_u64_max(wss / 100 * percent, held / 200 * percent);
}

/* Memory that the guest's kernel never hands out. */
static uint64_t unmanaged_bytes(const struct wss_balloon_view *view)
{
	if (!view->managed_bytes.known || !view->managed_of_bytes.known ||
	    view->managed_bytes.value > view->managed_of_bytes.value)
		return 0;
	return view->managed_of_bytes.value - view->managed_bytes.value;
}

static uint64_t kept_free_bytes(const struct wss_balloon_view *view)
{
	uint64_t loose, kept, most;

	if (!view->usable_bytes.known || !view->free_bytes.known || !view->cache_bytes.known ||
	    !view->actual_bytes.known)
		return 0;
	loose = wss_u64_add(view->free_bytes.value, view->cache_bytes.value);
	most = wss_u64_max(view->actual_bytes.value, view->managed_bytes.value) / 1000 *
	       WATERMARK_PERMILLE;
	kept = loose > view->usable_bytes.value ? (loose - view->usable_bytes.value) / 2 : 0;
	return kept < most ? kept : most;
}

uint64_t wss_balloon_reserve(const struct wss_balloon_view *view)
{
	return wss_u64_add(unmanaged_bytes(view), kept_free_bytes(view));
}

struct wss_amount wss_balloon_used(const struct wss_balloon_view *view)
{
	uint64_t loose = wss_u64_add(view->free_bytes.value, view->cache_bytes.value);

	if (!view->managed_bytes.known || !view->free_bytes.known || !view->cache_bytes.known ||
	    loose > view->managed_bytes.value)
		return (struct wss_amount){ 0 };
	return wss_amount_of(view->managed_bytes.value - loose);
}

uint64_t wss_balloon_history_floor(const struct wss_balloon_limits *limits, uint64_t reserve_bytes)
{
	return wss_u64_max(limits->minimum_bytes, wss_u64_add(limits->needed_bytes, reserve_bytes));
}

uint64_t wss_balloon_floor(const struct wss_balloon_limits *limits,
			   const struct wss_balloon_view *view, uint64_t reserve_bytes)
{
	struct wss_amount held = held_by_guest(view);
	uint64_t floor = wss_balloon_history_floor(limits, reserve_bytes);

	if (view->wss_bytes.known)
		floor = wss_u64_max(floor, wss_balloon_with_reserve(view->wss_bytes.value, limits->headroom_percent,
						    reserve_bytes));
	if (held.known)
		floor = wss_u64_max(floor, held.value + wss_balloon_spare(view, held.value,
								limits->headroom_percent));
	return floor;
}

struct wss_amount wss_balloon_roomy(const struct wss_balloon_view *view, uint64_t percent)
{
	struct wss_amount held = held_by_guest(view);
	uint64_t wss = view->wss_bytes.value, cache = view->cache_bytes.value;

	if (!held.known || !view->wss_bytes.known || !view->cache_bytes.known)
		return (struct wss_amount){ 0 };
	return wss_amount_of(wss_u64_add(held.value + wss_balloon_spare(view, held.value, percent),
					 wss < cache ? wss : cache));
}
