/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads stored samples and summaries row by row. Nothing in the file is trusted: see schema.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/stop.h"
#include "history/db.h"

static const char *sample_column_text(sqlite3_stmt *stmt, int at)
{
	const char *text = (const char *)sqlite3_column_text(stmt, at);

	return text ? text : "";
}

/* Returns an enum value from 0 to most; any other number becomes 0. */
static int column_enum(sqlite3_stmt *stmt, int at, int most)
{
	int64_t value = sqlite3_column_int64(stmt, at);

	return value < 0 || value > most ? 0 : (int)value;
}

/* Returns the result of a loop over rows: 0, or -1. */
static int end_of_rows(struct wss_history *history, sqlite3_stmt *stmt, int step,
		       struct wss_error *err)
{
	int r = 0;

	if (step == SQLITE_ROW)
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	else if (step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}

static bool rows_has_next(sqlite3_stmt *stmt, int *ret_step)
{
	*ret_step = sqlite3_step(stmt);
	return *ret_step == SQLITE_ROW && !wss_stop_requested();
}

int wss_history_guests(struct wss_history *history, wss_history_on_guest on_guest, void *opaque,
		       struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_GUESTS, err);
	int step, r = 0;

	if (!stmt)
		return -1;
	while (r == 0 && rows_has_next(stmt, &step))
		r = on_guest(sample_column_text(stmt, 0), sample_column_text(stmt, 1), opaque);
	if (r < 0) {
		sqlite3_reset(stmt);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	return end_of_rows(history, stmt, step, err);
}

/* Properties shared by all samples of a series. */
struct sample_series {
	bool known;
	int64_t id;
	char domain[sizeof((struct wss_sample){0}.domain)];
	char uuid[sizeof((struct wss_sample){0}.uuid)];
	char method[WSS_METHOD_NAME_MAX];
	enum wss_observes observes;
	struct wss_amount granularity_bytes;
	uint64_t window_ns;
};

/* Reads the series with that ID, unless it is the one that is known already. */
static int series_read(struct wss_history *history, int64_t id, struct sample_series *series,
		       struct wss_error *err)
{
	sqlite3_stmt *stmt;
	int step;

	if (series->known && series->id == id)
		return 0;
	stmt = wss_db_statement(history, DB_SERIES_OF, err);
	if (!stmt)
		return -1;
	*series = (struct sample_series){.known = true, .id = id};
	sqlite3_bind_int64(stmt, 1, id);
	step = sqlite3_step(stmt);
	if (step == SQLITE_ROW) {
		snprintf(series->domain, sizeof(series->domain), "%s", sample_column_text(stmt, 0));
		snprintf(series->uuid, sizeof(series->uuid), "%s", sample_column_text(stmt, 1));
		snprintf(series->method, sizeof(series->method), "%s", sample_column_text(stmt, 2));
		series->observes = (enum wss_observes)column_enum(stmt, 3, WSS_OBSERVES_RESIDENCY);
		series->granularity_bytes = wss_db_column_amount(stmt, 4);
		series->window_ns = wss_db_column_u64(stmt, 5);
	}
	sqlite3_reset(stmt);
	return step == SQLITE_ROW || step == SQLITE_DONE
		       ? 0
		       : wss_db_error(history, "cannot read it", err);
}

/* A stored sample; its series is read when the row is passed on. */
struct sample_row {
	int64_t series;
	time_t time;
	enum wss_quality quality;
	struct wss_amount window_ns, wss_bytes, low_bytes, high_bytes;
	struct wss_amount maximum_bytes, balloon_bytes, rss_bytes, swap_bytes, qemu_bytes;
};

static void sample_row_read(sqlite3_stmt *stmt, struct sample_row *row)
{
	*row = (struct sample_row){
		.series = sqlite3_column_int64(stmt, 0),
		.time = sqlite3_column_int64(stmt, 1),
		.quality = (enum wss_quality)column_enum(stmt, 2, WSS_QUALITY_DEGRADED),
		.window_ns = wss_db_column_amount(stmt, 3),
		.wss_bytes = wss_db_column_amount(stmt, 4),
		.low_bytes = wss_db_column_amount(stmt, 5),
		.high_bytes = wss_db_column_amount(stmt, 6),
		.maximum_bytes = wss_db_column_amount(stmt, 7),
		.balloon_bytes = wss_db_column_amount(stmt, 8),
		.rss_bytes = wss_db_column_amount(stmt, 9),
		.swap_bytes = wss_db_column_amount(stmt, 10),
		.qemu_bytes = wss_db_column_amount(stmt, 11),
	};
}

static void sample_from_row(const struct sample_row *row, const struct sample_series *series,
			    struct wss_sample *sample)
{
	memcpy(sample->domain, series->domain, sizeof(sample->domain));
	memcpy(sample->uuid, series->uuid, sizeof(sample->uuid));
	sample->method = series->method;
	sample->observes = series->observes;
	sample->granularity_bytes = series->granularity_bytes;
	sample->requested_window_ns = series->window_ns;
	sample->wall = row->time;
	sample->quality = row->quality;
	sample->window_ns = row->window_ns;
	sample->wss_bytes = row->wss_bytes;
	sample->low_bytes = row->low_bytes;
	sample->high_bytes = row->high_bytes;
	sample->memory.maximum_bytes = row->maximum_bytes;
	sample->memory.balloon_bytes = row->balloon_bytes;
	sample->memory.rss_bytes = row->rss_bytes;
	sample->memory.swap_bytes = row->swap_bytes;
	sample->memory.qemu_bytes = row->qemu_bytes;
}

/* Times are limited to the valid range, so that every row that is found has a valid time. */
static void bind_since(sqlite3_stmt *stmt, const char *uuid, time_t since)
{
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, since < WSS_TIME_MIN_S ? WSS_TIME_MIN_S : since);
}

