/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creates a history. It appears under its name when it is complete: SQLite switches an empty
 * file to WAL under locks for which it does not wait, so one of several processes that create
 * it at the same moment would fail.
 */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

static bool is_missing(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode) && st.st_size == 0;
}

/*
 * Files that SQLite keeps beside a database; an old log would be taken for the new database's.
 */
static void remove_beside(const char *path)
{
	static const char *const suffixes[] = { "-journal", "-wal", "-shm" };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		wss_auto_free char *name = NULL;

		if (asprintf(&name, "%s%s", path, suffixes[i]) < 0)
			name = NULL;
		else
			unlink(name);
	}
}

static void remove_database(const char *path)
{
	remove_beside(path);
	unlink(path);
}

/*
 * The memory needs of guests concern nobody else. Closed before the database is opened:
 * closing any descriptor of a file drops all locks that the process has on it.
 */
static int make_private(const char *path, struct wss_error *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "history %s: cannot write it",
				       path);
	close(fd);
	return 0;
}

/*
 * Write everything into the file that will be renamed: what stays in the log, because closing
 * could not write it, would be lost with the log's name.
 */
static int checkpoint_database(struct wss_history *history, struct wss_error *err)
{
	if (sqlite3_wal_checkpoint_v2(history->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ==
	    SQLITE_OK)
		return 0;
	return wss_db_error(history, "cannot write it", err);
}

static int make_database(const char *path, struct wss_error *err)
{
	struct wss_history *history = wss_db_new(path, err);
	int r = -1;

	if (!history)
		return -1;
	if (make_private(path, err) == 0) {
		if (wss_db_open_file(history, SQLITE_OPEN_READWRITE) != SQLITE_OK)
			wss_db_error(history, "cannot open it", err);
		else if (wss_db_set_up(history, err) == 0 &&
			 wss_db_set_up_writer(history, err) == 0 &&
			 wss_db_migrate(history, err) == 0)
			r = checkpoint_database(history, err);
	}
	wss_history_close(history);
	return r;
}

static void sync_directory(const char *path)
{
	wss_auto_free char *copy = strdup(path);
	wss_auto_close int fd =
		copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		fsync(fd);
}

/* The caller holds the lock. */
static int create_and_name(const char *path, struct wss_error *err)
{
	wss_auto_free char *new = NULL;
	int r;

	if (asprintf(&new, "%s.new", path) < 0) {
		new = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	/* A creator that was killed may have left it behind. */
	remove_database(new);
	remove_beside(path);
	r = make_database(new, err);
	/* SQLite leaves them behind where it cannot clean up. */
	if (r == 0)
		remove_beside(new);
	if (r == 0 && rename(new, path) < 0)
		r = wss_error_errno(err, WSS_ERR_FAILED, errno, "history %s: cannot write it",
				    path);
	if (r < 0)
		remove_database(new);
	return r;
}

int wss_db_create(const char *path, struct wss_error *err)
{
	wss_auto_close int lock = -1;

	if (!is_missing(path))
		return 0;
	if (wss_db_open_lock(path, &lock, err) < 0)
		return -1;
	if (wss_file_lock(lock, 0, DB_BUSY_MS * WSS_NS_PER_MS, err) < 0)
		return wss_error_prefix(err, "history: lock %s.lock", path);
	if (!is_missing(path))
		return 0;
	if (create_and_name(path, err) < 0)
		return -1;
	sync_directory(path);
	return 0;
}
