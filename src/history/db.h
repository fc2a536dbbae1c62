/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The database behind the history: opening, schema, statements, errors. For history/ alone, and for
 * balloon/journal.c, whose table is in the same file.
 */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "history/history.h"

/* Another writer's transaction normally takes milliseconds, but seconds on a slow disk. */
#define DB_BUSY_MS 15000

enum wss_db_statement {
	DB_SAMPLE_BEGIN,
	DB_SAMPLE_END,
	DB_SAMPLE_UNDO,
	DB_GUEST_PUT,
	DB_GUEST_GET,
	DB_SERIES_PUT,
	DB_SERIES_GET,
	DB_SERIES_FIND,
	DB_SAMPLE_PUT,
	DB_SUMMARY_GET,
	DB_SUMMARY_PUT,
	DB_SUMMED_UP,
	DB_LAST,
	DB_COUNT_OLDER,
	DB_CHOOSE,
	DB_SUMMARIES,
	DB_NEWEST,
	DB_HOURS,
	DB_HOUR_SUMMARIES,
	DB_OVERHEAD,
	DB_FLOOR,
	DB_SQUEEZE_PUT,
	DB_SQUEEZE_GET,
	DB_GUESTS,
	DB_SERIES_OF,
	DB_SAMPLES,
	DB_SPANS,
	DB_COLDNESS_PUT,
	DB_COLDNESS_NEWEST,
	DB_COLDNESS_AT,
	DB_JOURNAL_PUT,
	DB_JOURNAL_BEGIN,
	DB_JOURNAL_DONE,
	DB_JOURNAL_OPEN,
	DB_STATEMENTS,
};

struct wss_history {
	sqlite3 *db;
	char *path;		    /* as returned by wss_db_find() */
	int patience_ms, waited_ms; /* wait for another process's lock: limit and time spent */
	dev_t device;		    /* the file that was opened for writing */
	ino_t inode;
	int64_t file_bytes;	/* when it was last checked by wss_history_check_file() */
	uint64_t log_max_bytes; /* see wss_db_log_check() */
	bool left_out_noted;	/* see wss_db_note_left_out() */
	bool damage_noted;	/* see wss_db_note_damaged() */
	bool created;		/* this handle created the file */
	sqlite3_stmt *statements[DB_STATEMENTS]; /* prepared on first use */
};

/*
 * Sets err from the database's last error: "history PATH: what: why". WSS_ERR_BUSY,
 * WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED, WSS_ERR_DAMAGED or WSS_ERR_FAILED. Returns -1.
 */
int wss_db_error(struct wss_history *history, const char *what, struct wss_error *err);

/*
 * Sets whether a stop request interrupts statements, which then fail with WSS_ERR_INTERRUPTED.
 * A writer must be able to record its actions even after a stop request.
 */
void wss_db_set_interruptible(struct wss_history *history, bool interruptible);

/* Returns the size of SQLite's log beside the file; 0 if there is none. */
uint64_t wss_db_log_bytes(const struct wss_history *history);

/* Writes the log back and empties it. False: a reader keeps it from that, or the disk does. */
bool wss_db_log_write_back(struct wss_history *history);

/*
 * Fails with WSS_ERR_BUSY before a write of what may be lost, if the log is longer than log_max_bytes and cannot be
 * written back, because a reader that does not go on has a transaction open: the log would grow without limit.
 */
int wss_db_log_check(struct wss_history *history, struct wss_error *err);

/* Runs statements without parameters. */
int wss_db_exec(struct wss_history *history, const char *sql, const char *what,
		struct wss_error *err);

/* Returns the single number that a query yields; 0 if it yields none. */
int wss_db_number(struct wss_history *history, const char *sql, int64_t *ret_number,
		  struct wss_error *err);

/*
 * Returns the statement, reset and with no parameters bound; NULL with err set. Owned by the
 * history.
 */
sqlite3_stmt *wss_db_statement(struct wss_history *history, enum wss_db_statement which,
			       struct wss_error *err);

/* Returns a column of the row; 0 if it is negative. */
uint64_t wss_db_column_u64(sqlite3_stmt *stmt, int at);

/*
 * Returns a column of the row; unknown if it is not a number, negative, or larger than any
 * guest.
 */
struct wss_amount wss_db_column_amount(sqlite3_stmt *stmt, int at);

/* Returns the start of the hour, day or other span (in seconds) that a time is in; 0 for times before 1970. */
time_t wss_db_floor_time(time_t when, time_t span);

/* Whether a time is from WSS_TIME_MIN_S to WSS_TIME_MAX_S. The file may contain any number. */
bool wss_db_time_is_valid(time_t time);

