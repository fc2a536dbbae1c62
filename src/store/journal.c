/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/journal.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/db.h"

static int finish(struct wss_history *history, sqlite3_stmt *stmt, struct wss_error *err)
{
	int r = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return r == SQLITE_DONE ? 0 : wss_db_error(history, "cannot write the journal", err);
}

int wss_journal_write(struct wss_history *history, const struct wss_journal_step *step,
		      struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_JOURNAL_PUT, err);

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, step->uuid, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 2, step->name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, step->time);
	sqlite3_bind_int64(stmt, 4, (int64_t)step->original_bytes);
	sqlite3_bind_int64(stmt, 5, (int64_t)step->from_bytes);
	sqlite3_bind_int64(stmt, 6, (int64_t)step->to_bytes);
	sqlite3_bind_text(stmt, 7, step->reason, -1, SQLITE_STATIC);
	return finish(history, stmt, err);
}

int wss_journal_done(struct wss_history *history, const char *uuid, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_JOURNAL_DONE, err);

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	return finish(history, stmt, err);
}

static void read_open(sqlite3_stmt *stmt, struct wss_journal_open *open)
{
	int64_t bytes = sqlite3_column_int64(stmt, 2);

	snprintf(open->uuid, sizeof(open->uuid), "%s", (const char *)sqlite3_column_text(stmt, 0));
	snprintf(open->name, sizeof(open->name), "%s", (const char *)sqlite3_column_text(stmt, 1));
	open->original_bytes = bytes > 0 ? (uint64_t)bytes : 0;
}

int wss_journal_unfinished(struct wss_history *history, const char *uuid,
			   struct wss_journal_open **ret_open, size_t *ret_n,
			   struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_JOURNAL_OPEN, err);
	struct wss_journal_open *list = NULL, *more;
	size_t n = 0;
	int r = SQLITE_ROW;

	if (!stmt)
		return -1;
	if (uuid)
		sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
		more = reallocarray(list, n + 1, sizeof(*list));
		if (!more)
			break;
		list = more;
		read_open(stmt, &list[n++]);
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
