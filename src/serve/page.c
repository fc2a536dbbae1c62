/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/page.h"

#include <string.h>

#include "page-data.h"

const char *wss_page(size_t *ret_size)
{
	*ret_size = sizeof(page_bytes) - 1;
	return (const char *)page_bytes;
}

const char *wss_page_policy(void)
{
	return PAGE_POLICY;
}

/*
 * In JSON a '<' can only be in a text. As an escape it cannot end the element that the data is in, nor begin
 * a comment.
 */
static void data_write(FILE *stream, const char *json, size_t size)
{
	for (const char *end = json + size; json < end;) {
		const char *found = memchr(json, '<', (size_t)(end - json));
		size_t plain = (size_t)((found ? found : end) - json);

		fwrite(json, 1, plain, stream);
		if (found)
			fputs("\\u003c", stream);
		json += plain + (found != NULL);
	}
}

void wss_page_write(FILE *stream, const char *json, size_t size)
{
	fwrite(page_bytes, 1, PAGE_DATA_AT, stream);
	data_write(stream, json, size);
	fwrite(page_bytes + PAGE_DATA_AT, 1, sizeof(page_bytes) - 1 - PAGE_DATA_AT, stream);
}
