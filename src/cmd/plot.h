/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the commands share that draw: where pictures go, and how wide the terminal is. */
#ifndef WSS_CMD_PLOT_H
#define WSS_CMD_PLOT_H

#include <stdio.h>

#include "base/error.h"

/*
 * Writes a picture to path by draw(f, opaque): it is whole or not there, being written to
 * a new file beside it, which is then moved. No other file is touched. WSS_ERR_FAILED.
 */
int wss_plot_write(const char *path, void (*draw)(FILE *f, const void *opaque), const void *opaque,
		   struct wss_error *err);

/* Columns of the terminal; 80 where there is none. */
int wss_terminal_width(void);

#endif
