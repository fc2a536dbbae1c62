/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that may outlive whoever started them, such as one that hangs in a library.
 *
 * A process must not return from main() beside them: the libraries that they are in free at that
 * moment what the threads still use. So each is remembered until it has been joined, and
 * wss_threads_end() says whether all have.
 */
#ifndef WSS_BASE_THREAD_H
#define WSS_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wss_thread;

/*
 * Runs fn(opaque) in a thread of its own. *ret_thread goes to wss_thread_join() or
 * wss_thread_leave(). -1 with WSS_ERR_NO_MEMORY or WSS_ERR_FAILED; err may be NULL.
 */
int wss_thread_start(void (*fn)(void *opaque), void *opaque, struct wss_thread **ret_thread,
		     struct wss_error *err);

/* Waits for its end, however long that takes. */
void wss_thread_join(struct wss_thread *thread);

/* It goes on by itself. Threads that were left so and have ended meanwhile are joined. */
void wss_thread_leave(struct wss_thread *thread);

/*
 * Joins all that were left and have ended, or end within timeout_ns altogether. False where some
 * still run: then the process has to end by _exit(). To be called by the last thread that starts
 * any.
 */
bool wss_threads_end(uint64_t timeout_ns);

#endif
