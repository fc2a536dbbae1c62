/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Retention by age and size. Rows are deleted in batches, each in a short transaction, so that
 * neither other writers nor a stop request wait for a large backlog. A call stops after a few
 * seconds; the next one continues.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/stop.h"
#include "base/units.h"
#include "history/db.h"

#define PRUNE_NS (5 * WSS_NS_PER_S)
/* The log may have a quarter of the size limit, and at least twice what SQLite writes back anyway. */
#define LOG_PART 4
#define LOG_LEAST_BYTES (8ULL << 20)
/* More than this at once is announced. */
#define USUAL_DAYS 7
#define USUAL_PART 4 /* of the size limit, too much */
#define KEEP_MIN_NS (WSS_HISTORY_DAY * WSS_NS_PER_S)
#define KEEP_MAX_NS (36500ULL * 86400 * WSS_NS_PER_S)
#define BATCH_ROWS "1000"
#define BATCH_PAGES "1000"

struct pruning {
	struct wss_history *history;
	uint64_t end_ns; /* wss_clock_now_ns() */
};

static int64_t seconds_before(time_t now, uint64_t age_s)
{
	return now > 0 && (uint64_t)now > age_s ? (int64_t)((uint64_t)now - age_s) : 0;
}

/*
 * The time from which ages count advances by at most a day for this number of hours with
 * samples. Otherwise a clock that jumps far ahead, for example because of an empty battery,
 * would make everything old at once.
 */
#define HOURS_A_DAY 24
static int effective_now(struct wss_history *history, time_t now, time_t *ret_present,
			 struct wss_error *err)
{
	char text[256];
	int64_t hour;

	snprintf(text, sizeof(text),
		 "SELECT DISTINCT start FROM summary WHERE level = 3600 "
		 "AND start BETWEEN 0 AND %" PRId64 " ORDER BY start DESC LIMIT 1 OFFSET %d",
		 (int64_t)now, HOURS_A_DAY - 1);
	if (wss_db_number(history, text, &hour, err) < 0)
		return -1;
	*ret_present = now - hour > WSS_HISTORY_DAY ? (time_t)(hour + WSS_HISTORY_DAY) : now;
	return 0;
}

/* Returns 1 if there is time for another batch, 0 if not, or -1 after a stop request. */
static int pruning_continues(const struct pruning *pruning, struct wss_error *err)
{
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return wss_clock_now_ns() < pruning->end_ns;
}

/*
 * Repeats a statement that deletes a batch. Returns 1 once nothing is left to delete, 0 if
 * time is up, or -1.
 */
static int delete_in_batches(const struct pruning *pruning, const char *batch,
			     struct wss_error *err)
{
	int r;

	while ((r = pruning_continues(pruning, err)) > 0) {
		if (wss_db_exec(pruning->history, batch, "cannot delete old samples", err) < 0)
			return -1;
		if (!sqlite3_changes(pruning->history->db))
			return 1;
	}
	return r;
}

/* Does the same for rows of a table that meet a condition, which ends with a time. */
static int delete_until(const struct pruning *pruning, const char *table, const char *condition,
			int64_t time, struct wss_error *err)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE %s %" PRId64
		 " LIMIT " BATCH_ROWS ")",
		 table, table, condition, time);
	return delete_in_batches(pruning, text, err);
}

/* A limit that was lowered by mistake shows in the log, not only in what is missing. */
static int announce_old(struct wss_history *history, uint64_t days_s, time_t now,
			struct wss_error *err)
{
	char text[128], keep[24];
	int64_t days;

	snprintf(
		text, sizeof(text),
		"SELECT count(DISTINCT start) FROM summary WHERE level = 86400 AND start <= %" PRId64,
		seconds_before(now, days_s + WSS_HISTORY_DAY));
	if (wss_db_number(history, text, &days, err) < 0)
		return -1;
	if (days <= USUAL_DAYS)
		return 1;
	wss_duration_format_typed(days_s * WSS_NS_PER_S, keep, sizeof(keep));
	wss_log(WSS_LOG_WARNING,
		"history %s: deleting %" PRId64 " days of data, which are older than keep = %s",
		history->path, days, keep);
	return 1;
}

static int forget_old(const struct pruning *pruning, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err)
{
	int r = delete_until(pruning, "sample", "time <", seconds_before(now, limits->samples_s),
			     err);

	if (r > 0)
		r = delete_until(pruning, "balloon", "done = 1 AND time <",
				 seconds_before(now, limits->days_s), err);
	if (r > 0)
		r = delete_until(pruning, "squeeze", "time <", seconds_before(now, limits->days_s),
				 err);
	if (r > 0)
		r = delete_until(pruning, "summary", "level = 3600 AND start <=",
				 seconds_before(now, limits->hours_s + WSS_HISTORY_HOUR), err);
	if (r > 0)
		r = delete_until(pruning, "summary", "level = 86400 AND start <=",
				 seconds_before(now, limits->days_s + WSS_HISTORY_DAY), err);
	if (r > 0)
		r = delete_until(pruning, "coldness", "level = 3600 AND start <=",
				 seconds_before(now, limits->hours_s + WSS_HISTORY_HOUR), err);
	if (r > 0)
		r = delete_until(pruning, "coldness", "level = 86400 AND start <=",
				 seconds_before(now, limits->days_s + WSS_HISTORY_DAY), err);
	return r;
}

