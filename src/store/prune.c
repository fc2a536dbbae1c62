/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Retention, by age and by size. */
#include <inttypes.h>
#include <stdio.h>

#include "store/db.h"

static int64_t seconds_before(time_t now, uint64_t age_s)
{
	return now > 0 && (uint64_t)now > age_s ? (int64_t)((uint64_t)now - age_s) : 0;
}

/*
 * The time that ages are counted from. A clock that jumps far ahead, for an hour or because of
 * a dead battery, would make everything old at once: this time moves on by a day at most for
 * each 24 hours in which there were samples.
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

static int forget_old(struct wss_history *history, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "BEGIN IMMEDIATE;"
		 "DELETE FROM sample WHERE time < %" PRId64 ";"
		 "DELETE FROM balloon WHERE done = 1 AND time < %" PRId64 ";"
		 "DELETE FROM summary WHERE level = 3600 AND start <= %" PRId64 ";"
		 "DELETE FROM summary WHERE level = 86400 AND start <= %" PRId64 ";"
		 "COMMIT",
		 seconds_before(now, limits->samples_s), seconds_before(now, limits->days_s),
		 seconds_before(now, limits->hours_s + WSS_HISTORY_HOUR),
		 seconds_before(now, limits->days_s + WSS_HISTORY_DAY));
	return wss_db_exec(history, text, "cannot delete old samples", err);
}

/* Guests without any data left. */
static int forget_empty(struct wss_history *history, struct wss_error *err)
{
	return wss_db_exec(
		history,
		"BEGIN IMMEDIATE;"
		"DELETE FROM series WHERE id NOT IN (SELECT series_id FROM summary) "
		"	AND id NOT IN (SELECT series_id FROM sample);"
		"DELETE FROM guest WHERE id NOT IN (SELECT guest_id FROM series);"
		"COMMIT",
		"cannot delete empty series", err);
}

/* Bytes in use, not the size of the file: free pages are returned at the end. */
static int used_bytes(struct wss_history *history, int64_t *ret_bytes, struct wss_error *err)
{
	return wss_db_number(history,
			     "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, "
			     "pragma_freelist_count, pragma_page_size",
			     ret_bytes, err);
}

/*
 * Deletes an eighth of the oldest rows at the finest level that has any. Returns 1, or 0 if
 * nothing is left.
 */
static int forget_some(struct wss_history *history, struct wss_error *err)
{
	static const char *const steps[] = {
		"DELETE FROM sample WHERE id IN (SELECT id FROM sample ORDER BY time, id "
		"LIMIT (SELECT count(*) / 8 + 1 FROM sample))",
		"DELETE FROM summary WHERE rowid IN (SELECT rowid FROM summary WHERE level = 3600 "
		"ORDER BY start LIMIT (SELECT count(*) / 8 + 1 FROM summary WHERE level = 3600))",
		"DELETE FROM summary WHERE rowid IN (SELECT rowid FROM summary "
		"ORDER BY start LIMIT (SELECT count(*) / 8 + 1 FROM summary))",
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (wss_db_exec(history, steps[i], "cannot shrink it", err) < 0)
			return -1;
		if (sqlite3_changes(history->db) > 0)
			return 1;
	}
	return 0;
}

int wss_history_prune(struct wss_history *history, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err)
{
	int64_t bytes = 0;
	int r = effective_now(history, now, &now, err);

	if (r >= 0)
		r = forget_old(history, limits, now, err);

	while (r >= 0 && (r = used_bytes(history, &bytes, err)) == 0 &&
	       (uint64_t)bytes > limits->max_bytes) {
		r = forget_some(history, err);
		if (r == 0)
			break;
	}
	if (r >= 0)
		r = forget_empty(history, err);
	if (r >= 0)
		r = wss_db_exec(history, "PRAGMA incremental_vacuum", "cannot shrink it", err);
	if (r < 0 && !sqlite3_get_autocommit(history->db))
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	return r < 0 ? -1 : 0;
}
