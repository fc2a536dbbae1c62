/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Configuration files: INI, read by libeconf, in one thread at a time.
 *
 * Those of the service: of /etc/virt-wss/serve.conf and /usr/lib/virt-wss/serve.conf the first that exists counts.
 * Then come the drop-ins, /usr/lib/virt-wss/serve.conf.d/NAME.conf and
 * /etc/virt-wss/serve.conf.d/NAME.conf, each directory in alphabetical order; a drop-in in
 * /etc replaces the one of the same name in /usr/lib. A later value replaces an earlier one.
 *
 * libeconf 0.5 silently drops a key that is repeated in a file, also in another section, joins a line that has no "="
 * to the line above, and cuts values at a NUL or after 8 KiB. It also ends at the first line that it cannot
 * parse. Each file is therefore checked before libeconf reads it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Limits of a file. */
#define WSS_CONFIG_BYTES_MAX 65536
#define WSS_CONFIG_LINES_MAX 2000
#define WSS_CONFIG_LINE_MAX 1024 /* bytes, without the newline */

/* SECTION and KEY of one line with its value; "" where there is none. */
struct wss_config_entry {
	const char *file;
	uint64_t line; /* from 1 */
	const char *section;
	const char *key;
	const char *value;
};

struct wss_config_events {
	/* Called for each entry, the later of two that contradict each other last. */
	void (*entry)(const struct wss_config_entry *entry, void *opaque);
	/* Called for each fault of a file; the text names the file, and the line if it has
	 * one. */
	void (*error)(const struct wss_error *error, void *opaque);
};

/*
 * Reads the file path alone, or all files above if path is NULL; it is no error if none of
 * those exists. No entry is passed if any file is faulty. Returns 0, or -1 after error() was
 * called: WSS_ERR_USAGE for what a file says, otherwise the errors of wss_file_read().
 */
int wss_config_read(const char *path, const struct wss_config_events *events, void *opaque);

/* Whether a file of this name is read in a directory of several. */
bool wss_config_is_drop_in(const char *name);

/*
 * Reads all files NAME.conf of a directory in alphabetical order, one after the other; it is no error if it does not exist. Nobody
 * but root and the caller may be able to change them: WSS_ERR_FAILED. Else as wss_config_read(), but entries of the files
 * before a faulty one are passed, and a key may be in several sections.
 */
int wss_config_read_private(const char *directory, const struct wss_config_events *events,
			    void *opaque);
