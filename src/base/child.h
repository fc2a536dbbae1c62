/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a small function in a child process of our own: for experiments that are
 * not to be made on ourselves, with a deadline, and with nothing left behind.
 */
#ifndef WSS_BASE_CHILD_H
#define WSS_BASE_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Forks, runs fn in the child and gives its result of size bytes (at most
 * PIPE_BUF) back in result. fn must be safe after fork in a process with threads
 * (signal-safety(7)): system calls and its own memory, no malloc, no stdio. A child
 * that does not finish within timeout_ns is killed: WSS_ERR_TIMEOUT; one that dies
 * without a result: WSS_ERR_FAILED.
 */
int wss_child_run(void (*fn)(void *result), void *result, size_t size, uint64_t timeout_ns,
		  struct wss_error *err);

/*
 * For such an fn: opens the calling process's own clear_refs for writing, or -1. Not through a rooted
 * handle: it is ourselves that are experimented on, whatever root a test has put in place.
 */
int wss_child_open_clear_refs(void);

#endif
