/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control groups of a process or thread, of version 1 or 2, and their files. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/root.h"

#define WSS_CGROUP_MAX_BYTES ((size_t)64 << 10)

/*
 * Finds the directory of a cgroup in the text of a "cgroup" file of /proc: of version 2 (controller ""), or of the
 * hierarchy of version 1 that has the controller. ret_path is below the root of the host; "" if there is none.
 */
void wss_cgroup_path(const struct wss_root *root, const char *text, const char *controller,
		     char ret_path[PATH_MAX]);

/* Reads a small file of the cgroup; NULL if it cannot be read. malloc()ed. */
char *wss_cgroup_read(const struct wss_root *root, const char *directory, const char *name);

/* Whether a file of the cgroup has this line, or a number other than 0 after this word. */
bool wss_cgroup_says(const struct wss_root *root, const char *directory, const char *name,
		     const char *word);

/*
 * Whether a cgroup, or one above it, is frozen (freezer of version 1, cgroup.freeze of version 2), by the text of a
 * "cgroup" file of /proc.
 */
bool wss_cgroup_is_frozen(const struct wss_root *root, const char *text);
