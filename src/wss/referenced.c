/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/referenced.h"

void wss_referenced_result(uint64_t referenced_bytes, uint64_t huge_bytes,
			   uint64_t huge_page_bytes, struct wss_referenced_result *ret_result)
{
	uint64_t huge = referenced_bytes < huge_bytes ? referenced_bytes : huge_bytes;

	huge -= huge % huge_page_bytes;
	*ret_result = (struct wss_referenced_result){
		.wss_bytes = referenced_bytes,
		.low_bytes = referenced_bytes - huge + huge / huge_page_bytes * 4096,
		.high_bytes = referenced_bytes,
		.granularity_bytes = huge_bytes ? huge_page_bytes : 4096,
	};
}
