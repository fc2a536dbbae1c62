/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derives the touched set from the Referenced figure of smaps. A page of the host has one accessed bit, so that a
 * single touch counts as the whole page: a huge one, or a small one of a host whose small pages are larger than
 * the guest's 4 KiB. At most min(R, H) of R referenced bytes can lie in huge pages if H bytes are mapped huge, so at
 * least
 *
 *   low = ((R - h) / small page + h / huge page) * 4 KiB,   h = min(R, H) rounded down to whole huge pages
 *
 * and at most R were touched.
 */
#pragma once

#include <stdint.h>

/* Sizes of the host's pages. */
struct wss_page_sizes {
	uint64_t small_bytes;
	uint64_t huge_bytes; /* of a transparent huge page */
};

struct wss_referenced_result {
	uint64_t wss_bytes; /* equals high_bytes */
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t granularity_bytes; /* a huge page if anything is mapped huge, else a small one */
};

void wss_referenced_result(uint64_t referenced_bytes, uint64_t huge_bytes,
			   const struct wss_page_sizes *pages,
			   struct wss_referenced_result *ret_result);
