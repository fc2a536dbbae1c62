/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creates a file, which may replace another one. It gets its name only when it is complete:
 * whoever opens that name finds the whole old file or the whole new one. Until then it has no
 * name, or a temporary one if the file system requires that. Owner and mode are those of a new
 * file, whatever the old ones were, and no other file is written to.
 *
 * Errors refer to the file as "it": callers prefix the name.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/file.h"

struct wss_newfile {
	struct wss_place place;
	int fd;		    /* open for reading and writing */
	char temporary[40]; /* its temporary name in the directory of place; "": none */
	bool unsynced; /* set by its maker: it may be lost with the host, so no disk is waited for */
};

#define WSS_NEWFILE_INIT                          \
	{                                         \
		.place = WSS_PLACE_INIT, .fd = -1 \
	}

/*
 * Checks whether wss_newfile_make() and wss_newfile_name() could succeed, as far as that is
 * possible without creating a file. Fails as wss_place_find() and wss_place_look() do, and
 * with WSS_ERR_FAILED if the directory is not writable.
 */
int wss_newfile_check(const char *path, struct wss_error *err);

/* Refuses a path that is a directory; what names the setting with this path in the error. WSS_ERR_USAGE. */
int wss_newfile_check_path(const char *path, const char *what, struct wss_error *err);

/* What the file of a recording begins with. */
#define WSS_REC_MAGIC "VWSSREC\n"

/*
 * Whether path is a file of measurements, a recording or a database, which nothing that is made from one may replace.
 * What is missing or unreadable is none.
 */
bool wss_newfile_is_measured(const char *path);

/*
 * Creates an empty file in the directory of path, with mode & ~umask; released by
 * wss_newfile_release(). Removes temporary files that killed processes of the same user left
 * there. Fails as wss_newfile_check() does.
 */
int wss_newfile_make(const char *path, mode_t mode, struct wss_newfile *ret_file,
		     struct wss_error *err);

/* The same, with a temporary name for code that can open the file only by name. */
int wss_newfile_make_named(const char *path, mode_t mode, struct wss_newfile *ret_file,
			   struct wss_error *err);

/*
 * Syncs the file and its directory, unless it is unsynced, and gives it its final name. With replace it takes the
 * place of a regular file of that name; without, WSS_ERR_BUSY if the name exists.
 * WSS_ERR_FAILED.
 */
int wss_newfile_name(struct wss_newfile *file, bool replace, struct wss_error *err);

/* Closes the file, and removes it unless it has its final name. Accepts WSS_NEWFILE_INIT. */
void wss_newfile_release(struct wss_newfile *file);

#define wss_auto_newfile __attribute__((cleanup(wss_newfile_release)))
