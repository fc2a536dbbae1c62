/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opens files whose names somebody else may have prepared: a FIFO on which open() waits
 * forever, a symbolic link to another file, a device that acts as soon as it is opened,
 * another user's file in /tmp.
 *
 * A file is examined before it is opened, through an O_PATH descriptor, so that nobody can
 * replace it in between; no open() here waits. Errors refer to the file as "it": callers
 * prefix the name.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Place of a file that need not exist: its open directory, and its name in that directory. */
struct wss_place {
	int dirfd; /* O_PATH: for *at() calls only */
	char *name;
};

#define WSS_PLACE_INIT   \
	{                \
		-1, NULL \
	}

/*
 * Opens the directory of path, following symbolic links up to the directory. Root follows only its
 * own: the owner of another one could redirect it to any directory at any time. WSS_ERR_FAILED: path
 * is empty or names a directory ("dir/", ".."), or its directory cannot be opened. WSS_ERR_GONE: the
 * directory does not exist.
 */
int wss_place_find(const char *path, struct wss_place *ret_place, struct wss_error *err);

/* Releases a place; accepts WSS_PLACE_INIT. */
void wss_place_release(struct wss_place *place);

#define wss_auto_place __attribute__((cleanup(wss_place_release)))

/*
 * Examines the file at place before it is written to: returns 1 with its status in *ret_st, 0
 * if there is none. WSS_ERR_FAILED for anything but a regular file, symbolic links included,
 * and for another user's file in a world-writable sticky directory.
 */
int wss_place_look(const struct wss_place *place, struct stat *ret_st, struct wss_error *err);

/* Like wss_place_look(), and opens the file for reading and writing: 1, 0 or -1. */
int wss_place_open(const struct wss_place *place, int *ret_fd, struct wss_error *err);

/*
 * Returns 1 if the file at place is the one open as fd, 0 if it is a different one or there is
 * none. Fails as wss_place_look() does.
 */
int wss_place_has(const struct wss_place *place, int fd, struct wss_error *err);

/* Opens a regular file for reading, following symbolic links. WSS_ERR_FAILED, WSS_ERR_GONE. */
int wss_file_open(const char *path, int *ret_fd, struct wss_error *err);

/*
 * Opens what a descriptor refers to once more, with flags (O_RDWR, ...) and O_NONBLOCK; the old descriptor may be
 * O_PATH. WSS_ERR_FAILED.
 */
int wss_file_reopen(int fd, int flags, int *ret_fd, struct wss_error *err);

/* Returns the name of a file's type, such as "directory". */
const char *wss_file_kind(mode_t mode);

/*
 * Fails with WSS_ERR_FAILED, naming the type of the file, unless the status is that of a
 * regular file.
 */
int wss_file_check_regular(const struct stat *st, struct wss_error *err);

/*
 * Fails with WSS_ERR_FAILED, naming the owner or the mode, if anyone but the caller and root may
 * write to the file or directory at path, whose status is st. what names it in the error ("it").
 */
int wss_file_check_private(const char *path, const struct stat *st, const char *what,
			   struct wss_error *err);

/*
 * Checks that only the caller and root can change what path refers to, and returns path with all
 * links in its directory resolved, for free(); the file itself need not exist. WSS_ERR_FAILED: others
 * can write to its directory, or to one above it that is not sticky. WSS_ERR_GONE: its directory does
 * not exist.
 */
int wss_place_resolve_private(const char *path, char **ret_path, struct wss_error *err);

/*
 * Opens a special file that path names explicitly: "-", /dev/stdin, /dev/stdout, /dev/fd/N
 * (which must be inherited), and character devices below /dev. write selects the direction,
 * and so the meaning of "-". Returns 1 with the descriptor, 0 for any other path, or -1.
 */
int wss_file_open_special(const char *path, bool write, int *ret_fd, struct wss_error *err);

/*
 * Reads a whole regular file, or a special file of wss_file_open_special(): a malloc()ed
 * string with a final NUL, and its length. WSS_ERR_FAILED, also if it is longer than max
 * bytes; WSS_ERR_INTERRUPTED.
 */
int wss_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
		  struct wss_error *err);

/*
 * Writes to a descriptor of wss_file_open_special(), however slow its reader. WSS_ERR_FAILED,
 * WSS_ERR_INTERRUPTED.
 */
int wss_file_write(int fd, const char *data, size_t size, struct wss_error *err);

/*
 * Takes an exclusive lock on one byte of a file (fcntl(2), open file description lock),
 * waiting at most timeout_ns, and at most 200 ms after a stop request. WSS_ERR_BUSY,
 * WSS_ERR_INTERRUPTED, WSS_ERR_FAILED. The lock ends with the last descriptor of the open
 * file, which a forked child may have, too: see wss_file_close_locked().
 */
int wss_file_lock(int fd, int64_t offset, uint64_t timeout_ns, struct wss_error *err);

void wss_file_unlock(int fd, int64_t offset);

/*
 * Gives up all locks of an open file, of flock(2) and of wss_file_lock(), and closes it; sets *fd to -1. close() alone
 * would leave them to a child that was forked meanwhile. Does nothing if *fd is -1.
 */
void wss_file_close_locked(int *fd);

#define wss_auto_close_locked wss_cleanup(wss_file_close_locked)
