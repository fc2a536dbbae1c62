/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derives the place of the QEMU processes from a libvirt URI. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum wss_uri_kind {
	WSS_URI_SYSTEM,
	WSS_URI_SESSION,
	WSS_URI_EMBED, /* the driver runs inside this process */
	WSS_URI_OTHER, /* no QEMU driver */
};

struct wss_uri {
	enum wss_uri_kind kind;
	bool has_server; /* names a host: local only if its UUID says so */
	/* Does not connect to libvirt's own socket: socket=…, or a transport other than unix. */
	bool own_socket;
	char run_dir[1024]; /* directory of NAME.pid; "" if unknown */
};

/*
 * Parses a URI as virConnectGetURI() returns it. runtime_dir is $XDG_RUNTIME_DIR or NULL,
 * cache_dir the user's ~/.cache or NULL: libvirt keeps a session's state in
 * runtime_dir/libvirt/qemu/run, or without that in cache_dir/libvirt/qemu/run (libvirt 9.0,
 * src/qemu/qemu_conf.c and src/util/virutil.c). WSS_ERR_FAILED if the URI is malformed or its
 * root too long.
 */
int wss_uri_parse(const char *uri, const char *runtime_dir, const char *cache_dir,
		  struct wss_uri *ret_uri, struct wss_error *err);
