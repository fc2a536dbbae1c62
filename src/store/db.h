/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The database below the history: opening, schema, statements, errors. Private to store/.
 */
#ifndef WSS_STORE_DB_H
#define WSS_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "store/history.h"

/* Another writer's transaction takes milliseconds; a disk may take seconds. */
#define DB_BUSY_MS 15000

enum wss_db_statement {
	DB_GUEST_PUT,
	DB_GUEST_GET,
	DB_SERIES_PUT,
	DB_SERIES_GET,
	DB_SAMPLE_PUT,
	DB_SUMMARY_GET,
	DB_SUMMARY_PUT,
	DB_LAST,
	DB_CHOOSE,
	DB_SUMMARIES,
	DB_NEWEST,
	DB_HOURS,
	DB_GUESTS,
	DB_SAMPLES,
	DB_SPANS,
	DB_JOURNAL_PUT,
	DB_JOURNAL_BEGIN,
	DB_JOURNAL_DONE,
	DB_JOURNAL_OPEN,
	DB_STATEMENTS,
};

struct wss_history {
	sqlite3 *db;
	char *path;		    /* as wss_db_find() gives it */
	int patience_ms, waited_ms; /* for another process's lock */
	dev_t device; /* what was opened for writing */
	ino_t inode;
	sqlite3_stmt *statements[DB_STATEMENTS]; /* prepared when first used */
};

/* Sets err from the database's last error: "history PATH: what: why". Returns -1. */
int wss_db_error(struct wss_history *history, const char *what, struct wss_error *err);

/* Runs statements without parameters. */
int wss_db_exec(struct wss_history *history, const char *sql, const char *what,
		struct wss_error *err);

/* One number that a query gives; 0 where it gives none. */
int wss_db_number(struct wss_history *history, const char *sql, int64_t *ret_number,
		  struct wss_error *err);

/* The statement, reset, without bindings; NULL with err set. It stays the history's. */
sqlite3_stmt *wss_db_statement(struct wss_history *history, enum wss_db_statement which,
			       struct wss_error *err);

/* A column of the row; negative: 0. */
uint64_t wss_db_column_u64(sqlite3_stmt *stmt, int at);

/* The same, absent where it is no number, negative, or more than any guest has. */
struct wss_amount wss_db_column_amount(sqlite3_stmt *stmt, int at);

/*
 * Reads a row that begins with the columns of DB_SUMMARIES, up to the sizes, or with_curve to the
 * curve, into an empty summary, which the caller frees, also after an error.
 */
int wss_db_read_summary(struct wss_history *history, sqlite3_stmt *stmt, bool with_curve,
			struct wss_summary *summary, struct wss_error *err);

/*
 * The path by which the history is opened, whose directory no link leads to: a malloc'ed
 * string. make: its directories are made where they are missing. WSS_ERR_FAILED where the
 * history, what SQLite keeps beside it or its directory is not the caller's or root's, other
 * users may write to it, or a file is no regular one; WSS_ERR_GONE where the directory is
 * missing.
 */
int wss_db_find(const char *path, bool make, char **ret_path, struct wss_error *err);

/*
 * WSS_ERR_FAILED, naming the owner or the mode, where anyone but the caller and root may write to
 * a file or directory.
 */
int wss_db_check_hands_off(const struct stat *st, bool directory, struct wss_error *err);

/* Opens the file of the lock beside a history; wss_db_find() has checked the directory. */
int wss_db_open_lock(const char *path, int *ret_fd, struct wss_error *err);

/* Opens the history's file anew, with SQLite's flags, following no link: SQLite's result. */
int wss_db_open_file(struct wss_history *history, int flags);

/* Not opened yet; NULL with err set. Ended by wss_history_close(). */
struct wss_history *wss_db_new(const char *path, struct wss_error *err);

/* Common to readers and writers: nothing in the file is to be trusted. */
int wss_db_set_up(struct wss_history *history, struct wss_error *err);

/* The mode of the file: incremental vacuum where it is still empty, and WAL. */
int wss_db_set_up_writer(struct wss_history *history, struct wss_error *err);

/*
 * Makes the file at path, whole, where there is none or an empty one; else does nothing. Waits
 * at most DB_BUSY_MS for others who do so: WSS_ERR_BUSY, WSS_ERR_INTERRUPTED. path is one that
 * wss_db_find() gave.
 */
int wss_db_create(const char *path, struct wss_error *err);

/* Makes the tables, or brings those of an older version up to date. */
int wss_db_migrate(struct wss_history *history, struct wss_error *err);

/*
 * Is the file one of ours, of a version that we know, with the tables of that version and
 * nothing else? Without changing it, and before anything that the file itself may define is
 * run.
 */
int wss_db_check_version(struct wss_history *history, struct wss_error *err);

/* As that, but a file without any table is all right, too. */
int wss_db_check_made(struct wss_history *history, struct wss_error *err);

#endif
