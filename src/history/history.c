/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "history/db.h"

static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t value)
{
	sqlite3_bind_int64(stmt, at, (int64_t)wss_u64_min(value, INT64_MAX));
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
		return (struct wss_amount){0};
	/* Larger than any guest's memory, or negative: treated as unknown. */
	if (sqlite3_column_int64(stmt, at) < 0 || wss_db_column_u64(stmt, at) > WSS_BYTES_MAX)
		return (struct wss_amount){0};
	return wss_amount_of(wss_db_column_u64(stmt, at));
}

time_t wss_db_floor_time(time_t when, time_t span)
{
	return when < 0 ? 0 : when - when % span;
}

/* Runs a statement to completion and releases its locks. */
static int run_statement(struct wss_history *history, sqlite3_stmt *stmt, struct wss_error *err)
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

static void bind_guest(sqlite3_stmt *stmt, const struct wss_sample *sample)
{
	sqlite3_bind_text(stmt, 1, sample->uuid, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 2, sample->domain, -1, SQLITE_STATIC);
}

static int store_guest(struct wss_history *history, const struct wss_sample *sample,
		       int64_t *ret_id, struct wss_error *err)
{
	sqlite3_stmt *put = wss_db_statement(history, DB_GUEST_PUT, err);
	sqlite3_stmt *get = put ? wss_db_statement(history, DB_GUEST_GET, err) : NULL;

	if (!get)
		return -1;
	bind_guest(put, sample);
	sqlite3_bind_text(get, 1, sample->uuid, -1, SQLITE_STATIC);
	if (run_statement(history, put, err) < 0)
		return -1;
	return id_of(history, get, ret_id, err);
}

/* From that parameter on. */
static void bind_series(sqlite3_stmt *stmt, int at, const struct wss_sample *sample)
{
	sqlite3_bind_text(stmt, at, sample->method, -1, SQLITE_STATIC);
	sqlite3_bind_int(stmt, at + 1, (int)sample->observes);
	bind_u64(stmt, at + 2, sample->granularity_bytes.value);
	bind_u64(stmt, at + 3, sample->requested_window_ns);
}

/* The series of a guest that is known, by the name that it has: true. */
static bool find_series(struct wss_history *history, const struct wss_sample *sample,
			int64_t *ret_id)
{
	struct wss_error unused = WSS_ERROR_INIT;
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SERIES_FIND, &unused);

	if (!stmt)
		return false;
	bind_guest(stmt, sample);
	bind_series(stmt, 3, sample);
	return id_of(history, stmt, ret_id, &unused) == 0;
}

static int store_series(struct wss_history *history, int64_t guest, const struct wss_sample *sample,
			int64_t *ret_id, struct wss_error *err)
{
	sqlite3_stmt *put = wss_db_statement(history, DB_SERIES_PUT, err);
	sqlite3_stmt *get = put ? wss_db_statement(history, DB_SERIES_GET, err) : NULL;

	if (!get)
		return -1;
	sqlite3_bind_int64(put, 1, guest);
	sqlite3_bind_int64(get, 1, guest);
	bind_series(put, 2, sample);
	bind_series(get, 2, sample);
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
	bind_amount(stmt, 13, sample->memory.unreclaimable_bytes);
	bind_amount(stmt, 14, sample->memory.cache_bytes);
	bind_amount(stmt, 15, sample->memory.reserve_bytes);
	return run_statement(history, stmt, err);
}

bool wss_db_time_is_valid(time_t time)
{
	return (int64_t)time >= WSS_TIME_MIN_S && (int64_t)time <= WSS_TIME_MAX_S;
}

/* Whether real samples could have added up to this summary. The file may contain anything. */
static bool summary_is_possible(sqlite3_stmt *stmt, const struct wss_summary *summary)
{
	static const int counts[] = {0, 1, 4, 5, 6};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (sqlite3_column_type(stmt, counts[i]) != SQLITE_INTEGER ||
		    sqlite3_column_int64(stmt, counts[i]) < 0)
			return false;
	return summary->samples <= WSS_SUMMARY_DAY_MAX &&
	       summary->degraded <= WSS_SUMMARY_DAY_MAX &&
	       summary->sizes.total == summary->samples && wss_db_time_is_valid(summary->first) &&
	       summary->first <= summary->last && wss_db_time_is_valid(summary->last);
}

/* Whether a sample was larger than any guest's memory. */
static bool summary_is_too_large(const struct wss_summary *summary)
{
	return summary->min_bytes > WSS_BYTES_MAX || summary->max_bytes > WSS_BYTES_MAX ||
	       summary->sum_pages > wss_u64_mul(summary->samples, WSS_BYTES_MAX / 4096);
}

