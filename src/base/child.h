/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a small function in a child process, with a deadline, for experiments that must not
 * happen in this process. The child leaves nothing behind.
 *
 * A child that is forked for anything else begins with wss_child_close_all_but().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Forks, runs fn in the child and copies its result of size bytes (at most PIPE_BUF) into
 * result. fn must be safe after fork() in a multithreaded process (signal-safety(7)): system
 * calls and its own memory only, no malloc, no stdio. WSS_ERR_TIMEOUT: the child did not
 * finish within timeout_ns and was killed. WSS_ERR_FAILED: it died without a result.
 */
int wss_child_run(void (*fn)(void *result), void *result, size_t size, uint64_t timeout_ns,
		  struct wss_error *err);

/*
 * Closes all descriptors except the n in keep (-1 stands for none). A child calls it right after fork(), so that it keeps
 * no lock, pipe or file of its parent open. Makes system calls only.
 */
void wss_child_close_all_but(const int *keep, size_t n);

/*
 * For use in such a function: opens the calling process's own clear_refs for writing, or
 * returns -1. Does not use a rooted handle, because the experiment concerns this process,
 * whatever root a test has set up.
 */
int wss_child_open_clear_refs(void);
