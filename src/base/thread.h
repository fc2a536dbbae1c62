/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that may outlive whoever started them, such as one that hangs in a library.
 *
 * A process must not return from main() while such threads run: their libraries would then
 * free what the threads still use. Each thread is therefore remembered until it has been
 * joined, and wss_threads_end() returns whether all have been.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wss_thread;

/*
 * Starts a thread that runs fn(opaque). Pass *ret_thread to wss_thread_join() or
 * wss_thread_leave(). -1 with WSS_ERR_NO_MEMORY or WSS_ERR_FAILED; err may be NULL.
 */
int wss_thread_start(void (*fn)(void *opaque), void *opaque, struct wss_thread **ret_thread,
		     struct wss_error *err);

/* Waits until the thread ends, however long that takes, and releases it. */
void wss_thread_join(struct wss_thread *thread);

/* Leaves the thread to itself. Also joins threads that were left earlier and have ended. */
void wss_thread_leave(struct wss_thread *thread);

/*
 * Joins all threads that were left and end within timeout_ns altogether. Returns false if any
 * still runs: the process must then end by _exit(). From then on no thread may start threads.
 */
bool wss_threads_end(uint64_t timeout_ns);
