/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads what the history has of one guest: its newest sample, the series that represents it, and its hours. */
#include <stdio.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/stop.h"
#include "history/db.h"

int wss_history_last(struct wss_history *history, const char *uuid, struct wss_amount *ret_time,
		     struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_LAST, err);
	bool damaged;
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	r = sqlite3_step(stmt);
	*ret_time = r == SQLITE_ROW ? wss_db_column_amount(stmt, 0) : (struct wss_amount){0};
	damaged = r == SQLITE_ROW && sqlite3_column_int64(stmt, 1);
	sqlite3_reset(stmt);
	if (damaged)
		wss_db_note_damaged(history);
	if (ret_time->known && !wss_db_time_is_valid((time_t)ret_time->value))
		*ret_time = (struct wss_amount){0};
	return r == SQLITE_ROW || r == SQLITE_DONE ? 0
						   : wss_db_error(history, "cannot read it", err);
}

int wss_history_count_older(struct wss_history *history, const char *uuid, int level, time_t time,
			    uint64_t *ret_n, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_COUNT_OLDER, err);
	int step;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, time);
	sqlite3_bind_int(stmt, 3, level);
	step = sqlite3_step(stmt);
	*ret_n = step == SQLITE_ROW ? wss_db_column_u64(stmt, 0) : 0;
	sqlite3_reset(stmt);
	return step == SQLITE_ROW ? 0 : wss_db_error(history, "cannot read it", err);
}

/*
 * Binds the parameters for "since": the hour of that time, its day, and the start of the first
 * whole day.
 */
static void bind_since(sqlite3_stmt *stmt, time_t since)
{
	time_t day = wss_db_floor_time(since, WSS_HISTORY_DAY);

	sqlite3_bind_int64(stmt, 2, wss_db_floor_time(since, WSS_HISTORY_HOUR));
	sqlite3_bind_int64(stmt, 3, day);
	sqlite3_bind_int64(stmt, 4, day == since ? day : day + WSS_HISTORY_DAY);
}

/* Finds the series that represents a guest. Returns 1, 0 if there is none, or -1. */
static int choose_series(struct wss_history *history, const char *uuid, time_t since,
			 struct wss_history_series *series, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_CHOOSE, err);
	const char *method;
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	bind_since(stmt, since);
	r = sqlite3_step(stmt);
	if (r == SQLITE_ROW) {
		method = (const char *)sqlite3_column_text(stmt, 1);
		series->id = sqlite3_column_int64(stmt, 0);
		snprintf(series->method, sizeof(series->method), "%s", method ? method : "");
		series->observes =
			(enum wss_observes)(wss_db_column_u64(stmt, 2) <= WSS_OBSERVES_RESIDENCY
						    ? wss_db_column_u64(stmt, 2)
						    : 0);
		series->granularity_bytes = wss_db_column_u64(stmt, 3);
		series->window_ns = wss_db_column_u64(stmt, 4);
		series->other_windows = wss_u64_from_double(sqlite3_column_double(stmt, 5));
	}
	sqlite3_reset(stmt);
	if (r != SQLITE_ROW && r != SQLITE_DONE)
		return wss_db_error(history, "cannot read it", err);
	return r == SQLITE_ROW;
}

static int add_up_summaries(struct wss_history *history, int64_t id, time_t since, bool with_curve,
			    struct wss_summary *total, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMARIES, err);
	int step, r = 0;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	bind_since(stmt, since);
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct wss_summary summary = {0};

		/* An empty one, which is left out, adds nothing. */
		r = wss_db_read_summary(history, stmt, with_curve, &summary, err) < 0 ? -1 : 0;
		if (r == 0 && wss_summary_merge(total, &summary) < 0)
			r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		wss_summary_free(&summary);
	}
	if (r == 0 && step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}

