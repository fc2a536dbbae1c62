/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/hosts.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/units.h"

#define TIMEOUT_MAX_NS (3600 * WSS_NS_PER_S)

int wss_hosts_option(struct wss_hosts *hosts, int c, const char *value, struct wss_error *err)
{
	switch (c) {
	case WSS_OPT_HOSTS:
		hosts->file = value;
		return 1;
	case WSS_OPT_TIMEOUT:
		return wss_duration_parse(value, TIMEOUT_MAX_NS, "--timeout", &hosts->timeout_ns,
					  err) < 0
			       ? -1
			       : 1;
	default:
		return 0;
	}
}

int wss_hosts_finish(struct wss_hosts *hosts, const struct wss_cli *cli, struct wss_error *err)
{
	if (hosts->file && cli->n_uris)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--hosts and --connect exclude each other");
	if (hosts->file && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--hosts and DOMAIN exclude each other");
	if (cli->n_uris > 1 && cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "DOMAIN and several hosts exclude each other");
	if (hosts->file)
		return wss_uri_list_read(hosts->file, &hosts->list, err) < 0
			       ? wss_error_prefix(err, "--hosts")
			       : 0;
	/* Those given by -c, or libvirt's default. */
	hosts->list.n = cli->n_uris ? cli->n_uris : 1;
	hosts->list.uris = wss_xcalloc(hosts->list.n, sizeof(*hosts->list.uris));
	for (size_t i = 0; i < cli->n_uris; i++)
		hosts->list.uris[i] = cli->uris[i];
	return 0;
}

void wss_hosts_free(struct wss_hosts *hosts)
{
	wss_uri_list_free(&hosts->list);
}
