/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/root.h"
#include "base/text.h"
#include "history/db.h"

/* Of a command line; the rest is of no interest. */
#define COMMAND_MAX 65536

/*
 * Opens a lock file. Any process that can open a file can lock it, so only those who may write
 * the history can open this one.
 */
static int lock_file_open(const char *name, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd =
		open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
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
		return wss_error_errno(err, WSS_ERR_FAILED, errno,
				       "cannot restrict it to its owner");
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

/* Whether it is the service: the command is among its words. */
static bool holder_is_service(const struct wss_root *root, pid_t holder)
{
	wss_auto_free char *words = NULL;
	char path[64];
	size_t len;
	bool found = false;

	snprintf(path, sizeof(path), "proc/%d/cmdline", holder);
	if (wss_root_read(root, path, COMMAND_MAX, &words, &len) < 0)
		return false;
	for (size_t i = 0; i < len && !found; i += strlen(words + i) + 1)
		found = !strcmp(words + i, "serve");
	return found;
}

/* Names the process that has locked a history by its open lock file, and what to do. */
static int error_locked(const char *path, int fd, struct wss_error *err)
{
	wss_cleanup(wss_root_close) struct wss_root root = {.dirfd = -1};
	char comm_path[64], command[64] = "?", who[120] = "another process";
	pid_t holder = 0;

	if (wss_root_open(wss_test_sysroot(), &root, NULL) == 0)
		holder = wss_root_flock_holder(&root, fd);
	if (holder && holder_is_service(&root, holder)) {
		snprintf(who, sizeof(who), "the service, process %d", holder);
	} else if (holder) {
		snprintf(comm_path, sizeof(comm_path), "proc/%d/comm", holder);
		wss_root_read_line(&root, comm_path, command, sizeof(command));
		wss_text_sanitize(command);
		snprintf(who, sizeof(who), "another round, process %d (%s)", holder, command);
	}
	return wss_error_set(err, WSS_ERR_BUSY,
			     "history %s is in use by %s: stop that first, or take another history",
			     path, who);
}

int wss_history_lock_round(const struct wss_history *history, int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = -1;

	if (wss_db_open_lock(history->path, &fd, err) < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? error_locked(history->path, fd, err)
			       : wss_error_errno(err, WSS_ERR_FAILED, errno,
						 "history: cannot lock %s.lock", history->path);
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
