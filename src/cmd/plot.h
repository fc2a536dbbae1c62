/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the commands share that draw: where pictures go, and how wide the terminal is. */
#ifndef WSS_CMD_PLOT_H
#define WSS_CMD_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/*
 * Could wss_plot_write() write to path? For before a measurement. NULL: nothing is to be
 * written. alone: the command prints nothing else, so that "-" makes sense; else WSS_ERR_USAGE
 * for that. WSS_ERR_FAILED.
 */
int wss_plot_check(const char *path, bool alone, struct wss_error *err);

/*
 * Writes a picture to path by draw(f, opaque): a new file, for its owner only, which is then
 * moved to path, so that the picture is whole or not there and no other file is touched. Into
 * what wss_file_open_special() takes it is written as it is: "-" is the standard output.
 * WSS_ERR_FAILED where path is another FIFO, device or symbolic link; WSS_ERR_INTERRUPTED.
 */
int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err);

/* Columns of the terminal; 80 where there is none. */
int wss_terminal_width(void);

#endif
