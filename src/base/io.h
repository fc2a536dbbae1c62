/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Complete reads and writes, which continue after partial ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/*
 * Reads size bytes from offset, fewer only at the end of the file. Returns their number, or a
 * negative errno.
 */
ssize_t wss_io_pread(int fd, void *data, size_t size, off_t offset);

/* Returns 0 when everything is written, else a negative errno. */
int wss_io_pwrite(int fd, const void *data, size_t size, off_t offset);

/*
 * Whether everything from offset to the end of the file is zero. False if the file cannot be
 * read, or after a stop request.
 */
bool wss_io_zeros(int fd, off_t offset);

/*
 * Sets err to WSS_ERR_FAILED after writing output has failed with errnum (a positive errno);
 * what describes the attempt. If the reader has gone, requests a stop as well and sets
 * WSS_ERR_INTERRUPTED: see wss_stop_on_closed_pipe(). Returns -1.
 */
int wss_io_output_error(int errnum, const char *what, struct wss_error *err);

/* Writes what is still to be written to standard output. Fails as wss_io_output_error() says if any of it was lost. */
int wss_io_flush_output(struct wss_error *err);
