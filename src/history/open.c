/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening a history for writing or for reading, and what is checked before anything is read. */
#include "history/db.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/newfile.h"

/*
 * Readers check the integrity of files up to this size; checking a larger one would take
 * longer than the query.
 */
#define READER_CHECK_MAX (64 << 20)

/* Opens the history's file with SQLite's flags, without following links. Returns SQLite's result. */
static int open_database(struct wss_history *history, int flags)
{
	sqlite3_close(history->db);
	history->db = NULL;
	return sqlite3_open_v2(history->path, &history->db, flags | SQLITE_OPEN_NOFOLLOW, NULL);
}

static int check_integrity(struct wss_history *history, struct wss_error *err)
{
	sqlite3_stmt *stmt = NULL;
	const char *finding, *line;
	bool good = false;
	int r;

	if (wss_db_check_made(history, err) < 0)
		return -1;
	r = sqlite3_prepare_v2(history->db, "PRAGMA quick_check(1)", -1, &stmt, NULL);
	if (r == SQLITE_OK) {
		r = sqlite3_step(stmt);
		finding = r == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
		good = finding && !strcmp(finding, "ok");
		/* The line before it names the database, which is always "main". */
		line = finding ? strrchr(finding, '\n') : NULL;
		if (finding && !good)
			wss_error_set(err, WSS_ERR_DAMAGED, "history %s: damaged: %s",
				      history->path, line ? line + 1 : finding);
	}
	if (r != SQLITE_ROW)
		wss_db_error(history, "cannot check it", err);
	sqlite3_finalize(stmt);
	return good ? 0 : -1;
}

/* A large file takes long. Nothing has begun yet, so a stop request ends the check. */
static int check_for_writer(struct wss_history *history, struct wss_error *err)
{
	int r;

	wss_db_set_interruptible(history, true);
	r = check_integrity(history, err);
	wss_db_set_interruptible(history, false);
	return r;
}

/* Sets the modes of the file: WAL, and incremental vacuum if it is still empty. */
static int set_up_writer(struct wss_history *history, struct wss_error *err)
{
	int64_t pages;

	if (wss_db_number(history, "PRAGMA page_count", &pages, err) < 0)
		return -1;
	if (!pages &&
	    wss_db_exec(history, "PRAGMA auto_vacuum = INCREMENTAL", "cannot create it", err) < 0)
		return -1;
	return wss_db_exec(history,
			   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
			   "PRAGMA journal_size_limit = 0",
			   "cannot open it for writing", err);
}

/* Called before SQLite opens the file, so that a file that replaces it later is noticed. */
static void remember_inode(struct wss_history *history)
{
	struct stat st;

	if (stat(history->path, &st) < 0)
		return;
	history->device = st.st_dev;
	history->inode = st.st_ino;
}

bool wss_history_is_in_place(const struct wss_history *history)
{
	struct stat st;

	return stat(history->path, &st) == 0 && st.st_dev == history->device &&
	       st.st_ino == history->inode && st.st_size;
}

