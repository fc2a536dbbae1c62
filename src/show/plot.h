/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes pictures to files, and asks the terminal for its width. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Checks before a measurement whether wss_plot_write() could write to path (NULL: there will
 * be no picture). what names the setting in messages. alone: nothing else is printed, so "-" is
 * allowed; otherwise it is a WSS_ERR_USAGE. WSS_ERR_FAILED.
 */
int wss_plot_check(const char *what, const char *path, bool alone, struct wss_error *err);

/*
 * Writes a picture, drawn by draw(f, opaque), to a new file that only its owner may read, then
 * renames that to path: the picture is complete or missing, and no other file is touched. A
 * special file of wss_file_open_special(), such as "-" for the standard output, is written to
 * directly. WSS_ERR_FAILED, also if path is any other FIFO, device or symbolic link, or a
 * recording or database, which a picture never replaces. WSS_ERR_INTERRUPTED.
 */
int wss_plot_write(const char *what, const char *path, void (*draw)(FILE *f, const void *opaque),
		   const void *opaque, struct wss_error *err);

/* Returns the terminal's width in columns; 80 if there is no terminal. */
int wss_terminal_width(void);
