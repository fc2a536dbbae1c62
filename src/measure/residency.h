/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which pages of a guest the host holds. When the balloon takes pages, QEMU discards them
 * (virtio_balloon.c of 7.2, balloon_inflate_page(), through ram_block_discard_range()), and
 * the host no longer holds them.
 */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "pages/pageset.h"

/*
 * Returns the guest-physical numbers of the pages that are in memory or swapped out, for wss_pageset_free(). Reads
 * /proc/PID/pagemap, 8 bytes a page. WSS_ERR_UNSUPPORTED if some of the RAM is shared, so that its pages may be in
 * memory without being mapped, or it is not known where in QEMU it lies.
 */
int wss_residency_read(struct wss_guest *guest, struct wss_pageset **ret_pages,
		       struct wss_error *err);
