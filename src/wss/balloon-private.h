/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by balloon-floor.c (what a guest may be left with) and balloon.c (what is done next). All
 * bytes; percent: of headroom, 0 and up.
 */
#ifndef WSS_WSS_BALLOON_PRIVATE_H
#define WSS_WSS_BALLOON_PRIVATE_H

#include "wss/balloon.h"

static inline uint64_t wss_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* So much with headroom, and with what the guest's kernel keeps for itself. */
uint64_t wss_balloon_with_reserve(uint64_t bytes, uint64_t percent, uint64_t reserve_bytes);

/* What the guest holds and could not give up, as it says itself; absent where it does not. */
struct wss_amount wss_balloon_held(const struct wss_balloon_view *view);

/*
 * What is left to a guest on top of what it holds. Its usable figure is Linux's MemAvailable, from
 * which the kernel's own reserves are off already, so the headroom is that of the working set; but
 * at least half of what it would be of all that is held, as most of that may be cold.
 */
uint64_t wss_balloon_spare(const struct wss_balloon_view *view, uint64_t held_bytes,
			   uint64_t percent);

/*
 * Of the page cache the guest says that it could give it up, and nobody can tell how much of the
 * working set it is. With that much the guest keeps all that it cannot give up, and as much of its
 * page cache as may be in use; with less it might have to read its disks again. Absent where its
 * statistics or its newest window are.
 */
struct wss_amount wss_balloon_roomy(const struct wss_balloon_view *view, uint64_t percent);

#endif