/* Guests that have no data left. */
static int forget_empty(const struct pruning *pruning, struct wss_error *err)
{
	int r = delete_in_batches(
		pruning,
		"DELETE FROM series WHERE id IN (SELECT id FROM series WHERE "
		"NOT EXISTS (SELECT 1 FROM summary WHERE series_id = series.id) AND "
		"NOT EXISTS (SELECT 1 FROM sample WHERE series_id = series.id) "
		"LIMIT " BATCH_ROWS ")",
		err);

	if (r > 0)
		r = delete_in_batches(pruning,
				      "DELETE FROM guest WHERE id IN (SELECT id FROM guest WHERE "
				      "NOT EXISTS (SELECT 1 FROM series WHERE guest_id = guest.id) "
				      "LIMIT " BATCH_ROWS ")",
				      err);
	return r;
}

/*
 * Returns the bytes in use, not the size of the file, because free pages are released at the
 * end.
 */
static int used_bytes(struct wss_history *history, int64_t *ret_bytes, struct wss_error *err)
{
	return wss_db_number(
		history,
		"SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
		"pragma_freelist_count, pragma_page_size",
		ret_bytes, err);
}

/*
 * What is deleted for the sake of the size, in this order: rows that lie ahead of the present, the farthest first,
 * because they do not count before their time; then the oldest rows of the finest level that has any.
 */
static const struct forget_step {
	const char *table, *condition, *order; /* ?1 is the present */
} forget_steps[] = {
	{"sample", "time > ?1", "time DESC"},	 {"coldness", "time > ?1", "time DESC"},
	{"summary", "start > ?1", "start DESC"}, {"sample", "true", "time, id"},
	{"coldness", "level = 3600", "start"},	 {"summary", "level = 3600", "start"},
	{"coldness", "true", "start"},		 {"summary", "true", "start"},
};

/*
 * Deletes a batch: about an eighth of a small table, so that it is not emptied at once. Returns 1, or 0 if the step
 * has no rows left.
 */
static int forget_some(struct wss_history *history, const struct forget_step *step, time_t now,
		       struct wss_error *err)
{
	sqlite3_stmt *stmt = NULL;
	char text[320];
	int r;

	snprintf(
		text, sizeof(text),
		"DELETE FROM %s WHERE rowid IN (SELECT rowid FROM %s WHERE %s ORDER BY %s LIMIT (SELECT "
		"min(" BATCH_ROWS
		", count(*) / 8 + 1) FROM (SELECT 1 FROM %s WHERE %s LIMIT 8000)))",
		step->table, step->table, step->condition, step->order, step->table,
		step->condition);
	r = sqlite3_prepare_v2(history->db, text, -1, &stmt, NULL);
	if (r == SQLITE_OK) {
		/* Most steps have no such parameter. */
		sqlite3_bind_int64(stmt, 1, now);
		r = sqlite3_step(stmt);
	}
	sqlite3_finalize(stmt);
	if (r != SQLITE_DONE)
		return wss_db_error(history, "cannot shrink it", err);
	return sqlite3_changes(history->db) > 0;
}

#define STEPS_OF_THE_FUTURE 3 /* of forget_steps: these come first */

/*
 * If most hours lie ahead of the present, the clock is behind, not the history ahead: what lies ahead is then not
 * deleted first, as it is the newest. Returns 1 or 0, or -1.
 */
static int clock_is_behind(struct wss_history *history, time_t now, struct wss_error *err)
{
	char text[128];
	int64_t behind;

	snprintf(text, sizeof(text),
		 "SELECT 2 * sum(start > %" PRId64 ") > count(*) FROM summary WHERE level = 3600",
		 (int64_t)now);
	return wss_db_number(history, text, &behind, err) < 0 ? -1 : behind > 0;
}

static void announce_size(const struct wss_history *history, uint64_t bytes, uint64_t max_bytes)
{
	char used[16], limit[16];

	if (bytes <= max_bytes || bytes - max_bytes <= max_bytes / USUAL_PART)
		return;
	wss_size_format(bytes, used, sizeof(used));
	wss_size_format(max_bytes, limit, sizeof(limit));
	wss_log(WSS_LOG_WARNING,
		"history %s: deleting data until its %s fit into %s (keep-size, less its log)",
		history->path, used, limit);
}

