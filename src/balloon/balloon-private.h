/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by balloon-floor.c (the floor of a guest) and balloon.c (the next decision). Sizes are in
 * bytes; percent is the headroom, 0 and up. edge.c shares the limits.
 */
#pragma once

#include "balloon/balloon.h"

/* Major faults per second that an idle guest may have. */
#define WSS_BALLOON_FAULTS_PER_S 20
/* Size of a read that brings back a dropped page. */
#define WSS_BALLOON_PAGE_BYTES 4096

/* Adds headroom to a size, and the memory that the guest's kernel keeps for itself. */
uint64_t wss_balloon_with_reserve(uint64_t bytes, uint64_t percent, uint64_t reserve_bytes);

/*
 * Returns the memory to leave to a guest on top of what it uses. Its usable figure is Linux's
 * MemAvailable, which excludes the kernel's own reserves, so this is the headroom on the
 * working set, but at least half of the headroom on all used memory, most of which may be
 * cold.
 */
uint64_t wss_balloon_spare(const struct wss_balloon_view *view, uint64_t held_bytes,
			   uint64_t percent);

/*
 * Returns the size with room for all page cache that may be in use. The guest counts its page
 * cache as available, but does not report how much of it is in its working set. With this size
 * it keeps what it cannot give up, and page cache as large as its newest window; with less it
 * might have to read its disks again. Absent without statistics or without a window.
 */
struct wss_amount wss_balloon_roomy(const struct wss_balloon_view *view, uint64_t percent);
