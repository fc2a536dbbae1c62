/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the commands that draw: the destination of pictures, and the width of the
 * terminal.
 */
#ifndef WSS_CMD_PLOT_H
#define WSS_CMD_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Checks, before a measurement, whether wss_plot_write() could write to path; NULL if there
 * will be no picture. alone: the command prints nothing else, so that "-" makes sense; if not,
 * "-" is a WSS_ERR_USAGE. WSS_ERR_FAILED.
 */
int wss_plot_check(const char *path, bool alone, struct wss_error *err);

/*
 * Writes a picture, which draw(f, opaque) draws, to a new file for its owner only and moves
 * that to path, so that the picture is complete or missing and no other file is touched. A
 * special file of wss_file_open_special(), such as "-" for the standard output, is written to
 * directly. WSS_ERR_FAILED, also if path is any other FIFO, device or symbolic link, or a
 * recording or database, which a picture does not replace; WSS_ERR_INTERRUPTED.
 */
int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err);

/* Returns the columns of the terminal; 80 if there is none. */
int wss_terminal_width(void);

#endif