/*
 * Condition on a row of the table summary, in terms of WSS_BYTES_MAX: whether a guest can have had these sizes. Older
 * versions stored larger ones, and those hours and days must not keep the others from being read.
 */
#define DB_SIZES_ARE_POSSIBLE \
	"(max(min_bytes, max_bytes) <= 1 << 60 AND (sum_pages - 1) >> 48 < samples)"

/* Logs, once, how many hours and days are left out because they do not fulfil DB_SIZES_ARE_POSSIBLE. */
void wss_db_note_left_out(struct wss_history *history);

/*
 * Condition on a row of the table sample, in terms of WSS_BYTES_MAX: whether a window can have had this working set in
 * these bounds, of a guest with this memory. A window's lower bound counts blocks, of which the guest's last one may not
 * be full.
 */
#define DB_SAMPLE_IS_POSSIBLE                                                 \
	"(typeof(wss_bytes) = 'integer' AND wss_bytes BETWEEN 0 AND 1 << 60 " \
	"AND coalesce(low_bytes, 0) BETWEEN 0 AND wss_bytes "                 \
	"AND coalesce(high_bytes, wss_bytes) BETWEEN wss_bytes AND 1 << 60 "  \
	"AND coalesce(sample.window_ns, 1) > 0 "                              \
	"AND coalesce(low_bytes, wss_bytes) / 2 <= coalesce(maximum_bytes, 1 << 60))"

/* Logs, once, how many samples are left out because they do not fulfil DB_SAMPLE_IS_POSSIBLE. */
void wss_db_note_damaged(struct wss_history *history);

/*
 * Reads a row that begins with the columns of DB_SUMMARIES into an empty summary, up to the
 * sizes, or, if with_curve, up to the curve. The caller frees the summary, even after an
 * error. Returns 0, -1, or 1: left out, see wss_db_note_left_out(); the summary stays empty.
 */
int wss_db_read_summary(struct wss_history *history, sqlite3_stmt *stmt, bool with_curve,
			struct wss_summary *summary, struct wss_error *err);

/*
 * Reads the report on how cold a guest's memory was at the end of the hour or day that begins at start. Returns
 * 1; 0 if there is none, -1 on error.
 */
int wss_db_coldness_at(struct wss_history *history, const char *uuid, int level, time_t start,
		       struct wss_history_coldness *ret_coldness, struct wss_error *err);

/*
 * Returns the path under which to open the history, with all links in its directory resolved:
 * a malloc()ed string. make: create missing directories. WSS_ERR_FAILED if the history, a file
 * that SQLite keeps next to it, its directory or one above does not belong to the caller or root, if
 * other users may write to it, or if a file is not a regular one; WSS_ERR_GONE if the
 * directory is missing.
 */
int wss_db_find(const char *path, bool make, char **ret_path, struct wss_error *err);

/* Checks that wss_db_find() could create the directories that are missing above path. Its errors. */
int wss_db_check_directories(const char *path, struct wss_error *err);

/* Opens the lock file next to a history; wss_db_find() has checked the directory. */
int wss_db_open_lock(const char *path, int *ret_fd, struct wss_error *err);

/* Allocates a history without opening it; NULL with err set. Free it with wss_history_close(). */
struct wss_history *wss_db_new(const char *path, struct wss_error *err);

/* Exchanges what two histories refer to. */
void wss_db_swap(struct wss_history *a, struct wss_history *b);

/* Sets up a connection for reading or writing that trusts nothing in the file. */
int wss_db_set_up(struct wss_history *history, struct wss_error *err);

/*
 * Creates a complete history at path if there is no file or an empty one; otherwise does
 * nothing. Waits at most DB_BUSY_MS for other processes that do the same: WSS_ERR_BUSY,
 * WSS_ERR_INTERRUPTED. path comes from wss_db_find(). *ret_created is whether this call
 * created the file.
 */
int wss_db_create(const char *path, bool *ret_created, struct wss_error *err);

/* Whether wss_db_create() would create the file. */
bool wss_db_is_missing(const char *path);

/* Creates the tables if there are none; otherwise does what wss_db_check_version() does. */
int wss_db_create_tables(struct wss_history *history, struct wss_error *err);

/*
 * Checks, without changing the file, that it is a history of a known version, with the tables
 * of that version and nothing else. Call this before any statement that could run code defined
 * in the file.
 */
int wss_db_check_version(struct wss_history *history, struct wss_error *err);

/*
 * Fails with WSS_ERR_FAILED unless the texts that queries copy to the rows of a guest are as short as
 * those that are written, with room for another encoding: one long name could otherwise take any
 * amount of memory.
 */
int wss_db_check_texts(struct wss_history *history, struct wss_error *err);

/* Like wss_db_check_version(), but also accepts a file without tables. */
int wss_db_check_made(struct wss_history *history, struct wss_error *err);