static void bind_span(sqlite3_stmt *stmt, const char *uuid, time_t since, time_t until)
{
	bind_since(stmt, uuid, since);
	sqlite3_bind_int64(stmt, 3, until > WSS_TIME_MAX_S ? WSS_TIME_MAX_S : until);
}

/*
 * Makes room for another row after n, in an array that has room for *room. Rows are read before any of them is
 * passed on: the caller may wait for the reader of its output, and a query that is open as long keeps SQLite from
 * writing its log back, which then grows without limit.
 */
static void *rows_make_room(void *rows, size_t n, size_t *room, size_t row_size)
{
	void *longer;

	if (n < *room)
		return rows;
	longer = reallocarray(rows, *room ? 2 * *room : 256, row_size);
	if (longer)
		*room = *room ? 2 * *room : 256;
	return longer;
}

/* Reads the rows of a guest into *rows, malloc()ed, which the caller frees even after an error. */
static int sample_rows_read(struct wss_history *history, sqlite3_stmt *stmt,
			    struct sample_row **rows, size_t *ret_n, struct wss_error *err)
{
	bool damaged = false;
	size_t room = 0;
	int step;

	*ret_n = 0;
	while (rows_has_next(stmt, &step)) {
		struct sample_row *longer = rows_make_room(*rows, *ret_n, &room, sizeof(**rows));

		if (!longer) {
			sqlite3_reset(stmt);
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		*rows = longer;
		if (sqlite3_column_int(stmt, 12))
			sample_row_read(stmt, &longer[(*ret_n)++]);
		else
			damaged = true;
	}
	if (damaged)
		wss_db_note_damaged(history);
	return end_of_rows(history, stmt, step, err);
}

int wss_history_samples(struct wss_history *history, const char *uuid, time_t since, time_t until,
			wss_history_on_sample on_sample, void *opaque, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SAMPLES, err);
	struct sample_series series = {.known = false};
	struct sample_row *rows = NULL;
	size_t n = 0;
	int r;

	if (!stmt)
		return -1;
	bind_span(stmt, uuid, since, until);
	r = sample_rows_read(history, stmt, &rows, &n, err);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct wss_sample sample = {.n_curve = 0};

		r = series_read(history, rows[i].series, &series, err);
		if (r == 0 && wss_stop_requested())
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		if (r < 0)
			break;
		sample_from_row(&rows[i], &series, &sample);
		on_sample(&sample, opaque);
	}
	free(rows);
	return r;
}

int wss_history_overhead(struct wss_history *history, const char *uuid, time_t since,
			 struct wss_history_overhead *ret_overhead, struct wss_error *err)
{
	struct wss_history_overhead overhead = {.samples = 0};
	sqlite3_stmt *stmt = wss_db_statement(history, DB_OVERHEAD, err);
	uint64_t at = 0;
	int step, r = 0;

	if (!stmt)
		return -1;
	bind_since(stmt, uuid, since);
	sqlite3_bind_int64(stmt, 3, (int64_t)WSS_BYTES_MAX);
	while (rows_has_next(stmt, &step)) {
		overhead.samples = wss_db_column_u64(stmt, 1);
		if (++at < overhead.samples - overhead.samples / 100)
			continue;
		overhead.p99_bytes = wss_db_column_amount(stmt, 0);
		step = SQLITE_DONE;
		break;
	}
	r = end_of_rows(history, stmt, step, err);
	if (r == 0)
		*ret_overhead = overhead;
	return r;
}

/* A guest's own statistics follow it; a squeeze has proved that it could run with so much, or not with less. */
static int floor_take_squeeze(struct wss_history *history, const char *uuid,
			      struct wss_floor *floor, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SQUEEZE_GET, err);
	struct wss_amount bytes;
	int step;

	if (!stmt)
		return -1;
	bind_since(stmt, uuid, wss_clock_wall_seconds() - WSS_FLOOR_SQUEEZE_S);
	if (rows_has_next(stmt, &step)) {
		bytes = wss_db_column_amount(stmt, 0);
		if (floor->source != WSS_FLOOR_STATISTICS && bytes.known)
			*floor = (struct wss_floor){.source = WSS_FLOOR_SQUEEZE,
						    .bytes = bytes.value};
		else if (sqlite3_column_int(stmt, 1))
			floor->least_bytes = bytes.value;
		step = SQLITE_DONE;
	}
	return end_of_rows(history, stmt, step, err);
}

