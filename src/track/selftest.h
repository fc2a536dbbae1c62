/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is it safe on this kernel to write-protect memory for soft-dirty tracking
 * while a device may write into it?
 *
 * Before Linux 5.19 a write to a page that clear_refs had write-protected was
 * answered with a copy when anything else held a reference to the page, also a
 * DMA pin: the device went on with the old page, the guest with the new one
 * (mm/memory.c, do_wp_page; "mm: COW fixes" of 5.19 keep anonymous pages that are
 * exclusive). Distributions carry that change back, so the version does not tell.
 */
#ifndef WSS_TRACK_SELFTEST_H
#define WSS_TRACK_SELFTEST_H

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"

/*
 * 0 when a zap cannot lose writes of this guest: the kernel is 5.19 or newer, or
 * has no soft-dirty tracking (clear_refs then write-protects nothing), or all guest RAM is
 * shared or hugetlb (never copied), or the self-test passes. Otherwise WSS_ERR_UNSUPPORTED
 * with the reason. guest NULL: judges for private anonymous RAM.
 */
int wss_selftest_zap_safe(const struct wss_host *host, const struct wss_guest *guest,
			  struct wss_error *err);

/*
 * The test itself, in a child: pins a page by an io_uring buffer, clears its soft-dirty
 * bit, writes to it, and reads it back through the pin; once with a 4 KiB page and, where
 * the host gives one, with a huge page. 0 if both agree; WSS_ERR_FAILED if a
 * write was lost; WSS_ERR_UNSUPPORTED if it cannot be run here.
 */
int wss_selftest_run(struct wss_error *err);

#endif
