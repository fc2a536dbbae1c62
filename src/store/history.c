/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "store/history.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/stop.h"
#include "store/db.h"

static int64_t to_i64(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t value)
{
	sqlite3_bind_int64(stmt, at, to_i64(value));
}

static void bind_amount(sqlite3_stmt *stmt, int at, struct wss_amount amount)
{
	if (amount.known)
		bind_u64(stmt, at, amount.value);
	else
		sqlite3_bind_null(stmt, at);
}

uint64_t wss_db_column_u64(sqlite3_stmt *stmt, int at)
{
	int64_t value = sqlite3_column_int64(stmt, at);

	return value < 0 ? 0 : (uint64_t)value;
}

struct wss_amount wss_db_column_amount(sqlite3_stmt *stmt, int at)
{
	if (sqlite3_column_type(stmt, at) != SQLITE_INTEGER)
		return (struct wss_amount){ 0 };
	/* Larger than any guest's memory, or negative: treated as unknown. */
	if (sqlite3_column_int64(stmt, at) < 0 || wss_db_column_u64(stmt, at) > WSS_BYTES_MAX)
		return (struct wss_amount){ 0 };
	return wss_amount_of(wss_db_column_u64(stmt, at));
}

static time_t floor_to(time_t when, time_t span)
{
	return when < 0 ? 0 : when - when % span;
}

/* Runs a statement to completion and releases its locks. */
static int run_statement(struct wss_history *history, sqlite3_stmt *stmt,
			 struct wss_error *err)
{
	int r = sqlite3_step(stmt);

	sqlite3_reset(stmt);
	return r == SQLITE_DONE || r == SQLITE_ROW
		       ? 0
		       : wss_db_error(history, "cannot write to it", err);
}

static int id_of(struct wss_history *history, sqlite3_stmt *stmt, int64_t *ret_id,
		 struct wss_error *err)
{
	int r = sqlite3_step(stmt);

	if (r == SQLITE_ROW)
		*ret_id = sqlite3_column_int64(stmt, 0);
	sqlite3_reset(stmt);
	return r == SQLITE_ROW ? 0 : wss_db_error(history, "cannot find the new row", err);
}

static int store_guest(struct wss_history *history, const struct wss_sample *sample,
		       int64_t *ret_id, struct wss_error *err)
{
	sqlite3_stmt *put = wss_db_statement(history, DB_GUEST_PUT, err);
	sqlite3_stmt *get = put ? wss_db_statement(history, DB_GUEST_GET, err) : NULL;

	if (!get)
		return -1;
	sqlite3_bind_text(put, 1, sample->uuid, -1, SQLITE_STATIC);
	sqlite3_bind_text(put, 2, sample->domain, -1, SQLITE_STATIC);
	sqlite3_bind_text(get, 1, sample->uuid, -1, SQLITE_STATIC);
	if (run_statement(history, put, err) < 0)
		return -1;
	return id_of(history, get, ret_id, err);
}

static void bind_series(sqlite3_stmt *stmt, int64_t guest, const struct wss_sample *sample)
{
	sqlite3_bind_int64(stmt, 1, guest);
	sqlite3_bind_text(stmt, 2, sample->method, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, 3, (int)sample->observes);
	bind_u64(stmt, 4, sample->granularity_bytes.value);
	bind_u64(stmt, 5, sample->requested_window_ns);
}

static int store_series(struct wss_history *history, int64_t guest,
			const struct wss_sample *sample, int64_t *ret_id,
			struct wss_error *err)
{
	sqlite3_stmt *put = wss_db_statement(history, DB_SERIES_PUT, err);
	sqlite3_stmt *get = put ? wss_db_statement(history, DB_SERIES_GET, err) : NULL;

	if (!get)
		return -1;
	bind_series(put, guest, sample);
	bind_series(get, guest, sample);
	return run_statement(history, put, err) < 0 ? -1 : id_of(history, get, ret_id, err);
}