int wss_history_floor(struct wss_history *history, const char *uuid, time_t since,
		      bool reports_free, struct wss_floor *ret_floor, struct wss_error *err)
{
	struct wss_floor floor = {.source = WSS_FLOOR_UNKNOWN};
	struct wss_amount said, had, resident;
	sqlite3_stmt *stmt;
	int step;

	*ret_floor = floor;
	stmt = wss_db_statement(history, DB_FLOOR, err);
	if (!stmt)
		return -1;
	bind_since(stmt, uuid, since);
	if (rows_has_next(stmt, &step)) {
		said = wss_db_column_amount(stmt, 0);
		had = wss_db_column_amount(stmt, 2);
		resident = wss_db_column_amount(stmt, 3);
		if (said.known)
			floor = (struct wss_floor){.source = WSS_FLOOR_STATISTICS,
						   .bytes = said.value,
						   .time = sqlite3_column_int64(stmt, 1)};
		else if (had.known)
			floor = (struct wss_floor){.source = WSS_FLOOR_BALLOONING,
						   .bytes = had.value};
		else if (resident.known && reports_free)
			floor = (struct wss_floor){.source = WSS_FLOOR_FREE_REPORTING,
						   .bytes = resident.value};
		step = SQLITE_DONE;
	}
	if (end_of_rows(history, stmt, step, err) < 0 ||
	    floor_take_squeeze(history, uuid, &floor, err) < 0)
		return -1;
	*ret_floor = floor;
	return 0;
}

int wss_history_note_squeeze(struct wss_history *history, const char *uuid, uint64_t bytes,
			     bool paged, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SQUEEZE_PUT, err);
	int step;

	if (!stmt)
		return -1;
	sqlite3_bind_text(stmt, 1, uuid, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, (int64_t)bytes);
	sqlite3_bind_int(stmt, 3, paged);
	step = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	return step == SQLITE_DONE ? 0 : wss_db_error(history, "cannot write to it", err);
}

struct span_row {
	int64_t series;
	time_t start;
	struct wss_summary summary;
};

/* Like sample_rows_read(); the caller frees their summaries, too. */
static int span_rows_read(struct wss_history *history, sqlite3_stmt *stmt, struct span_row **rows,
			  size_t *ret_n, struct wss_error *err)
{
	size_t room = 0;
	int step;

	*ret_n = 0;
	while (rows_has_next(stmt, &step)) {
		struct span_row *row = rows_make_room(*rows, *ret_n, &room, sizeof(**rows));
		int r;

		if (!row) {
			sqlite3_reset(stmt);
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		}
		*rows = row;
		row += *ret_n;
		*row = (struct span_row){.series = sqlite3_column_int64(stmt, 9),
					 .start = sqlite3_column_int64(stmt, 11)};
		r = wss_db_read_summary(history, stmt, false, &row->summary, err);
		/* The caller frees this one, too. */
		*ret_n += r <= 0;
		if (r < 0) {
			sqlite3_reset(stmt);
			return -1;
		}
	}
	return end_of_rows(history, stmt, step, err);
}

static int span_pass_on(struct wss_history *history, const char *uuid, int level,
			const struct span_row *row, struct sample_series *series,
			wss_history_on_span on_span, void *opaque, struct wss_error *err)
{
	struct wss_history_span span = {
		.seconds = level, .start = row->start, .summary = row->summary};
	struct wss_history_coldness coldness;
	int r = series_read(history, row->series, series, err);

	if (r == 0)
		r = wss_db_coldness_at(history, uuid, level, row->start, &coldness, err);
	if (r < 0)
		return -1;
	span.cold = r > 0 ? &coldness.report : NULL;
	span.domain = series->domain;
	span.uuid = series->uuid;
	span.method = series->method;
	span.observes = series->observes;
	span.granularity_bytes = series->granularity_bytes;
	span.requested_window_ns = series->window_ns;
	on_span(&span, opaque);
	return 0;
}

int wss_history_spans(struct wss_history *history, const char *uuid, int level, time_t since,
		      time_t until, wss_history_on_span on_span, void *opaque,
		      struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SPANS, err);
	struct sample_series series = {.known = false};
	struct span_row *rows = NULL;
	size_t n = 0;
	int r;

	if (!stmt)
		return -1;
	bind_span(stmt, uuid, since, until);
	sqlite3_bind_int(stmt, 4, level);
	r = span_rows_read(history, stmt, &rows, &n, err);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && wss_stop_requested())
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		if (r == 0)
			r = span_pass_on(history, uuid, level, &rows[i], &series, on_span, opaque,
					 err);
		wss_summary_free(&rows[i].summary);
	}
	free(rows);
	return r;
}
