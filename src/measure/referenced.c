/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/referenced.h"

/* The smallest page of any guest. */
#define GUEST_PAGE 4096

void wss_referenced_result(uint64_t referenced_bytes, uint64_t huge_bytes,
			   const struct wss_page_sizes *pages,
			   struct wss_referenced_result *ret_result)
{
	uint64_t huge = referenced_bytes < huge_bytes ? referenced_bytes : huge_bytes, small;

	huge -= huge % pages->huge_bytes;
	small = referenced_bytes - huge;
	*ret_result = (struct wss_referenced_result){
		.wss_bytes = referenced_bytes,
		.low_bytes = small / pages->small_bytes * GUEST_PAGE + small % pages->small_bytes +
			     huge / pages->huge_bytes * GUEST_PAGE,
		.high_bytes = referenced_bytes,
		.granularity_bytes = huge_bytes ? pages->huge_bytes : pages->small_bytes,
	};
}
