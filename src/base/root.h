/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rooted handle: every read of /proc, /sys and /run goes through it, so
 * that tests can put a captured or an invented machine in its place.
 */
#ifndef WSS_BASE_ROOT_H
#define WSS_BASE_ROOT_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct wss_root {
	int dirfd; /* of the directory that stands for "/" or for one subtree of it */
};

/* Opens path ("/" on a real host). */
int wss_root_open(const char *path, struct wss_root *ret_root, struct wss_error *err);

/* Takes a root whose dirfd is -1. */
void wss_root_close(struct wss_root *root);

/*
 * All paths below are relative to the root and start without '/'. Functions
 * that return int return 0, or a negative errno value without any message: the
 * caller knows whether a missing file is an error.
 */

/* Descriptor, O_CLOEXEC added, or negative errno. */
int wss_root_openat(const struct wss_root *root, const char *path, int flags);

/*
 * The whole file as a malloc'ed string with a final NUL; the caller frees it.
 * -EFBIG where it is longer than max bytes.
 */
int wss_root_read(const struct wss_root *root, const char *path, size_t max, char **ret_text,
		  size_t *ret_len);

/* First line of a small file into buf, without its newline; cut at size. */
int wss_root_read_line(const struct wss_root *root, const char *path, char *buf, size_t size);

/* An unsigned decimal number and nothing else but white space; else -EINVAL. */
int wss_root_read_u64(const struct wss_root *root, const char *path, uint64_t *ret_value);

/* A stream for reading; the caller closes it. */
int wss_root_fopen(const struct wss_root *root, const char *path, FILE **ret_file);

/* A directory; the caller closes it. */
int wss_root_opendir(const struct wss_root *root, const char *path, DIR **ret_dir);

#endif