static int store_sample(struct wss_history *history, int64_t series,
			const struct wss_sample *sample, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SAMPLE_PUT, err);

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series);
	sqlite3_bind_int64(stmt, 2, sample->wall);
	sqlite3_bind_int(stmt, 3, (int)sample->quality);
	bind_amount(stmt, 4, sample->window_ns);
	bind_amount(stmt, 5, sample->wss_bytes);
	bind_amount(stmt, 6, sample->low_bytes);
	bind_amount(stmt, 7, sample->high_bytes);
	bind_amount(stmt, 8, sample->memory.maximum_bytes);
	bind_amount(stmt, 9, sample->memory.balloon_bytes);
	bind_amount(stmt, 10, sample->memory.rss_bytes);
	bind_amount(stmt, 11, sample->memory.swap_bytes);
	bind_amount(stmt, 12, sample->memory.qemu_bytes);
	bind_amount(stmt, 13, sample->pressure.swap_in_bytes);
	bind_amount(stmt, 14, sample->pressure.major_faults);
	bind_amount(stmt, 15, sample->pressure.oom_kills);
	bind_amount(stmt, 16, sample->pressure.stall_us);
	bind_amount(stmt, 17, sample->pressure.refaults);
	return run_statement(history, stmt, err);
}

static bool time_is_valid(time_t time)
{
	return (int64_t)time >= WSS_TIME_MIN_S && (int64_t)time <= WSS_TIME_MAX_S;
}

/* Whether real samples could have added up to this summary. The file may contain anything. */
static bool summary_is_possible(const struct wss_summary *summary)
{
	return summary->samples <= WSS_SUMMARY_DAY_MAX &&
	       summary->degraded <= WSS_SUMMARY_DAY_MAX &&
	       summary->sizes.total == summary->samples && time_is_valid(summary->first) &&
	       summary->first <= summary->last && time_is_valid(summary->last) &&
	       summary->min_bytes <= WSS_BYTES_MAX && summary->max_bytes <= WSS_BYTES_MAX &&
	       summary->sum_pages <= wss_u64_mul(summary->samples, WSS_BYTES_MAX / 4096);
}

/* Decodes the sizes and the curve in a row of the summaries. Returns 0 or negative errno. */
static int decode_blobs(sqlite3_stmt *stmt, bool with_curve, struct wss_summary *summary)
{
	const uint8_t *sizes = sqlite3_column_blob(stmt, 7);
	const uint8_t *end = sizes ? sizes + sqlite3_column_bytes(stmt, 7) : NULL;
	const uint8_t *curve = with_curve ? sqlite3_column_blob(stmt, 8) : NULL;
	int r;

	if (!sizes || (with_curve && !curve))
		return sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
	r = wss_histogram_decode(&sizes, end, &summary->sizes);
	if (r == 0 && (sizes != end || !summary_is_possible(summary)))
		r = -EINVAL;
	if (r == 0 && with_curve)
		r = wss_summary_decode_curve(curve, (size_t)sqlite3_column_bytes(stmt, 8), summary);
	return r;
}

int wss_db_read_summary(struct wss_history *history, sqlite3_stmt *stmt, bool with_curve,
			struct wss_summary *summary, struct wss_error *err)
{
	int r;

	summary->samples = wss_db_column_u64(stmt, 0);
	summary->degraded = wss_db_column_u64(stmt, 1);
	summary->first = sqlite3_column_int64(stmt, 2);
	summary->last = sqlite3_column_int64(stmt, 3);
	summary->min_bytes = wss_db_column_u64(stmt, 4);
	summary->max_bytes = wss_db_column_u64(stmt, 5);
	summary->sum_pages = wss_db_column_u64(stmt, 6);
	r = decode_blobs(stmt, with_curve, summary);
	if (r == -ENOMEM)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return r == 0 ? 0
		      : wss_error_set(err, WSS_ERR_FAILED, "history %s: a summary is damaged",
				      history->path);
}

static int load_summary(struct wss_history *history, int64_t series, int level, time_t start,
			struct wss_summary *summary, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMARY_GET, err);
	int step, r = 0;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series);
	sqlite3_bind_int(stmt, 2, level);
	sqlite3_bind_int64(stmt, 3, start);
	step = sqlite3_step(stmt);
	if (step == SQLITE_ROW)
		r = wss_db_read_summary(history, stmt, true, summary, err);
	else if (step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}

