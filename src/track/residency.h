/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which pages of a guest the host has anything for. The balloon gives pages back: QEMU then
 * discards them (virtio_balloon.c of 7.2, balloon_inflate_page(), through
 * ram_block_discard_range()), so that the host has nothing for them any more.
 */
#ifndef WSS_TRACK_RESIDENCY_H
#define WSS_TRACK_RESIDENCY_H

#include "base/error.h"
#include "host/guest.h"
#include "wss/recording.h"

/*
 * Makes ret_pages (by index of the recording's regions) the pages that are in memory or
 * swapped out, from /proc/PID/pagemap: 8 bytes a page are read. WSS_ERR_UNSUPPORTED: the RAM is
 * shared, whose pages may be in memory without being mapped, or it is several blocks, of
 * which it is not known which lies where in the guest.
 */
int wss_residency_read(const struct wss_guest *guest, const struct wss_recording *recording,
		       struct wss_pageset *ret_pages, struct wss_error *err);

#endif
