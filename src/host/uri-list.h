/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hosts by their libvirt URIs, as an administrator keeps them in a text file: one URI a line, with
 * blank lines and lines that begin with '#' in between.
 */
#ifndef WSS_HOST_URI_LIST_H
#define WSS_HOST_URI_LIST_H

#include <stddef.h>

#include "base/error.h"

struct wss_uri_list {
	size_t n;
	const char **uris; /* n of them, for wss_fleet_read() */
	char *text;	   /* of the file: uris point into it */
};

/*
 * Reads the file, of at most 1 MiB, or a special one of base/file.h. For wss_uri_list_free().
 * WSS_ERR_USAGE, naming the file: it cannot be read, contains a zero byte, or names no host;
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_uri_list_read(const char *path, struct wss_uri_list *ret_list, struct wss_error *err);

/* Frees what a list holds; accepts an empty one. */
void wss_uri_list_free(struct wss_uri_list *list);

#define wss_auto_uri_list wss_cleanup(wss_uri_list_free)

#endif