static int store_summary(struct wss_history *history, int64_t series, int level, time_t start,
			 const struct wss_summary *summary, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMARY_PUT, err);
	size_t size = wss_histogram_encode(&summary->sizes, NULL, 0), curve_size = 0;
	wss_auto_free uint8_t *sizes = malloc(size ? size : 1);
	wss_auto_free uint8_t *curve = wss_summary_encode_curve(summary, &curve_size);

	if (!stmt)
		return -1;
	if (!sizes || !curve)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_histogram_encode(&summary->sizes, sizes, size);
	sqlite3_bind_int64(stmt, 1, series);
	sqlite3_bind_int(stmt, 2, level);
	sqlite3_bind_int64(stmt, 3, start);
	bind_u64(stmt, 4, summary->samples);
	bind_u64(stmt, 5, summary->degraded);
	sqlite3_bind_int64(stmt, 6, summary->first);
	sqlite3_bind_int64(stmt, 7, summary->last);
	bind_u64(stmt, 8, summary->min_bytes);
	bind_u64(stmt, 9, summary->max_bytes);
	bind_u64(stmt, 10, summary->sum_pages);
	sqlite3_bind_blob64(stmt, 11, sizes, size, SQLITE_STATIC);
	sqlite3_bind_blob64(stmt, 12, curve, curve_size, SQLITE_STATIC);
	if (run_statement(history, stmt, err) < 0)
		return -1;
	sqlite3_clear_bindings(stmt);
	return 0;
}

/* Each sample updates its hour and day at once, so that no later job has to. */
static int add_to_summary(struct wss_history *history, int64_t series, int level,
			  const struct wss_sample *sample, struct wss_error *err)
{
	time_t start = floor_to(sample->wall, level);
	struct wss_summary summary = { 0 };
	int r = load_summary(history, series, level, start, &summary, err);

	if (r == 0 && wss_summary_add(&summary, sample) < 0)
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (r == 0)
		r = store_summary(history, series, level, start, &summary, err);
	wss_summary_free(&summary);
	return r;
}

/* Within a transaction. */
static int add_sample(struct wss_history *history, const struct wss_sample *sample,
		      struct wss_error *err)
{
	int64_t guest = 0, series = 0;
	int r = store_guest(history, sample, &guest, err);

	if (r == 0)
		r = store_series(history, guest, sample, &series, err);
	if (r == 0)
		r = store_sample(history, series, sample, err);
	if (r == 0)
		r = add_to_summary(history, series, WSS_HISTORY_HOUR, sample, err);
	if (r == 0)
		r = add_to_summary(history, series, WSS_HISTORY_DAY, sample, err);
	return r;
}

int wss_history_add_all(struct wss_history *history, const struct wss_sample *samples, size_t n,
			struct wss_error *err)
{
	int r;

	for (size_t i = 0; i < n; i++)
		if (!samples[i].uuid[0])
			return wss_error_set(err, WSS_ERR_UNSUPPORTED,
					     "not stored: a guest without a UUID has no history");
	r = wss_db_exec(history, "BEGIN IMMEDIATE", "cannot write to it", err);
	if (r < 0)
		return -1;
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_sample(history, &samples[i], err);
	if (r == 0)
		r = wss_db_exec(history, "COMMIT", "cannot write to it", err);
	/* A full disk may already have caused a rollback. */
	if (r < 0 && !sqlite3_get_autocommit(history->db))
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

int wss_history_add(struct wss_history *history, const struct wss_sample *sample,
		    struct wss_error *err)
{
	return wss_history_add_all(history, sample, 1, err);
}

int wss_history_last(struct wss_history *history, const char *uuid, struct wss_amount *ret_time,
		     struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_LAST, err);
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	r = sqlite3_step(stmt);
	*ret_time = r == SQLITE_ROW ? wss_db_column_amount(stmt, 0) : (struct wss_amount){ 0 };
	sqlite3_reset(stmt);
	if (ret_time->known && !time_is_valid((time_t)ret_time->value))
		*ret_time = (struct wss_amount){ 0 };
	return r == SQLITE_ROW || r == SQLITE_DONE ? 0
						   : wss_db_error(history, "cannot read it", err);
}

/*
 * Binds the parameters for "since": the hour of that time, its day, and the start of the first
 * whole day.
 */
static void bind_since(sqlite3_stmt *stmt, time_t since)
{
	time_t day = floor_to(since, WSS_HISTORY_DAY);

	sqlite3_bind_int64(stmt, 2, floor_to(since, WSS_HISTORY_HOUR));
	sqlite3_bind_int64(stmt, 3, day);
	sqlite3_bind_int64(stmt, 4, day == since ? day : day + WSS_HISTORY_DAY);
}

