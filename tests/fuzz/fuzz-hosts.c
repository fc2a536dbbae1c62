/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that lists hosts. */
#include <stdio.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/uri-list.h"

static void hosts_run(const uint8_t *data, size_t size)
{
	wss_auto_uri_list struct wss_uri_list list = {.n = 0};
	wss_auto_close int fd = fuzz_memfd(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = wss_uri_list_read(path, &list, &err);
	fuzz_check(r, &err);
	fuzz_require((r == 0) == (list.n > 0));
	for (size_t i = 0; i < list.n; i++)
		fuzz_require(list.uris[i][0] && list.uris[i][0] != '#');
}

const struct fuzz_target fuzz_target = {
	.name = "hosts",
	.run = hosts_run,
	.max_bytes = 8192,
	.mutations = 20000,
};
