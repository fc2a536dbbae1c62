/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A new file in the place of another, or of none. It is made beside its place under a name
 * that nobody can foresee, and named when what it holds may be seen: whoever opens it by its
 * name finds the old file or the new one, whole. The owner and the mode are those of a new
 * file, whatever the old one's were, and no other file is written to.
 *
 * Errors say what is wrong with "it": callers put the file's name before them.
 */
#ifndef WSS_BASE_NEWFILE_H
#define WSS_BASE_NEWFILE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/file.h"

struct wss_newfile {
	struct wss_place place;
	int fd;		    /* open for reading and writing */
	char temporary[40]; /* its name before it has the place's; "" when it is gone */
};

#define WSS_NEWFILE_INIT                                                                      \
	{                                                                                     \
		.place = WSS_PLACE_INIT, .fd = -1                                             \
	}

/*
 * Could wss_newfile_make() and wss_newfile_name() do it, as far as can be told without making
 * a file? The errors of wss_place_find() and wss_place_look(), and WSS_ERR_FAILED where the
 * directory cannot be written to.
 */
int wss_newfile_check(const char *path, struct wss_error *err);

/*
 * Makes an empty file beside path; ended by wss_newfile_release(). Its mode is mode & ~umask.
 * The errors of wss_newfile_check().
 */
int wss_newfile_make(const char *path, mode_t mode, struct wss_newfile *ret_file,
		     struct wss_error *err);

/*
 * Writes the file and its name to the disk and gives it the name. replace: in the place of the
 * regular file that has it, if any; else WSS_ERR_BUSY where something has it. WSS_ERR_FAILED.
 */
int wss_newfile_name(struct wss_newfile *file, bool replace, struct wss_error *err);

/* Closes the file, and removes it where it has not got its name. Takes WSS_NEWFILE_INIT. */
void wss_newfile_release(struct wss_newfile *file);

#define wss_auto_newfile __attribute__((cleanup(wss_newfile_release)))

#endif
