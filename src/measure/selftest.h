/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether it is safe on this kernel to write-protect memory for soft-dirty tracking while a
 * device may write to it.
 *
 * Before Linux 5.19 a write to a page that clear_refs had write-protected led to a copy if
 * anything else held a reference to the page, including a DMA pin: the device continued with
 * the old page, the guest with the new one (mm/memory.c, do_wp_page; "mm: COW fixes" of 5.19
 * keep anonymous pages that are exclusive). Distributions backport that fix, so the version
 * does not decide.
 */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"

/*
 * Returns 0 if a zap cannot lose writes of this guest: the kernel is 5.19 or newer, or has no
 * soft-dirty tracking (clear_refs then write-protects nothing), or all guest RAM is shared or
 * hugetlb (never copied), or the self-test passes. Otherwise WSS_ERR_UNSUPPORTED with the
 * reason. If guest is NULL, assumes private anonymous RAM.
 */
int wss_selftest_zap_safe(const struct wss_host *host, const struct wss_guest *guest,
			  struct wss_error *err);

/*
 * Runs the test in a child: pins a page by an io_uring buffer, clears its soft-dirty bit,
 * writes to it, and reads it back through the pin; once with a 4 KiB page, and with a huge
 * page if the host gives one. Returns 0 if both agree; WSS_ERR_FAILED if a write was lost;
 * WSS_ERR_UNSUPPORTED if the test cannot be run here.
 */
int wss_selftest_run(struct wss_error *err);
