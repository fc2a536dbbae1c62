/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A text file that lists hosts by libvirt URI, one per line; blank lines and lines that begin
 * with '#' are ignored.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct wss_uri_list {
	size_t n;
	const char **uris; /* n URIs, for wss_fleet_read() */
	char *text;	   /* contents of the file; uris point into it */
};

/*
 * Reads the file (at most 1 MiB), which may be a special one as in base/file.h. Free the list
 * with wss_uri_list_free(). WSS_ERR_USAGE, naming the file, if it cannot be read, contains a
 * zero byte, or names no host; WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_uri_list_read(const char *path, struct wss_uri_list *ret_list, struct wss_error *err);

/* Frees the contents of a list; accepts an empty one. */
void wss_uri_list_free(struct wss_uri_list *list);

#define wss_auto_uri_list wss_cleanup(wss_uri_list_free)
