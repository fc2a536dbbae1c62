/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Opening files whose names somebody else may have prepared: a FIFO that makes open() wait for
 * ever, a symbolic link to another file, a device that acts as soon as it is opened, a file of
 * another user in /tmp.
 *
 * A file is looked at before it is opened, through a descriptor that only names it (O_PATH),
 * so that nobody can put another in its place in between; no open() here waits. Errors say
 * what is wrong with "it": callers put the file's name before them.
 */
#ifndef WSS_BASE_FILE_H
#define WSS_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

/* The place of a file that need not exist: its directory, held open, and its name in there. */
struct wss_place {
	int dirfd; /* O_PATH: for *at() calls only */
	char *name;
};

#define WSS_PLACE_INIT                                                                        \
	{                                                                                     \
		-1, NULL                                                                      \
	}

/*
 * Opens the directory of path, following symbolic links as far as the directory.
 * WSS_ERR_FAILED where path is empty or names a directory ("dir/", "..") or its directory
 * cannot be opened; WSS_ERR_GONE where the directory does not exist.
 */
int wss_place_find(const char *path, struct wss_place *ret_place, struct wss_error *err);

/* Takes WSS_PLACE_INIT. */
void wss_place_release(struct wss_place *place);

#define wss_auto_place __attribute__((cleanup(wss_place_release)))

/*
 * Looks at what has the place, for writing: 1 with its status in *ret_st, 0 where nothing has
 * it. WSS_ERR_FAILED for anything but a regular file, symbolic links included, and for another
 * user's file in a sticky directory that everyone may write to.
 */
int wss_place_look(const struct wss_place *place, struct stat *ret_st, struct wss_error *err);

/* As wss_place_look(), and opens the file for reading and writing: 1, 0 or -1. */
int wss_place_open(const struct wss_place *place, int *ret_fd, struct wss_error *err);

/* Opens a regular file for reading, following symbolic links. WSS_ERR_FAILED, WSS_ERR_GONE. */
int wss_file_open(const char *path, int *ret_fd, struct wss_error *err);

/* WSS_ERR_FAILED, with what it is instead, where the status is not that of a regular file. */
int wss_file_check_regular(const struct stat *st, struct wss_error *err);

/*
 * Opens what path asks for by name though it is no regular file: "-" and /dev/stdin or
 * /dev/stdout, /dev/fd/N, which must be inherited, and character devices below /dev. write
 * decides for what, and which "-" is. 1 with the descriptor; 0 where path is another; -1.
 */
int wss_file_open_special(const char *path, bool write, int *ret_fd, struct wss_error *err);

/*
 * Reads all of a regular file, or of what wss_file_open_special() opens: a malloc'ed string
 * with a final NUL, and its length. WSS_ERR_FAILED, also where it is longer than max bytes;
 * WSS_ERR_INTERRUPTED.
 */
int wss_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
		  struct wss_error *err);

/*
 * Writes to a descriptor of wss_file_open_special(), however slowly its reader takes it.
 * WSS_ERR_FAILED, WSS_ERR_INTERRUPTED.
 */
int wss_file_write(int fd, const char *data, size_t size, struct wss_error *err);

/*
 * Takes the exclusive lock (fcntl(2), of the open file description) of one byte of a file,
 * waiting at most timeout_ns, and 200 ms once a stop was requested. WSS_ERR_BUSY,
 * WSS_ERR_INTERRUPTED, WSS_ERR_FAILED. It ends with the last descriptor of the open file.
 */
int wss_file_lock(int fd, int64_t offset, uint64_t timeout_ns, struct wss_error *err);

void wss_file_unlock(int fd, int64_t offset);

#endif
