/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/journal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "history/db.h"

static int finish_statement(struct wss_history *history, sqlite3_stmt *stmt, struct wss_error *err)
{
	int r = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return r == SQLITE_DONE ? 0 : wss_db_error(history, "cannot write the journal", err);
}

static int store_step(struct wss_history *history, enum wss_db_statement which,
		      const struct wss_journal_step *step, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, which, err);

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, step->uuid, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 2, step->name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, step->time);
	sqlite3_bind_int64(stmt, 4, (int64_t)step->original_bytes);
	sqlite3_bind_int64(stmt, 5, (int64_t)step->from_bytes);
	sqlite3_bind_int64(stmt, 6, (int64_t)step->to_bytes);
	sqlite3_bind_text(stmt, 7, step->reason, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 8, step->uri, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 9, (int64_t)step->maximum_bytes);
	return finish_statement(history, stmt, err);
}

int wss_journal_write(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err)
{
	return store_step(history, DB_JOURNAL_PUT, step, err);
}

static int journal_has_unfinished(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_FAILED,
			     "another controller has changed its balloon and has not restored it");
}

int wss_journal_begin(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err)
{
	if (store_step(history, DB_JOURNAL_BEGIN, step, err) < 0)
		return -1;
	return sqlite3_changes(history->db) ? 0 : journal_has_unfinished(err);
}

int wss_journal_check(struct wss_history *history, const char *uuid, struct wss_error *err)
{
	struct wss_journal_open *open = NULL;
	size_t n = 0;

	if (wss_journal_unfinished(history, uuid, &open, &n, err) < 0)
		return -1;
	free(open);
	return n ? journal_has_unfinished(err) : 0;
}

int wss_journal_done(struct wss_history *history, const char *uuid, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_JOURNAL_DONE, err);

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	return finish_statement(history, stmt, err);
}

/*
 * Copies a text; NULL, which a foreign file may contain anywhere, becomes "". Returns false
 * when out of memory, because a truncated name would return memory to the wrong guest.
 */
static bool journal_column_text(sqlite3_stmt *stmt, int at, char *ret_text, size_t size)
{
	bool null = sqlite3_column_type(stmt, at) == SQLITE_NULL;
	const char *text = (const char *)sqlite3_column_text(stmt, at);

	snprintf(ret_text, size, "%s", text ? text : "");
	return text || null;
}

static uint64_t journal_column_bytes(sqlite3_stmt *stmt, int at)
{
	int64_t bytes = sqlite3_column_int64(stmt, at);

	return bytes > 0 && bytes <= (int64_t)WSS_BYTES_MAX ? (uint64_t)bytes : 0;
}

static bool read_open_step(sqlite3_stmt *stmt, struct wss_journal_open *open)
{
	if (!journal_column_text(stmt, 0, open->uuid, sizeof(open->uuid)) ||
	    !journal_column_text(stmt, 1, open->name, sizeof(open->name)) ||
	    !journal_column_text(stmt, 3, open->uri, sizeof(open->uri)))
		return false;
	/* Cut short, a damaged UUID could become that of another guest. */
	if (sqlite3_column_bytes(stmt, 0) >= (int)sizeof(open->uuid))
		open->uuid[0] = '\0';
	open->original_bytes = journal_column_bytes(stmt, 2);
	open->from_bytes = journal_column_bytes(stmt, 4);
	open->to_bytes = journal_column_bytes(stmt, 5);
	open->maximum_bytes = journal_column_bytes(stmt, 6);
	open->first_maximum_bytes = journal_column_bytes(stmt, 7);
	return true;
}

int wss_journal_unfinished(struct wss_history *history, const char *uuid,
			   struct wss_journal_open **ret_open, size_t *ret_n, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_JOURNAL_OPEN, err);
	struct wss_journal_open *list = NULL, *more;
	size_t n = 0, room = 0;
	int r = SQLITE_ROW;

	if (!stmt)
		return -1;
	if (uuid)
		sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (n == room) {
			room = room ? room * 2 : 8;
			more = reallocarray(list, room, sizeof(*list));
			if (!more)
				break;
			list = more;
		}
		if (!read_open_step(stmt, &list[n++]))
			break;
	}
	sqlite3_reset(stmt);
	if (r != SQLITE_DONE) {
		free(list);
		return r == SQLITE_ROW ? wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory")
				       : wss_db_error(history, "cannot read the journal", err);
	}
	*ret_open = list;
	*ret_n = n;
	return 0;
}
