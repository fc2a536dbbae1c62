/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Stores how cold guests' memory was, and reads it. Nothing in the file is trusted: see schema.c. */
#include <math.h>

#include "base/clock.h"
#include "base/number.h"
#include "history/db.h"

/* Shares are stored in millionths. */
#define SHARE_ONE 1000000
/* The parameters of the first age, and its columns; each age has three. */
#define PUT_AGES 9
#define GET_AGES 5
#define WATCHED_MAX_S (INT64_C(100) * 366 * WSS_HISTORY_DAY)

/* --- writing --- */

static void bind_ages(sqlite3_stmt *stmt, const struct wss_cold_report *report)
{
	for (int i = 0; i < WSS_COLD_AGES; i++) {
		const struct wss_cold_class *class = &report->ages[i];
		int at = PUT_AGES + 3 * i;

		if (class->whole)
			sqlite3_bind_int64(stmt, at, (int64_t) class->low_bytes);
		else
			sqlite3_bind_null(stmt, at);
		sqlite3_bind_int64(stmt, at + 1, (int64_t) class->high_bytes);
		sqlite3_bind_int64(stmt, at + 2, llround(class->observed * SHARE_ONE));
	}
}

static int coldness_put(struct wss_history *history, const char *uuid, int level, time_t time,
			const struct wss_cold_report *report, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_COLDNESS_PUT, err);
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 2, level);
	sqlite3_bind_int64(stmt, 3, time - time % level);
	sqlite3_bind_int64(stmt, 4, time);
	sqlite3_bind_int64(stmt, 5,
			   (int64_t)((report->as_of_ns - report->since_ns) / WSS_NS_PER_S));
	sqlite3_bind_int64(stmt, 6, (int64_t)report->granularity_bytes);
	sqlite3_bind_int64(stmt, 7, (int64_t)report->held_bytes);
	sqlite3_bind_int64(stmt, 8, (int64_t)report->absent_bytes);
	bind_ages(stmt, report);
	r = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	return r == SQLITE_DONE ? 0 : wss_db_error(history, "cannot write to it", err);
}

int wss_history_add_coldness(struct wss_history *history, const char *uuid, time_t time,
			     const struct wss_cold_report *report, struct wss_error *err)
{
	int r;

	if (time < 0)
		return 0;
	if (wss_db_log_check(history, err) < 0 ||
	    wss_db_exec(history, "BEGIN IMMEDIATE", "cannot write to it", err) < 0)
		return -1;
	r = coldness_put(history, uuid, WSS_HISTORY_HOUR, time, report, err);
	if (r == 0)
		r = coldness_put(history, uuid, WSS_HISTORY_DAY, time, report, err);
	if (r == 0)
		r = wss_db_exec(history, "COMMIT", "cannot write to it", err);
	/* A full disk may already have caused a rollback. */
	if (r < 0 && !sqlite3_get_autocommit(history->db))
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

/* --- reading --- */

/* Whether a guest's memory could have had these ages. */
static bool class_is_possible(const struct wss_cold_class *class, uint64_t held_bytes)
{
	return class->low_bytes <= class->high_bytes && class->high_bytes <= held_bytes &&
	       class->observed <= 1;
}

static bool report_read(sqlite3_stmt *stmt, struct wss_history_coldness *coldness)
{
	struct wss_cold_report *report = &coldness->report;
	int64_t watched_s = sqlite3_column_int64(stmt, 1);
	bool possible = true;

	*coldness = (struct wss_history_coldness){.time = sqlite3_column_int64(stmt, 0)};
	report->granularity_bytes = wss_db_column_amount(stmt, 2).value;
	report->held_bytes = wss_db_column_amount(stmt, 3).value;
	report->absent_bytes = wss_db_column_amount(stmt, 4).value;
	for (int i = 0; i < WSS_COLD_AGES; i++) {
		struct wss_cold_class *class = &report->ages[i];
		struct wss_amount low = wss_db_column_amount(stmt, GET_AGES + 3 * i);

		class->whole = low.known;
		class->low_bytes = low.value;
		class->high_bytes = wss_db_column_amount(stmt, GET_AGES + 3 * i + 1).value;
		class->observed = (double)wss_db_column_u64(stmt, GET_AGES + 3 * i + 2) / SHARE_ONE;
		possible = possible && class_is_possible(class, report->held_bytes);
	}
	if (watched_s < 0 || watched_s > WATCHED_MAX_S || coldness->time < WSS_TIME_MIN_S ||
	    coldness->time > WSS_TIME_MAX_S)
		return false;
	report->as_of_ns = (uint64_t)watched_s * WSS_NS_PER_S;
	return possible;
}

/* Returns 1, 0 if there is no report, or -1. Impossible reports are damage that affects nothing else. */
static int coldness_get(struct wss_history *history, sqlite3_stmt *stmt,
			struct wss_history_coldness *ret_coldness, struct wss_error *err)
{
	struct wss_history_coldness coldness;
	int step = sqlite3_step(stmt), r = 0;

	if (step == SQLITE_ROW && report_read(stmt, &coldness)) {
		*ret_coldness = coldness;
		r = 1;
	}
	sqlite3_reset(stmt);
	return step == SQLITE_ROW || step == SQLITE_DONE
		       ? r
		       : wss_db_error(history, "cannot read it", err);
}

int wss_history_coldness(struct wss_history *history, const char *uuid,
			 struct wss_history_coldness *ret_coldness, struct wss_error *err)
{
	sqlite3_stmt *stmt;

	stmt = wss_db_statement(history, DB_COLDNESS_NEWEST, err);
	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	return coldness_get(history, stmt, ret_coldness, err);
}

int wss_db_coldness_at(struct wss_history *history, const char *uuid, int level, time_t start,
		       struct wss_history_coldness *ret_coldness, struct wss_error *err)
{
	sqlite3_stmt *stmt;

	stmt = wss_db_statement(history, DB_COLDNESS_AT, err);
	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 2, level);
	sqlite3_bind_int64(stmt, 3, start);
	return coldness_get(history, stmt, ret_coldness, err);
}
