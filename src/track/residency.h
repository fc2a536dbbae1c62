/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which pages of a guest the host holds. When the balloon takes pages, QEMU discards them
 * (virtio_balloon.c of 7.2, balloon_inflate_page(), through ram_block_discard_range()), and
 * the host no longer holds them.
 */
#ifndef WSS_TRACK_RESIDENCY_H
#define WSS_TRACK_RESIDENCY_H

#include "base/error.h"
#include "host/guest.h"
#include "wss/recording.h"

/*
 * Sets ret_pages (by index of the recording's regions) to the pages that are in memory or
 * swapped out. Reads /proc/PID/pagemap, 8 bytes a page. WSS_ERR_UNSUPPORTED if the RAM is
 * shared, so that its pages may be in memory without being mapped, or consists of several
 * blocks whose guest-physical addresses are unknown.
 */
int wss_residency_read(const struct wss_guest *guest, const struct wss_recording *recording,
		       struct wss_pageset *ret_pages, struct wss_error *err);

#endif
