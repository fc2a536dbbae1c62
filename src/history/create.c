/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creates a history, which gets its name only when it is complete. SQLite switches an empty
 * file to WAL under locks that it does not wait for, so if several processes created it in
 * place at the same time, some would fail.
 */
#include "history/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"
#include "base/newfile.h"

bool wss_db_is_missing(const char *path)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno == ENOENT : S_ISREG(st.st_mode) && st.st_size == 0;
}

/*
 * Whether a file starts like one of SQLite's logs, journals or log indexes ("WAL-mode File
 * Format" 2.1, "Database File Format" 3), or with zeros, like one that SQLite has reset.
 */
static bool is_from_sqlite(int fd)
{
	static const uint8_t log[] = {0x37, 0x7f, 0x06}, journal[] = {0xd9, 0xd5, 0x05, 0xf9};
	uint32_t index = 3007000;
	uint8_t start[4] = {0};

	if (wss_io_pread(fd, start, sizeof(start), 0) < 0)
		return false;
	return !memcmp(start, log, sizeof(log)) || !memcmp(start, journal, sizeof(journal)) ||
	       !memcmp(start, &index, sizeof(index)) ||
	       !memcmp(start, (uint8_t[4]){0}, sizeof(start));
}

/* Removes a file that belonged to a history that no longer exists. */
static int remove_stale(const char *path, struct wss_error *err)
{
	wss_auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || !is_from_sqlite(fd))
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"history: %s is not SQLite's, but has a name that SQLite uses: "
			"move it away",
			path);
	return unlink(path) < 0 ? wss_error_errno(err, WSS_ERR_FAILED, errno,
						  "history: cannot remove %s", path)
				: 0;
}

/*
 * SQLite would take an old log next to a new database as that database's own and bring its
 * content back.
 */
static int remove_stale_files(const char *path, struct wss_error *err)
{
	static const char *const suffixes[] = {"-journal", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		wss_auto_free char *name = NULL;

		if (asprintf(&name, "%s%s", path, suffixes[i]) < 0) {
			name = NULL;
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		if (remove_stale(name, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * Creates the tables without an additional journal file, which a kill would leave behind.
 * Errors name the history, not the temporary file.
 */
static int fill_database(const char *temporary, const char *path, struct wss_error *err)
{
	struct wss_history *history = wss_db_new(path, err);
	int r = -1;

	if (!history)
		return -1;
	if (sqlite3_open_v2(temporary, &history->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW,
			    NULL) != SQLITE_OK)
		wss_db_error(history, "cannot open it", err);
	else if (wss_db_set_up(history, err) == 0 &&
		 wss_db_exec(history,
			     "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF;"
			     "PRAGMA auto_vacuum = INCREMENTAL",
			     "cannot create it", err) == 0)
		r = wss_db_create_tables(history, err);
	wss_history_close(history);
	return r;
}

/*
 * Sets WAL mode in the file's header ("Database File Format" 1.3.3), as a writer would
 * otherwise do.
 */
static int set_wal_mode(int fd, struct wss_error *err)
{
	static const uint8_t versions[] = {2, 2};
	int r = wss_io_pwrite(fd, versions, sizeof(versions), 18);

	return r < 0 ? wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it") : 0;
}

/*
 * Creates the database under a temporary name, because SQLite opens files by name. Its
 * descriptor stays open until SQLite has closed the file, because closing any descriptor of a
 * file drops all of SQLite's locks on it. Only the owner may read the memory needs of guests.
 */
static int create_database(const char *path, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	wss_auto_free char *temporary = NULL;
	int directory = (int)(strrchr(path, '/') + 1 - path);

	if (wss_newfile_make_named(path, 0640, &file, err) < 0)
		return wss_error_prefix(err, "history %s", path);
	if (asprintf(&temporary, "%.*s%s", directory, path, file.temporary) < 0) {
		temporary = NULL;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (fill_database(temporary, path, err) < 0)
		return -1;
	if (set_wal_mode(file.fd, err) < 0 || wss_newfile_name(&file, true, err) < 0)
		return wss_error_prefix(err, "history %s", path);
	return 0;
}

bool wss_history_is_new(const struct wss_history *history)
{
	return history->created;
}

int wss_db_create(const char *path, bool *ret_created, struct wss_error *err)
{
	wss_auto_close_locked int lock = -1;

	*ret_created = false;
	if (!wss_db_is_missing(path))
		return 0;
	if (wss_db_open_lock(path, &lock, err) < 0)
		return -1;
	if (wss_file_lock(lock, 0, DB_BUSY_MS * WSS_NS_PER_MS, err) < 0)
		return wss_error_prefix(err, "history: lock %s.lock", path);
	if (!wss_db_is_missing(path))
		return 0;
	if (remove_stale_files(path, err) < 0 || create_database(path, err) < 0)
		return -1;
	*ret_created = true;
	return 0;
}

static bool database_is_empty(struct wss_history *history)
{
	int64_t rows = -1;

	return wss_db_number(history,
			     "SELECT (SELECT count(*) FROM guest) + (SELECT count(*) FROM balloon)",
			     &rows, NULL) == 0 &&
	       rows == 0;
}

/*
 * Gives this handle exclusive access to the file until it is closed. Leaving WAL mode succeeds
 * only if no other process has the file open.
 */
static bool database_take(struct wss_history *history)
{
	sqlite3_busy_handler(history->db, NULL, NULL);
	return wss_db_exec(history,
			   "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE;"
			   "BEGIN EXCLUSIVE",
			   "cannot lock it", NULL) == 0;
}

void wss_history_close_unused(struct wss_history *history)
{
	struct wss_error unused = WSS_ERROR_INIT;

	/*
	 * A history in use stays in WAL mode. Another process may have used it since the first
	 * check.
	 */
	if (history && history->created && database_is_empty(history) && database_take(history) &&
	    database_is_empty(history) && wss_history_is_in_place(history) &&
	    remove_stale_files(history->path, &unused) == 0)
		unlink(history->path);
	wss_history_close(history);
}
