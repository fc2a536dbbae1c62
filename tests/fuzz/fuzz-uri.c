/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libvirt's URIs: the first line is the URI, the second and third are XDG_RUNTIME_DIR and the
 * cache directory. Also checks whether that is this host, with the names in the fourth and
 * fifth line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "host/locality.h"
#include "host/uri.h"

static void uri_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);
	static const struct wss_host host = {.name = "host1.example.org",
					     .machine_id = "0f0e0d0c-0b0a-0908-0706-050403020100"};
	struct wss_error err = WSS_ERROR_INIT;
	char *rest = text, *lines[5];
	struct wss_uri uri;
	int r;

	for (size_t i = 0; i < 5; i++)
		lines[i] = strsep(&rest, "\n");
	r = wss_uri_parse(lines[0], lines[1], lines[2], &uri, &err);
	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(memchr(uri.run_dir, '\0', sizeof(uri.run_dir)));
	/* A path that is not absolute would be resolved in the current directory. */
	fuzz_require(uri.kind != WSS_URI_EMBED || uri.run_dir[0] == '/');
	fuzz_require(uri.kind != WSS_URI_OTHER || !uri.run_dir[0]);
	r = wss_locality_check(&host, &uri, lines[3], lines[4], &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 || uri.kind != WSS_URI_OTHER);
}

const struct fuzz_target fuzz_target = {
	.name = "uri",
	.run = uri_run,
	.max_bytes = 4096,
	.mutations = 100000,
};