/* Decodes the sizes and the curve in a row of the summaries. Returns 0 or negative errno; -ERANGE: too large. */
static int decode_blobs(sqlite3_stmt *stmt, bool with_curve, struct wss_summary *summary)
{
	const uint8_t *sizes = sqlite3_column_blob(stmt, 7);
	const uint8_t *end = sizes ? sizes + sqlite3_column_bytes(stmt, 7) : NULL;
	const uint8_t *curve = with_curve ? sqlite3_column_blob(stmt, 8) : NULL;
	int r;

	if (!sizes || (with_curve && !curve))
		return sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM ? -ENOMEM : -EINVAL;
	r = wss_histogram_decode(&sizes, end, &summary->sizes);
	if (r == 0 && (sizes != end || !summary_is_possible(stmt, summary)))
		r = -EINVAL;
	if (r == 0 && summary_is_too_large(summary))
		r = -ERANGE;
	if (r == 0 && summary->min_bytes > summary->max_bytes)
		r = -EINVAL;
	if (r == 0 && with_curve)
		r = wss_summary_decode_curve(curve, (size_t)sqlite3_column_bytes(stmt, 8), summary);
	return r;
}

void wss_db_note_left_out(struct wss_history *history)
{
	int64_t n = 0;

	if (history->left_out_noted)
		return;
	history->left_out_noted = true;
	wss_db_number(history, "SELECT count(*) FROM summary WHERE NOT " DB_SIZES_ARE_POSSIBLE, &n,
		      NULL);
	/* The query does not see sizes within a growth curve. */
	wss_warn("history %s: left out %" PRId64
		 " hours or days with a size above 1 EiB, more than any guest has",
		 history->path, n ? n : 1);
}

void wss_db_note_damaged(struct wss_history *history)
{
	int64_t n = 0;

	if (history->damage_noted)
		return;
	history->damage_noted = true;
	wss_db_number(history, "SELECT count(*) FROM sample WHERE NOT " DB_SAMPLE_IS_POSSIBLE, &n,
		      NULL);
	wss_warn("history %s: left out %" PRId64
		 " damaged sample%s: no guest can have had these figures",
		 history->path, n, wss_plural((uint64_t)n));
}

/* Sets err for a damaged row; no sample changes it any more once its hour or day is over. */
static int damaged_summary(struct wss_history *history, sqlite3_stmt *stmt, struct wss_error *err)
{
	int64_t series = sqlite3_column_int64(stmt, 9), level = sqlite3_column_int64(stmt, 10),
		start = sqlite3_column_int64(stmt, 11);
	char when[WSS_CLOCK_TEXT_MAX];

	wss_clock_format((time_t)start, when);
	return wss_error_set(
		err, WSS_ERR_FAILED,
		"history %s: its summary of the %s from %s is damaged: delete that with: sqlite3 %s 'DELETE FROM summary "
		"WHERE series_id = %" PRId64 " AND level = %" PRId64 " AND start = %" PRId64 "'",
		history->path, level == WSS_HISTORY_DAY ? "day" : "hour", when, history->path,
		series, level, start);
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
	if (r == -ERANGE) {
		wss_summary_free(summary);
		wss_db_note_left_out(history);
		return 1;
	}
	if (r == -ENOMEM)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return r == 0 ? 0 : damaged_summary(history, stmt, err);
}

/* Sums up the stored samples of an hour or day, but for their growth curves, which are not stored. */
static int sum_up_again(struct wss_history *history, int64_t series, int level, time_t start,
			struct wss_summary *summary, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMED_UP, err);
	int step, r = 0;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series);
	sqlite3_bind_int64(stmt, 2, start);
	sqlite3_bind_int64(stmt, 3, start + level);
	while (r == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct wss_sample sample = {
			.wall = sqlite3_column_int64(stmt, 0),
			.quality = sqlite3_column_int64(stmt, 1) == WSS_QUALITY_OK
					   ? WSS_QUALITY_OK
					   : WSS_QUALITY_DEGRADED,
			.wss_bytes = wss_db_column_amount(stmt, 2),
			.low_bytes = wss_db_column_amount(stmt, 3),
		};

		if (sample.wss_bytes.known && wss_summary_add(summary, &sample) < 0)
			r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (r == 0 && step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", err);
	sqlite3_reset(stmt);
	return r;
}

/* A row that is damaged is rebuilt: otherwise the guest's samples would be lost until the hour or day is over. */
static int load_summary(struct wss_history *history, int64_t series, int level, time_t start,
			struct wss_summary *summary, struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, DB_SUMMARY_GET, err);
	struct wss_error why = WSS_ERROR_INIT;
	char when[WSS_CLOCK_TEXT_MAX];
	int step, r = 0;

	if (!stmt)
		return -1;
	sqlite3_bind_int64(stmt, 1, series);
	sqlite3_bind_int(stmt, 2, level);
	sqlite3_bind_int64(stmt, 3, start);
	step = sqlite3_step(stmt);
	if (step == SQLITE_ROW)
		r = wss_db_read_summary(history, stmt, true, summary, &why);
	else if (step != SQLITE_DONE)
		r = wss_db_error(history, "cannot read it", &why);
	sqlite3_reset(stmt);
	if (step == SQLITE_ROW && r < 0 && why.code == WSS_ERR_FAILED) {
		wss_clock_format(start, when);
		wss_warn(
			"history %s: a summary of the %s from %s was damaged: rebuilding it from its samples",
			history->path, level == WSS_HISTORY_DAY ? "day" : "hour", when);
		wss_summary_free(summary);
		r = 1;
	}
	if (r > 0)
		return sum_up_again(history, series, level, start, summary, err);
	if (r < 0 && err)
		*err = why;
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
	time_t start = wss_db_floor_time(sample->wall, level);
	struct wss_summary summary = {0};
	int r = load_summary(history, series, level, start, &summary, err);

	if (r == 0 && wss_summary_add(&summary, sample) < 0)
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (r == 0)
		r = store_summary(history, series, level, start, &summary, err);
	wss_summary_free(&summary);
	return r;
}