/* Returns 1 once the history fits, or has no rows left; 0 if the time is up; or -1. */
static int forget_until_it_fits(const struct pruning *pruning, uint64_t max_bytes, time_t now,
				struct wss_error *err)
{
	const size_t n = sizeof(forget_steps) / sizeof(forget_steps[0]);
	size_t step = 0;
	int64_t bytes;
	int r;

	if (used_bytes(pruning->history, &bytes, err) < 0)
		return -1;
	announce_size(pruning->history, (uint64_t)bytes, max_bytes);
	if ((uint64_t)bytes > max_bytes) {
		r = clock_is_behind(pruning->history, now, err);
		if (r < 0)
			return -1;
		if (r)
			wss_log(WSS_LOG_WARNING,
				"history %s: most of it lies in the future: is the clock behind? Deleting the oldest data first",
				pruning->history->path);
		step = r ? STEPS_OF_THE_FUTURE : 0;
	}
	while ((r = pruning_continues(pruning, err)) > 0) {
		if (used_bytes(pruning->history, &bytes, err) < 0)
			return -1;
		if ((uint64_t)bytes <= max_bytes || step == n)
			return 1;
		r = forget_some(pruning->history, &forget_steps[step], now, err);
		if (r < 0)
			return -1;
		step += !r;
	}
	return r;
}

/* Returns free pages to the file system. A file without auto_vacuum keeps them. */
static int shrink_file(const struct pruning *pruning, struct wss_error *err)
{
	static const char free_pages[] = "SELECT freelist_count FROM pragma_freelist_count";
	struct wss_history *history = pruning->history;
	int64_t before = INT64_MAX, pages;
	int r;

	while ((r = pruning_continues(pruning, err)) > 0) {
		if (wss_db_number(history, free_pages, &pages, err) < 0)
			return -1;
		if (!pages || pages >= before)
			return 0;
		before = pages;
		if (wss_db_exec(history, "PRAGMA incremental_vacuum(" BATCH_PAGES ")",
				"cannot shrink it", err) < 0)
			return -1;
	}
	return r;
}

/* Writes the log back. Returns what the rows may take: the limit without a log that a reader keeps from that. */
static uint64_t limit_beside_log(struct wss_history *history, uint64_t max_bytes)
{
	wss_db_log_write_back(history);
	return max_bytes - wss_u64_min(wss_db_log_bytes(history), max_bytes / 2);
}

int wss_history_prune(struct wss_history *history, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err)
{
	struct pruning pruning = {history, wss_clock_now_ns() + PRUNE_NS};
	uint64_t max_bytes = limit_beside_log(history, limits->max_bytes);
	time_t present = now;
	int r;

	history->log_max_bytes = wss_u64_max(limits->max_bytes / LOG_PART, LOG_LEAST_BYTES);
	if (wss_db_log_check(history, err) < 0)
		return -1;
	wss_db_set_interruptible(history, true);
	r = effective_now(history, now, &present, err) < 0 ? -1 : 1;
	if (r > 0)
		r = announce_old(history, limits->days_s, present, err);
	if (r > 0)
		r = forget_old(&pruning, limits, present, err);
	if (r > 0)
		r = forget_until_it_fits(&pruning, max_bytes, now, err);
	if (r > 0)
		r = forget_empty(&pruning, err);
	if (r > 0)
		r = shrink_file(&pruning, err);
	wss_db_set_interruptible(history, false);
	return r < 0 ? -1 : 0;
}

int wss_history_forget(struct wss_history *history, const char *uuid, struct wss_error *err)
{
	char *text = sqlite3_mprintf("BEGIN IMMEDIATE; "
				     "DELETE FROM squeeze WHERE uuid = %Q; "
				     "DELETE FROM balloon WHERE uuid = %Q AND done <> 0; "
				     "DELETE FROM guest WHERE uuid = %Q; "
				     "COMMIT",
				     uuid, uuid, uuid);
	int r;

	if (!text)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	r = wss_db_exec(history, text, "cannot delete a guest", err);
	sqlite3_free(text);
	if (r < 0 && !sqlite3_get_autocommit(history->db))
		wss_db_exec(history, "ROLLBACK", "cannot roll back", NULL);
	return r;
}

int wss_history_keep_parse(const char *value, const char *what, struct wss_history_limits *limits,
			   struct wss_error *err)
{
	const struct wss_history_limits defaults = WSS_HISTORY_LIMITS_DEFAULT;
	uint64_t ns;

	if (wss_duration_parse(value, KEEP_MAX_NS, what, &ns, err) < 0)
		return -1;
	/* What is deleted is lost, and "90" and "3M" probably mean days and months, not seconds and minutes. */
	if (ns < KEEP_MIN_NS)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"%s: '%s' is less than a day: give days, such as 90d (a number without a unit is seconds, m is minutes)",
			what, value);
	limits->days_s = ns / WSS_NS_PER_S;
	limits->hours_s = wss_u64_min(defaults.hours_s, limits->days_s);
	limits->samples_s = wss_u64_min(defaults.samples_s, limits->days_s);
	return 0;
}
