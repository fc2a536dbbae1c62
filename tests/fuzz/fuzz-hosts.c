/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of list --hosts.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/hosts.h"
#include "fuzz.h"

static void hosts_run(const uint8_t *data, size_t size)
{
	wss_auto_close int fd = fuzz_memfd(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_cli cli = {.several_uris = true};
	struct wss_hosts hosts = {.n = 0};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	fuzz_require(wss_hosts_option(&hosts, WSS_OPT_HOSTS, path, &err) == 1);
	r = wss_hosts_finish(&hosts, &cli, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 || hosts.n);
	for (size_t i = 0; r == 0 && i < hosts.n; i++)
		fuzz_require(hosts.uris[i][0] && hosts.uris[i][0] != '#');
	wss_hosts_free(&hosts);
}

const struct fuzz_target fuzz_target = {
	.name = "hosts",
	.run = hosts_run,
	.max_bytes = 8192,
	.mutations = 20000,
};
