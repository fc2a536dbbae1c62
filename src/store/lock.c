/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/file.h"
#include "store/db.h"

/*
 * Opens a lock file. Any process that can open a file can lock it, so only those who may write
 * the history can open this one.
 */
static int lock_file_open(const char *name, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = open(
		name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot create it");
	if (fstat(fd, &st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	if (wss_file_check_regular(&st, err) < 0 ||
	    wss_file_check_private(name, &st, "it", err) < 0)
		return -1;
	/* Older versions made the file accessible to the group. */
	if ((st.st_mode & 0077) && st.st_uid == geteuid() && fchmod(fd, 0600) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot restrict it to its owner");
	*ret_fd = wss_steal_fd(&fd);
	return 0;
}

int wss_db_open_lock(const char *path, int *ret_fd, struct wss_error *err)
{
	wss_auto_free char *name = NULL;

	if (asprintf(&name, "%s.lock", path) < 0) {
		name = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	return lock_file_open(name, ret_fd, err) < 0
		       ? wss_error_prefix(err, "history: lock %s", name)
		       : 0;
}

int wss_history_lock_round(const struct wss_history *history, int *ret_fd,
			   struct wss_error *err)
{
	wss_auto_close int fd = -1;

	if (wss_db_open_lock(history->path, &fd, err) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? wss_error_set(err, WSS_ERR_BUSY,
					       "another round is still running (%s.lock)",
					       history->path)
			       : wss_error_errno(err, WSS_ERR_FAILED, errno,
						 "history: cannot lock %s.lock",
						 history->path);
	*ret_fd = wss_steal_fd(&fd);
	return 0;
}

int wss_shared_history_open(struct wss_shared_history *shared, const char *path,
			    unsigned patience_ms, struct wss_error *err)
{
	if (wss_history_open(path, &shared->history, err) < 0)
		return -1;
	wss_cond_init(&shared->given_up);
	shared->patience_ms = patience_ms;
	if (patience_ms)
		wss_history_set_patience(shared->history, (int)patience_ms);
	return 0;
}

int wss_shared_history_lock(struct wss_shared_history *shared, struct wss_error *err)
{
	bool timely = true;
	int r = 0;

	pthread_mutex_lock(&shared->mutex);
	while (shared->taken && timely) {
		if (shared->patience_ms)
			timely = wss_cond_wait_ns(&shared->given_up, &shared->mutex,
						  shared->patience_ms * WSS_NS_PER_MS);
		else
			pthread_cond_wait(&shared->given_up, &shared->mutex);
	}
	if (shared->taken)
		r = wss_error_set(err, WSS_ERR_BUSY, "the history is busy");
	shared->taken = true;
	pthread_mutex_unlock(&shared->mutex);
	return r;
}

void wss_shared_history_unlock(struct wss_shared_history *shared)
{
	pthread_mutex_lock(&shared->mutex);
	shared->taken = false;
	pthread_cond_signal(&shared->given_up);
	pthread_mutex_unlock(&shared->mutex);
}

void wss_shared_history_close(struct wss_shared_history *shared)
{
	wss_history_close_unused(shared->history);
	shared->history = NULL;
	pthread_cond_destroy(&shared->given_up);
	pthread_mutex_destroy(&shared->mutex);
}
