/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes that are whole: what the kernel does in parts is gone on with.
 */
#ifndef WSS_BASE_IO_H
#define WSS_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

/* size bytes from offset, fewer only where the file ends: how many, or a negative errno. */
ssize_t wss_io_pread(int fd, void *data, size_t size, off_t offset);

/* 0 when all has been written, else a negative errno. */
int wss_io_pwrite(int fd, const void *data, size_t size, off_t offset);

/*
 * Is there nothing but zeros from offset to the end of the file? false also where it cannot be read,
 * or a stop was requested.
 */
bool wss_io_zeros(int fd, off_t offset);

/*
 * Sets err for a write of output that failed with errnum (a positive errno), what having been
 * tried: WSS_ERR_FAILED. Where its reader has gone, the process is asked to stop as well, and the
 * error is WSS_ERR_INTERRUPTED: see wss_stop_on_closed_pipe(). Returns -1.
 */
int wss_io_output_error(int errnum, const char *what, struct wss_error *err);

#endif
