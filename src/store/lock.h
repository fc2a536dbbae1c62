/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks around the history: between processes, the right to run a round; between the threads
 * of one process, turns on one connection.
 */
#ifndef WSS_STORE_LOCK_H
#define WSS_STORE_LOCK_H

#include <pthread.h>

#include "base/error.h"
#include "store/history.h"

/*
 * Takes the lock for measuring all guests, which only one round at a time has: WSS_ERR_BUSY if
 * another process has it. It ends when the descriptor is closed, and so with the process.
 * WSS_ERR_FAILED if the lock file belongs to another user or is not a regular file.
 */
int wss_history_lock_round(const struct wss_history *history, int *ret_fd,
			   struct wss_error *err);

/*
 * One connection to the history that several threads take turns on. Initialise it with
 * WSS_SHARED_HISTORY_INIT.
 */
struct wss_shared_history {
	pthread_mutex_t mutex;
	/* For the thread that holds the lock; NULL until opened. */
	struct wss_history *history;
	unsigned patience_ms;
};

#define WSS_SHARED_HISTORY_INIT                                                               \
	{                                                                                     \
		.mutex = PTHREAD_MUTEX_INITIALIZER                                            \
	}

/*
 * Opens the connection, as wss_history_open() does. patience_ms limits how long a thread waits
 * for its turn, and then for another process that writes; 0 waits for turns without a limit
 * and for processes as wss_history_set_patience() describes.
 */
int wss_shared_history_open(struct wss_shared_history *shared, const char *path,
			    unsigned patience_ms, struct wss_error *err);

/* Waits for this thread's turn. WSS_ERR_BUSY if it did not come within patience_ms. */
int wss_shared_history_lock(struct wss_shared_history *shared, struct wss_error *err);

void wss_shared_history_unlock(struct wss_shared_history *shared);

/*
 * Closes the connection, if there is one, as wss_history_close_unused(). No thread may hold or request
 * the turn any more.
 */
void wss_shared_history_close(struct wss_shared_history *shared);

#endif