/* Finds the id of the series that represents a guest. Returns 1, 0 if there is none, or -1. */
static int choose_series(struct wss_history *history, const char *uuid, time_t since,
			 struct wss_history_series *series, int64_t *ret_id,
			 struct wss_error *err)
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
		*ret_id = sqlite3_column_int64(stmt, 0);
		snprintf(series->method, sizeof(series->method), "%s", method ? method : "");
		series->observes = (enum wss_observes)(wss_db_column_u64(stmt, 2) <= WSS_OBSERVES_RESIDENCY
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

static int add_up_summaries(struct wss_history *history, int64_t id, time_t since,
			    bool with_curve, struct wss_summary *total, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMARIES, err);
	int step, r = 0;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	bind_since(stmt, since);
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct wss_summary summary = { 0 };

		r = wss_db_read_summary(history, stmt, with_curve, &summary, err);
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
	int r;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	r = sqlite3_step(stmt);
	series->time = series->summary.last;
	if (r == SQLITE_ROW) {
		if (time_is_valid(sqlite3_column_int64(stmt, 0)))
			series->time = sqlite3_column_int64(stmt, 0);
		series->wss_bytes = wss_db_column_amount(stmt, 1);
		series->maximum_bytes = wss_db_column_amount(stmt, 2);
		series->balloon_bytes = wss_db_column_amount(stmt, 3);
		series->rss_bytes = wss_db_column_amount(stmt, 4);
		series->qemu_bytes = wss_db_column_amount(stmt, 5);
	}
	sqlite3_reset(stmt);
	return r == SQLITE_ROW || r == SQLITE_DONE ? 0
						   : wss_db_error(history, "cannot read it", err);
}

int wss_history_series(struct wss_history *history, const char *uuid, time_t since, unsigned flags,
		       struct wss_history_series *ret_series, struct wss_error *err)
{
	struct wss_history_series series = { .time = 0 };
	int64_t id = 0;
	int r = choose_series(history, uuid, since, &series, &id, err);

	if (r <= 0)
		return r;
	if (add_up_summaries(history, id, since, flags & WSS_HISTORY_CURVE, &series.summary,
			     err) < 0 ||
	    read_newest_sample(history, id, &series, err) < 0) {
		wss_summary_free(&series.summary);
		return -1;
	}
	*ret_series = series;
	return 1;
}

int wss_history_hours(struct wss_history *history, const char *uuid, time_t since,
		      wss_history_hour on_hour, void *opaque, struct wss_error *err)
{
	return wss_history_series_hours(history, uuid, since, since, on_hour, opaque, err);
}

int wss_history_series_hours(struct wss_history *history, const char *uuid, time_t since,
			     time_t hours_since, wss_history_hour on_hour, void *opaque,
			     struct wss_error *err)
{
	struct wss_history_series series;
	sqlite3_stmt *stmt;
	int64_t id = 0;
	int r = choose_series(history, uuid, since, &series, &id, err);

	if (r <= 0)
		return r;
	stmt = wss_db_statement(history, DB_HOURS, err);
	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	sqlite3_bind_int64(stmt, 2, floor_to(hours_since, WSS_HISTORY_HOUR));
	while ((r = sqlite3_step(stmt)) == SQLITE_ROW)
		on_hour(sqlite3_column_int64(stmt, 0), wss_db_column_u64(stmt, 1), opaque);
	sqlite3_reset(stmt);
	return r == SQLITE_DONE ? 0 : wss_db_error(history, "cannot read it", err);
}

static int pass_summary(struct wss_history *history, const char *uuid, time_t start,
			const struct wss_summary *summary, wss_history_on_summary on_summary,
			void *opaque, struct wss_error *err)
{
	struct wss_history_coldness coldness;
	int r = wss_db_coldness_at(history, uuid, WSS_HISTORY_HOUR, start, &coldness, err);

	if (r < 0)
		return -1;
	if (on_summary(start, summary, r ? &coldness.report : NULL, opaque) < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

int wss_history_hour_summaries(struct wss_history *history, const char *uuid,
			       wss_history_on_summary on_summary, void *opaque,
			       struct wss_error *err)
{
	struct wss_history_series series;
	sqlite3_stmt *stmt;
	int64_t id = 0;
	int step = SQLITE_ROW, r = choose_series(history, uuid, 0, &series, &id, err);

	if (r <= 0)
		return r;
	stmt = wss_db_statement(history, DB_HOUR_SUMMARIES, err);
	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, id);
	r = 0;
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct wss_summary summary = { 0 };

		if (wss_stop_requested())
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		else
			r = wss_db_read_summary(history, stmt, true, &summary, err);
		if (r == 0)
			r = pass_summary(history, uuid, sqlite3_column_int64(stmt, 9), &summary,
					 on_summary, opaque, err);
		wss_summary_free(&summary);
	}
	if (r == 0 && step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}
