/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks around the history: one between processes, for the right to run a round, and one
 * between the threads of a process that share a connection.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "history/history.h"

/*
 * Takes the lock for measuring all guests, so that only one round runs at a time: WSS_ERR_BUSY,
 * with its number, if another process holds it. wss_file_close_locked() gives it up, and so does the end of the
 * process. WSS_ERR_FAILED if the lock file belongs to another user or is not a regular file.
 */
int wss_history_lock_round(const struct wss_history *history, int *ret_fd, struct wss_error *err);

/*
 * One connection to the history that several threads take turns on. Initialise it with
 * WSS_SHARED_HISTORY_INIT.
 */
struct wss_shared_history {
	pthread_mutex_t mutex;
	pthread_cond_t given_up;
	bool taken; /* under the mutex */
	/* For the thread that holds the lock; NULL until opened. */
	struct wss_history *history;
	unsigned patience_ms;
};

#define WSS_SHARED_HISTORY_INIT                                                          \
	{                                                                                \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .given_up = PTHREAD_COND_INITIALIZER \
	}

/*
 * Opens the connection, as wss_history_open() does. patience_ms limits how long a thread waits
 * for its turn, and then for another process that writes; with 0 it waits for its turn without
 * limit, and for processes as wss_history_set_patience() describes.
 */
int wss_shared_history_open(struct wss_shared_history *shared, const char *path,
			    unsigned patience_ms, struct wss_error *err);

/* Waits for this thread's turn. WSS_ERR_BUSY if nobody gives it up for patience_ms. */
int wss_shared_history_lock(struct wss_shared_history *shared, struct wss_error *err);

void wss_shared_history_unlock(struct wss_shared_history *shared);

/*
 * Closes the connection, if any, like wss_history_close_unused(). No thread may hold the lock
 * or wait for it.
 */
void wss_shared_history_close(struct wss_shared_history *shared);
