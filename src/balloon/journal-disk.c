/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal on a disk that may hang: each piece of work is done in a thread with a deadline. */
#include "balloon/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/worker.h"

/* Time limit for reading the journal, and again for writing it; at most half of it is spent waiting for a lock. */
#define DISK_NS (30 * WSS_NS_PER_S)

/* Work on the journal, which a late thread owns. */
struct journal_work {
	char *path;
	struct wss_deadline deadline;
	struct wss_error error;
	/* The entries that it reads or closes, and for each the reason if it could not. */
	struct wss_journal_open *open;
	struct wss_error *errors;
	size_t n;
};

static void journal_work_free(void *opaque)
{
	struct journal_work *work = opaque;

	free(work->path);
	free(work->open);
	free(work->errors);
	free(work);
}

/*
 * Does work on these entries, which it owns, in a thread, and leaves it behind when the disk is late. Returns NULL with
 * err set if it could not be done.
 */
static struct journal_work *journal_work_run(const char *path, void (*run)(void *opaque),
					     struct wss_journal_open *open, size_t n,
					     struct wss_error *err)
{
	struct journal_work *work = calloc(1, sizeof(*work));
	struct wss_work job = {run, journal_work_free, work, NULL};

	if (!work) {
		free(open);
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	work->open = open;
	work->n = n;
	work->path = strdup(path);
	work->errors = calloc(n + 1, sizeof(*work->errors));
	job.deadline = &work->deadline;
	wss_deadline_allow(&work->deadline, DISK_NS - WSS_WORKER_GRACE_NS);
	wss_deadline_run(&work->deadline, 0);
	if (!work->path || !work->errors)
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (wss_work_run(&job, WSS_WORKER_CANCEL_NS, err) == 0 && !work->error.code)
		return work;
	if (err->code == WSS_ERR_TIMEOUT) {
		wss_error_set(err, WSS_ERR_TIMEOUT,
			      "history %s: its disk has not answered for 30 s", path);
		return NULL;
	}
	if (!err->code)
		*err = work->error;
	journal_work_free(work);
	return NULL;
}

static int journal_read_by(struct journal_work *work,
			   int (*open_history)(const char *path, struct wss_history **ret_history,
					       struct wss_error *err))
{
	struct wss_history *history = NULL;
	int r;

	wss_error_clear(&work->error);
	if (open_history(work->path, &history, &work->error) < 0)
		return -1;
	r = wss_journal_unfinished(history, NULL, &work->open, &work->n, &work->error);
	wss_history_close(history);
	return r;
}

/*
 * Memory is given back even if the history cannot be written, for example on a full disk. One of an older version is
 * only read once it was opened for writing.
 */
static void journal_read(void *opaque)
{
	struct journal_work *work = opaque;

	if (journal_read_by(work, wss_history_open_readonly) < 0 &&
	    work->error.code != WSS_ERR_GONE)
		journal_read_by(work, wss_history_open);
}

/* A disk that hangs for one guest hangs for all. */
static void journal_close(void *opaque)
{
	struct journal_work *work = opaque;
	struct wss_history *history = NULL;

	if (wss_history_open(work->path, &history, &work->error) < 0)
		return;
	for (size_t i = 0; i < work->n; i++)
		wss_journal_done(history, work->open[i].uuid, &work->errors[i]);
	wss_history_close(history);
}

int wss_journal_read_in_time(const char *path, struct wss_journal_open **ret_open, size_t *ret_n,
			     struct wss_error *err)
{
	struct journal_work *work = journal_work_run(path, journal_read, NULL, 0, err);

	if (!work)
		return -1;
	*ret_open = wss_steal_ptr(work->open);
	*ret_n = work->n;
	journal_work_free(work);
	return 0;
}

int wss_journal_close_in_time(const char *path, const struct wss_journal_open *open, size_t n,
			      struct wss_error *errors, struct wss_error *err)
{
	struct wss_journal_open *copy = calloc(n + 1, sizeof(*copy));
	struct journal_work *work;

	if (!copy)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	memcpy(copy, open, n * sizeof(*copy));
	work = journal_work_run(path, journal_close, copy, n, err);
	if (!work)
		return -1;
	memcpy(errors, work->errors, n * sizeof(*errors));
	journal_work_free(work);
	return 0;
}