static int read_newest_sample(struct wss_history *history, int64_t id,
			      struct wss_history_series *series, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_NEWEST, err);
	time_t now = wss_clock_wall_seconds();
	bool damaged = false;
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW && !sqlite3_column_int(stmt, 8))
		damaged = true;
	series->time = series->summary.last < now ? series->summary.last : now;
	if (r == SQLITE_ROW) {
		if (wss_db_time_is_valid(sqlite3_column_int64(stmt, 0)))
			series->time = sqlite3_column_int64(stmt, 0);
		series->wss_bytes = wss_db_column_amount(stmt, 1);
		series->maximum_bytes = wss_db_column_amount(stmt, 2);
		series->balloon_bytes = wss_db_column_amount(stmt, 3);
		series->rss_bytes = wss_db_column_amount(stmt, 4);
		series->qemu_bytes = wss_db_column_amount(stmt, 5);
		series->unreclaimable_bytes = wss_db_column_amount(stmt, 6);
		series->reserve_bytes = wss_db_column_amount(stmt, 7);
	}
	sqlite3_reset(stmt);
	if (damaged)
		wss_db_note_damaged(history);
	return r == SQLITE_ROW || r == SQLITE_DONE ? 0
						   : wss_db_error(history, "cannot read it", err);
}

int wss_history_series(struct wss_history *history, const char *uuid, time_t since, unsigned flags,
		       struct wss_history_series *ret_series, struct wss_error *err)
{
	struct wss_history_series series = {.time = 0};
	int r = choose_series(history, uuid, since, &series, err);

	if (r <= 0)
		return r;
	if (add_up_summaries(history, series.id, since, flags & WSS_HISTORY_CURVE, &series.summary,
			     err) < 0 ||
	    read_newest_sample(history, series.id, &series, err) < 0) {
		wss_summary_free(&series.summary);
		return -1;
	}
	if (!series.summary.samples && !series.summary.degraded) {
		wss_summary_free(&series.summary);
		return 0;
	}
	*ret_series = series;
	return 1;
}

static int read_maxima(struct wss_history *history, const struct wss_history_series *series,
		       int level, time_t since, wss_history_hour on_hour, void *opaque,
		       struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_HOURS, err);
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series->id);
	sqlite3_bind_int64(stmt, 2, wss_db_floor_time(since, level));
	sqlite3_bind_int(stmt, 3, level);
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (sqlite3_column_int(stmt, 2))
			on_hour(sqlite3_column_int64(stmt, 0), wss_db_column_u64(stmt, 1), opaque);
		else
			wss_db_note_left_out(history);
	}
	sqlite3_reset(stmt);
	return r == SQLITE_DONE ? 0 : wss_db_error(history, "cannot read it", err);
}

int wss_history_hours(struct wss_history *history, const struct wss_history_series *series,
		      time_t since, wss_history_hour on_hour, void *opaque, struct wss_error *err)
{
	return read_maxima(history, series, WSS_HISTORY_HOUR, since, on_hour, opaque, err);
}

int wss_history_days(struct wss_history *history, const struct wss_history_series *series,
		     time_t since, wss_history_hour on_day, void *opaque, struct wss_error *err)
{
	return read_maxima(history, series, WSS_HISTORY_DAY, since, on_day, opaque, err);
}

int wss_history_hour_summaries(struct wss_history *history, const char *uuid,
			       wss_history_on_summary on_summary, void *opaque,
			       struct wss_error *err)
{
	struct wss_history_series series;
	sqlite3_stmt *stmt;
	int step = SQLITE_ROW, r = choose_series(history, uuid, 0, &series, err);

	if (r <= 0)
		return r;
	stmt = wss_db_statement(history, DB_HOUR_SUMMARIES, err);
	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series.id);
	r = 0;
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct wss_summary summary = {0};

		if (wss_stop_requested())
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		else
			r = wss_db_read_summary(history, stmt, true, &summary, err);
		if (r > 0)
			r = 0;
		else if (r == 0 && on_summary(sqlite3_column_int64(stmt, 11), &summary, opaque) < 0)
			r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		wss_summary_free(&summary);
	}
	if (r == 0 && step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}
