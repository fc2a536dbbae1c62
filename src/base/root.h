/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Rooted handle: every read of /proc, /sys and /run goes through it, so that tests can
 * substitute a captured or an invented machine.
 */
#pragma once

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <stdio.h>

#include "base/error.h"

struct wss_root {
	int dirfd; /* directory that stands for "/" or for a subtree of it */
};

/* Opens path ("/" on a real host). */
int wss_root_open(const char *path, struct wss_root *ret_root, struct wss_error *err);

/* Closes a root; accepts one whose dirfd is -1. */
void wss_root_close(struct wss_root *root);

/*
 * All paths below are relative to the root and start without '/'. Functions that return int
 * return 0, or a negative errno value without a message: the caller knows whether a missing
 * file is an error.
 */

/* Returns a descriptor, opened with O_CLOEXEC, or a negative errno. */
int wss_root_openat(const struct wss_root *root, const char *path, int flags);

/*
 * Reads the whole file into a malloc()ed string with a final NUL, which the caller frees.
 * -EFBIG if it is longer than max bytes.
 */
int wss_root_read(const struct wss_root *root, const char *path, size_t max, char **ret_text,
		  size_t *ret_len);

/* Reads the first line of a small file into buf, without its newline, truncated to size. */
int wss_root_read_line(const struct wss_root *root, const char *path, char *buf, size_t size);

/* Reads an unsigned decimal number, with nothing but white space around it; else -EINVAL. */
int wss_root_read_u64(const struct wss_root *root, const char *path, uint64_t *ret_value);

/* Opens a stream for reading; the caller closes it. */
int wss_root_fopen(const struct wss_root *root, const char *path, FILE **ret_file);

/* Opens a directory; the caller closes it. */
int wss_root_opendir(const struct wss_root *root, const char *path, DIR **ret_dir);

/*
 * Returns the process that took a lock of flock(2) on the open file, by /proc/locks, which may have passed it on and ended
 * since; 0: none, or one of another pid namespace.
 */
pid_t wss_root_flock_holder(const struct wss_root *root, int fd);