/* An hour with a size beyond WSS_BYTES_MAX would be taken for damaged, and the guest's history with it. */
static bool sample_is_possible(const struct wss_sample *sample)
{
	const struct wss_amount sizes[] = {sample->wss_bytes, sample->low_bytes,
					   sample->high_bytes};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].known && sizes[i].value > WSS_BYTES_MAX)
			return false;
	for (size_t i = 0; i < sample->n_curve; i++)
		if (sample->curve[i].bytes > WSS_BYTES_MAX)
			return false;
	return true;
}

/* Within a transaction. All but the first sample of a series find it there. */
static int add_sample(struct wss_history *history, const struct wss_sample *sample,
		      struct wss_error *err)
{
	int64_t guest = 0, series = 0;
	int r = 0;

	if (!sample_is_possible(sample))
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"not stored: the working set is larger than any guest's memory");
	if (!find_series(history, sample, &series)) {
		r = store_guest(history, sample, &guest, err);
		if (r == 0)
			r = store_series(history, guest, sample, &series, err);
	}
	if (r == 0)
		r = add_to_summary(history, series, WSS_HISTORY_HOUR, sample, err);
	if (r == 0)
		r = add_to_summary(history, series, WSS_HISTORY_DAY, sample, err);
	/* Last: a summary that is rebuilt would count it twice. */
	if (r == 0)
		r = store_sample(history, series, sample, err);
	return r;
}

/* Whether the last error says nothing about the sample: it may be stored later, and so may all others. */
static bool failure_will_pass(struct wss_history *history, const struct wss_error *error)
{
	switch (sqlite3_errcode(history->db) & 0xff) {
	case SQLITE_FULL:
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_PROTOCOL:
		return true;
	default:
		return (error->code != WSS_ERR_FAILED && error->code != WSS_ERR_DAMAGED) ||
		       sqlite3_get_autocommit(history->db);
	}
}

static int run_simple(struct wss_history *history, enum wss_db_statement which,
		      struct wss_error *err)
{
	sqlite3_stmt *stmt = wss_db_statement(history, which, err);

	return stmt ? run_statement(history, stmt, err) : -1;
}

/*
 * Within a transaction. 1: added; 0 with err: what the history has of this guest is damaged, or the sample cannot be
 * true, and it left no trace; -1: nothing can be added.
 */
static int try_sample(struct wss_history *history, const struct wss_sample *sample,
		      struct wss_error *err)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (run_simple(history, DB_SAMPLE_BEGIN, err) < 0)
		return -1;
	if (add_sample(history, sample, &error) == 0)
		return run_simple(history, DB_SAMPLE_END, err) < 0 ? -1 : 1;
	if (!failure_will_pass(history, &error) && run_simple(history, DB_SAMPLE_UNDO, NULL) == 0 &&
	    run_simple(history, DB_SAMPLE_END, NULL) == 0) {
		if (err)
			*err = error;
		return 0;
	}
	if (err)
		*err = error;
	return -1;
}

int wss_history_add_all(struct wss_history *history, const struct wss_sample *samples, size_t n,
			size_t *ret_added, const struct wss_sample **ret_left_out,
			struct wss_error *err)
{
	size_t added = 0;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (!samples[i].uuid[0])
			return wss_error_set(err, WSS_ERR_UNSUPPORTED,
					     "not stored: a guest without a UUID has no history");
	if (wss_db_log_check(history, err) < 0 ||
	    wss_db_exec(history, "BEGIN IMMEDIATE", "cannot write to it", err) < 0)
		return -1;
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = try_sample(history, &samples[i], err);
		added += r > 0;
		if (r == 0 && ret_left_out)
			*ret_left_out = &samples[i];
		if (r == 0 && n > 1)
			wss_error_prefix(err, "%s", samples[i].domain);
	}
	if (r >= 0)
		r = wss_db_exec(history, "COMMIT", "cannot write to it", err);
	/* A full disk may already have caused a rollback. */
	if (r < 0 && !sqlite3_get_autocommit(history->db))
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	if (r == 0)
		*ret_added = added;
	return r;
}

int wss_history_add(struct wss_history *history, const struct wss_sample *sample,
		    struct wss_error *err)
{
	size_t added;

	return wss_history_add_all(history, sample, 1, &added, NULL, err) < 0 || !added ? -1 : 0;
}