int wss_history_open(const char *path, struct wss_history **ret_history, struct wss_error *err)
{
	wss_auto_free char *found = NULL;
	struct wss_history *history;
	int keep = 1;

	if (wss_db_find(path, true, &found, err) < 0)
		return -1;
	history = wss_db_new(found, err);
	if (!history)
		return -1;
	if (wss_db_create(found, &history->created, err) < 0) {
		wss_history_close(history);
		return -1;
	}
	remember_inode(history);
	/* SQLite would open the file read-only and report that at the first sample. */
	if (access(found, W_OK) < 0) {
		wss_error_errno(err, WSS_ERR_FAILED, errno, "history %s: cannot write to it", path);
	} else if (open_database(history, SQLITE_OPEN_READWRITE) != SQLITE_OK) {
		wss_db_error(history, "cannot open it", err);
		/* Another connection can still remove the file if this process has created it. */
		open_database(history, SQLITE_OPEN_READWRITE);
	} else if (wss_db_set_up(history, err) == 0 && check_for_writer(history, err) == 0 &&
		   set_up_writer(history, err) == 0 && wss_db_create_tables(history, err) == 0 &&
		   wss_db_check_texts(history, err) == 0) {
		/* Keep the log when the last connection closes: readers without write permission need it. */
		sqlite3_file_control(history->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
		if (wss_history_is_in_place(history)) {
			*ret_history = history;
			return 0;
		}
		wss_error_set(err, WSS_ERR_BUSY, "history %s: removed by another process", path);
	}
	wss_history_close_unused(history);
	return -1;
}

static uint32_t header_number(const uint8_t *header, size_t at, size_t size)
{
	uint32_t number = 0;

	while (size--)
		number = number << 8 | header[at++];
	return number;
}

/*
 * The header states the size of a page and their number ("Database File Format" 1.3). A file grows after that is
 * written and shrinks before, so that only one that was cut off is smaller than it was, and smaller than that. Reads
 * through SQLite, as closing a descriptor of the file would drop SQLite's locks on it.
 */
int wss_history_check_file(struct wss_history *history, struct wss_error *err)
{
	static const char magic[16] = "SQLite format 3";
	sqlite3_file *file = NULL;
	uint8_t header[100] = {0};
	sqlite3_int64 bytes = 0, page_bytes;
	int r = sqlite3_file_control(history->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);

	if (r == SQLITE_OK)
		r = file->pMethods->xFileSize(file, &bytes);
	if (r == SQLITE_OK)
		r = file->pMethods->xRead(file, header, sizeof(header), 0);
	if (r != SQLITE_OK && r != SQLITE_IOERR_SHORT_READ)
		return wss_error_set(err, WSS_ERR_FAILED, "history %s: cannot read its header: %s",
				     history->path, sqlite3_errstr(r));
	page_bytes = header_number(header, 16, 2);
	if (r != SQLITE_OK || memcmp(header, magic, sizeof(magic)) != 0)
		return wss_error_set(err, WSS_ERR_DAMAGED,
				     "history %s: damaged: its header is not SQLite's",
				     history->path);
	if (bytes < page_bytes ||
	    (bytes < history->file_bytes && bytes < page_bytes * header_number(header, 28, 4)))
		return wss_error_set(err, WSS_ERR_DAMAGED, "history %s: damaged: it was cut off",
				     history->path);
	history->file_bytes = bytes;
	return 0;
}

/* Lets the handle refer to what its path leads to now. */
static int history_follow_path(struct wss_history *history, struct wss_error *err)
{
	struct wss_history *opened;

	if (wss_history_open(history->path, &opened, err) < 0)
		return -1;
	wss_history_set_patience(opened, history->patience_ms);
	opened->log_max_bytes = history->log_max_bytes;
	wss_db_swap(history, opened);
	/* SQLite leaves the files at a path alone that leads to another database than its own. */
	wss_history_close(opened);
	return 0;
}

int wss_history_reopen(struct wss_history *history, struct wss_error *err)
{
	struct stat st;

	/*
	 * Where the file was moved without its log, the log's samples would be lost, and a file that took its place
	 * would get them. Best effort: a file that was removed has nothing to be saved. In one that was
	 * emptied a part of the pages would make no database.
	 */
	if (stat(history->path, &st) == 0 && st.st_ino == history->inode && !st.st_size)
		sqlite3_db_config(history->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	else
		wss_db_log_write_back(history);
	return history_follow_path(history, err);
}

/*
 * Renames the file and its log, the log first: a process that opens a file without its log finds it damaged as before,
 * but a new file would get what an old log has. SQLite rebuilds the log's index whenever it is missing.
 */
static int files_rename(const char *path, const char *to, struct wss_error *err)
{
	static const char *const suffixes[] = {"-wal", "-shm", ""};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		wss_auto_free char *from = NULL, *kept = NULL;

		if (asprintf(&from, "%s%s", path, suffixes[i]) < 0) {
			from = NULL;
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		if (asprintf(&kept, "%s%s", to, suffixes[i]) < 0) {
			kept = NULL;
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		if (rename(from, kept) < 0 && errno != ENOENT)
			return wss_error_errno(err, WSS_ERR_FAILED, errno,
					       "history: cannot rename %s", from);
	}
	return 0;
}

/* Returns a name beside the file that nothing has yet, malloc()ed; NULL: out of memory. */
static char *kept_name(const char *path)
{
	time_t now = wss_clock_wall_seconds();
	struct stat st;
	struct tm tm;
	char when[32];

	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	for (unsigned n = 1;; n++) {
		char *name, number[16] = "";

		if (n > 1)
			snprintf(number, sizeof(number), ".%u", n);
		if (asprintf(&name, "%s.damaged-%s%s", path, when, number) < 0)
			return NULL;
		if (lstat(name, &st) < 0)
			return name;
		free(name);
	}
}

int wss_history_replace(struct wss_history *history, char **ret_kept, struct wss_error *err)
{
	wss_auto_free char *kept = NULL;
	wss_auto_close_locked int lock = -1;
	struct stat st;

	/* Pages of its log have no place in a file that is another one by now. */
	sqlite3_db_config(history->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	/* Another process may have replaced it already. */
	if (!wss_history_is_in_place(history)) {
		if (history_follow_path(history, err) == 0)
			return 0;
		if (err->code != WSS_ERR_DAMAGED)
			return -1;
		wss_error_clear(err);
	}
	kept = kept_name(history->path);
	if (!kept)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_db_open_lock(history->path, &lock, err) < 0)
		return -1;
	if (wss_file_lock(lock, 0, (uint64_t)history->patience_ms * WSS_NS_PER_MS, err) < 0)
		return wss_error_prefix(err, "history: lock %s.lock", history->path);
	/* An empty file is overwritten. */
	if (stat(history->path, &st) < 0 || !st.st_size) {
		free(kept);
		kept = NULL;
	} else if (files_rename(history->path, kept, err) < 0) {
		return -1;
	}
	wss_file_close_locked(&lock);
	if (history_follow_path(history, err) < 0)
		return -1;
	*ret_kept = wss_steal_ptr(kept);
	return 0;
}

/* Uses a URI, because this parameter has no flag. */
static char *immutable_uri(const char *path)
{
	char *uri = malloc(strlen(path) * 3 + 32), *at;

	if (!uri)
		return NULL;
	at = uri + sprintf(uri, "file:");
	for (; *path; path++) {
		if (strchr("%?#", *path) || (unsigned char)*path <= ' ')
			at += sprintf(at, "%%%02X", (unsigned char)*path);
		else
			*at++ = *path;
	}
	strcpy(at, "?immutable=1");
	return uri;
}

/* Whether the log is empty; otherwise it has newer data and cannot be ignored. */
static bool log_is_empty(const char *path)
{
	wss_auto_free char *log = NULL;
	struct stat st;

	if (asprintf(&log, "%s-wal", path) < 0) {
		log = NULL;
		return false;
	}
	return stat(log, &st) < 0 ? errno == ENOENT : st.st_size == 0;
}

/*
 * Opens a history on a read-only disk as immutable, because opening a file in WAL mode would
 * create its log, which is impossible there.
 */
static int open_immutable(struct wss_history *history, struct wss_error *err)
{
	wss_auto_free char *uri = immutable_uri(history->path);

	sqlite3_close(history->db);
	history->db = NULL;
	if (!uri || sqlite3_open_v2(uri, &history->db,
				    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW,
				    NULL) != SQLITE_OK)
		return wss_db_error(history, "cannot open it", err);
	return wss_db_set_up(history, err);
}

/*
 * Opens a history on a full disk, which has no room for the shared index of the log. With
 * exclusive access SQLite keeps the index in memory.
 */
static int open_alone(struct wss_history *history, struct wss_error *err)
{
	if (open_database(history, SQLITE_OPEN_READWRITE) != SQLITE_OK)
		return wss_db_error(history, "cannot open it", err);
	if (wss_db_set_up(history, err) < 0)
		return -1;
	return wss_db_exec(history, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA query_only = ON",
			   "cannot open it", err);
}

/* Tries other ways to open the history after the first access failed. Returns 0 if one may work. */
static int open_by_other_ways(struct wss_history *history, struct wss_error *err)
{
	int code = sqlite3_errcode(history->db) & 0xff;

	if ((code == SQLITE_CANTOPEN || code == SQLITE_READONLY) && log_is_empty(history->path)) {
		wss_error_clear(err);
		return open_immutable(history, err);
	}
	if (code == SQLITE_IOERR || code == SQLITE_FULL) {
		wss_error_clear(err);
		return open_alone(history, err);
	}
	return -1;
}

static int start_reading(struct wss_history *history, struct wss_error *err)
{
	int64_t bytes;

	if (wss_db_set_up(history, err) < 0)
		return -1;
	/* Large files are not checked, and a crafted one could make a query loop. */
	wss_db_set_interruptible(history, true);
	if (wss_db_check_version(history, err) < 0 &&
	    (open_by_other_ways(history, err) < 0 || wss_db_check_version(history, err) < 0))
		return -1;
	/* The other ways open another handle. */
	wss_db_set_interruptible(history, true);
	if (wss_db_number(history,
			  "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
			  &bytes, err) < 0)
		return -1;
	if (bytes <= READER_CHECK_MAX && check_integrity(history, err) < 0)
		return -1;
	return wss_db_check_texts(history, err);
}

int wss_history_open_readonly(const char *path, struct wss_history **ret_history,
			      struct wss_error *err)
{
	wss_auto_free char *found = NULL;
	struct wss_history *history;
	int r;

	if (wss_db_find(path, false, &found, err) < 0)
		return -1;
	history = wss_db_new(found, err);
	if (!history)
		return -1;
	if (access(found, R_OK) < 0) {
		wss_error_errno(err, errno == ENOENT ? WSS_ERR_GONE : WSS_ERR_FAILED, errno,
				"history %s: cannot read it", path);
		wss_history_close(history);
		return -1;
	}
	r = open_database(history, SQLITE_OPEN_READONLY) == SQLITE_OK
		    ? start_reading(history, err)
		    : wss_db_error(history, "cannot open it", err);
	if (r < 0) {
		wss_history_close(history);
		return -1;
	}
	*ret_history = history;
	return 0;
}

int wss_history_check(const char *path, struct wss_error *err)
{
	wss_auto_free char *found = NULL;
	struct wss_history *history;

	if (wss_db_check_directories(path, err) < 0)
		return -1;
	if (wss_db_find(path, false, &found, err) < 0) {
		if (err->code != WSS_ERR_GONE)
			return -1;
		wss_error_clear(err);
		return 0;
	}
	if (wss_newfile_check(found, err) < 0)
		return wss_error_prefix(err, "history %s", path);
	if (wss_db_is_missing(found))
		return 0;
	if (access(found, W_OK) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "history %s: cannot write to it",
				       path);
	if (wss_history_open_readonly(path, &history, err) < 0)
		return -1;
	wss_history_close(history);
	return 0;
}
