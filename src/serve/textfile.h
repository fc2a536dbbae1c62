/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the file of metrics in a thread of its own, so that no window waits for its disk. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

struct wss_textfile;

/* For wss_textfile_free(); NULL: out of memory. */
struct wss_textfile *wss_textfile_new(void);

/* Whether nothing is being written: wss_textfile_begin() may be called. */
bool wss_textfile_is_idle(struct wss_textfile *textfile);

/* Returns a stream for the text, which wss_textfile_write() closes; NULL: out of memory. */
FILE *wss_textfile_begin(struct wss_textfile *textfile);

/* Starts writing the text to path (copied). WSS_ERR_NO_MEMORY, WSS_ERR_FAILED: nothing is written. */
int wss_textfile_write(struct wss_textfile *textfile, const char *path, struct wss_error *err);

/*
 * Returns 1 once a file was written, -1 with err once one could not be, and while its disk has not answered for 30 s;
 * 0: neither.
 */
int wss_textfile_result(struct wss_textfile *textfile, struct wss_error *err);

/* Waits five seconds at most for what is being written. Takes NULL. */
void wss_textfile_free(struct wss_textfile *textfile);
