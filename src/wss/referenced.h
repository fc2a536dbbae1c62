/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Derives the touched set from the Referenced figure of smaps. A huge page has one accessed
 * bit, so a single touch counts as 2 MiB. At most min(R, H) of R referenced bytes can lie in
 * huge pages if H bytes are mapped huge, so at least
 *
 *   low = (R - h) + h / page * 4 KiB,   h = min(R, H) rounded down to whole pages
 *
 * and at most R were touched.
 */
#ifndef WSS_WSS_REFERENCED_H
#define WSS_WSS_REFERENCED_H

#include <stdint.h>

struct wss_referenced_result {
	uint64_t wss_bytes; /* equals high_bytes */
	uint64_t low_bytes;
	uint64_t high_bytes;
	uint64_t granularity_bytes; /* huge_page_bytes if anything is mapped huge, else 4096 */
};

void wss_referenced_result(uint64_t referenced_bytes, uint64_t huge_bytes,
			   uint64_t huge_page_bytes, struct wss_referenced_result *ret_result);

#endif
