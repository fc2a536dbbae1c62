/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hosts that a command queries, from repeated -c options or a file. */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/cmd.h"
#include "host/uri-list.h"

enum { WSS_OPT_HOSTS = 6000, WSS_OPT_TIMEOUT };

#define WSS_HOSTS_LONG                                              \
	{"hosts", required_argument, NULL, WSS_OPT_HOSTS},          \
	{                                                           \
		"timeout", required_argument, NULL, WSS_OPT_TIMEOUT \
	}

struct wss_hosts {
	const char *file;
	uint64_t timeout_ns;	  /* each */
	struct wss_uri_list list; /* a NULL URI stands for libvirt's default */
};

#define WSS_HOSTS_INIT                          \
	{                                       \
		.timeout_ns = 60 * WSS_NS_PER_S \
	}

/*
 * Stores option c of getopt_long() with its value. Returns 1 if it is one of these options, 0
 * if not, -1 with err set.
 */
int wss_hosts_option(struct wss_hosts *hosts, int c, const char *value, struct wss_error *err);

/*
 * Takes the hosts from the file or from -c. WSS_ERR_USAGE for a DOMAIN with several hosts or
 * with a file, for a file with -c, and for anything wss_uri_list_read() refuses.
 */
int wss_hosts_finish(struct wss_hosts *hosts, const struct wss_cli *cli, struct wss_error *err);

void wss_hosts_free(struct wss_hosts *hosts);

#define wss_auto_hosts wss_cleanup(wss_hosts_free)
