/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/db.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"

#define VALUE_MAX (16 << 20)
/* Until wss_history_prune() sets it. SQLite writes a log back that has 4 MiB. */
#define LOG_MAX_BYTES (64ULL << 20)
/* How long to wait for a reader that keeps the log from being written back. */
#define LOG_PATIENCE_MS 500
#define BUSY_STEP_MS 10
/* How long another process's transaction may still delay this one after a stop request. */
#define STOP_MS 1000
/* Number of SQLite instructions between two checks of the stop flag: about a millisecond. */
#define STEPS_BETWEEN_LOOKS 10000

/*
 * The present, which wss_db_statement() binds. A row that lies ahead of it was written before the clock was set back:
 * it counts again once that time has come. Only what the user asks for by time (DB_SAMPLES, DB_SPANS) shows it earlier.
 */
#define NOW_AT 30
#define NOW "?30"

/*
 * Whether a summary has nothing of the future. The hour, or the day, of the present may: of a day its hours count instead.
 * One whose last window lies outside of its own time is damaged, which whoever reads it shall say.
 */
#define IS_PAST "start <= " NOW " AND NOT (last > " NOW " AND last < start + level)"

/*
 * Condition for the summaries of a series since ?2, the start of an hour: hours until the end
 * of that day (?3 is its start) if they still exist, and whole days from ?4 on; the hours of the present day if
 * that has rows of the future. The first line lets SQLite use the index.
 */
#define IN_SPAN                                                                            \
	"level IN (3600, 86400) AND start >= ?3 AND " IS_PAST " AND "                      \
	"((level = 86400 AND start >= ?4) OR "                                             \
	"(level = 3600 AND start >= ?2 AND start < ?4) OR "                                \
	"(level = 3600 AND start >= ?2 AND start >= " NOW " - " NOW " % 86400 AND EXISTS " \
	"(SELECT 1 FROM summary AS day WHERE day.series_id = summary.series_id AND "       \
	"day.level = 86400 AND day.start = " NOW " - " NOW " % 86400 AND "                 \
	"day.last > " NOW " AND day.last < day.start + day.level)) OR "                    \
	"(level = 86400 AND start = ?3 AND NOT EXISTS (SELECT 1 FROM summary AS hour "     \
	"WHERE hour.series_id = summary.series_id AND hour.level = 3600 "                  \
	"AND hour.start >= ?3 AND hour.start < ?4)))"

/* A row of the table summary as wss_db_read_summary() takes it; SUMMARY_SIZES: without the curve. */
#define SUMMARY_FIGURES "samples, degraded, first, last, min_bytes, max_bytes, sum_pages, sizes"
#define SUMMARY_ROW SUMMARY_FIGURES ", curve, series_id, level, start"
#define SUMMARY_SIZES SUMMARY_FIGURES ", NULL, series_id, level, start"

/* In the order of enum wss_cold_age. */
#define COLD_AGES                                                                          \
	"low_2m, high_2m, observed_2m, low_10m, high_10m, observed_10m, low_1h, high_1h, " \
	"observed_1h, low_24h, high_24h, observed_24h, low_never, high_never, observed_never"
#define COLD_REPORT "time, watched_s, granularity_bytes, held_bytes, absent_bytes, " COLD_AGES
/* No guest has more than WSS_BYTES_MAX: a report on more must not hide an older one. */
#define COLD_SIZES \
	"granularity_bytes, held_bytes, absent_bytes, high_2m, high_10m, high_1h, high_24h, high_never"
#define COLD_IS_POSSIBLE "min(" COLD_SIZES ") >= 0 AND max(" COLD_SIZES ") <= 1 << 60"

static const char *const sql[DB_STATEMENTS] = {
	[DB_SAMPLE_BEGIN] = "SAVEPOINT one_sample",
	[DB_SAMPLE_END] = "RELEASE one_sample",
	[DB_SAMPLE_UNDO] = "ROLLBACK TO one_sample",
	[DB_GUEST_PUT] = "INSERT INTO guest (uuid, name) VALUES (?1, ?2) "
			 "ON CONFLICT (uuid) DO UPDATE SET name = ?2 WHERE name <> ?2",
	[DB_GUEST_GET] = "SELECT id FROM guest WHERE uuid = ?1",
	[DB_SERIES_PUT] = "INSERT OR IGNORE INTO series "
			  "(guest_id, method, observes, granularity_bytes, window_ns) "
			  "VALUES (?1, ?2, ?3, ?4, ?5)",
	[DB_SERIES_GET] = "SELECT id FROM series WHERE guest_id = ?1 AND method = ?2 AND "
			  "observes = ?3 AND granularity_bytes = ?4 AND window_ns = ?5",
	[DB_SERIES_FIND] = "SELECT series.id FROM guest JOIN series ON guest_id = guest.id WHERE "
			   "uuid = ?1 AND name = ?2 AND method = ?3 AND observes = ?4 AND "
			   "granularity_bytes = ?5 AND window_ns = ?6",
	[DB_SAMPLE_PUT] =
		"INSERT INTO sample (series_id, time, quality, window_ns, wss_bytes, "
		"low_bytes, high_bytes, maximum_bytes, balloon_bytes, rss_bytes, "
		"swap_bytes, qemu_bytes, unreclaimable_bytes, cache_bytes, reserve_bytes) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
	[DB_SUMMARY_GET] = "SELECT " SUMMARY_ROW " FROM summary "
			   "WHERE series_id = ?1 AND level = ?2 AND start = ?3",
	/* A row that stays in its place costs half as much as one that is replaced, and no change of an index. */
	[DB_SUMMARY_PUT] =
		"INSERT INTO summary (series_id, level, start, samples, "
		"degraded, first, last, min_bytes, max_bytes, sum_pages, sizes, curve) "
		"VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) "
		"ON CONFLICT (series_id, level, start) DO UPDATE SET samples = ?4, degraded = ?5, first = ?6, "
		"last = ?7, min_bytes = ?8, max_bytes = ?9, sum_pages = ?10, sizes = ?11, curve = ?12",
	[DB_SUMMED_UP] = "SELECT time, quality, wss_bytes, low_bytes FROM sample "
			 "WHERE series_id = ?1 AND time >= ?2 AND time < ?3",
	/* And the number of samples that are damaged. */
	[DB_LAST] = "SELECT (SELECT time FROM sample WHERE id = newest), damaged FROM "
		    "(SELECT max(sample.id) FILTER (WHERE " DB_SAMPLE_IS_POSSIBLE ") AS newest, "
		    "count(*) FILTER (WHERE NOT " DB_SAMPLE_IS_POSSIBLE ") AS damaged FROM sample "
		    "JOIN series ON series.id = series_id JOIN guest ON guest.id = guest_id "
		    "WHERE uuid = ?1 AND time <= " NOW ")",
	[DB_COUNT_OLDER] =
		"SELECT CASE ?3 WHEN 0 THEN "
		"(SELECT count(*) FROM guest JOIN series ON guest_id = guest.id "
		"JOIN sample ON series_id = series.id WHERE uuid = ?1 AND time < ?2 AND " DB_SAMPLE_IS_POSSIBLE
		") ELSE "
		"(SELECT count(*) FROM guest JOIN series ON guest_id = guest.id "
		"JOIN summary ON series_id = series.id WHERE uuid = ?1 AND level = ?3 AND "
		"start <= ?2 - ?3) END",
	/*
	 * Also counts the windows of the guest's other series. A series of writes (observes 1)
	 * is the last choice, but for one of which everything is left out.
	 */
	[DB_CHOOSE] = "SELECT series.id, method, observes, granularity_bytes, window_ns, "
		      "sum(total(samples + degraded)) OVER () - total(samples + degraded) "
		      "FROM guest JOIN series ON guest_id = guest.id "
		      "JOIN summary ON series_id = series.id "
		      "WHERE uuid = ?1 AND " IN_SPAN " GROUP BY series.id "
		      "ORDER BY max(" DB_SIZES_ARE_POSSIBLE ") = 0, observes = 1, "
		      "total(samples * " DB_SIZES_ARE_POSSIBLE ") DESC, max(last) DESC, series.id "
		      "DESC LIMIT 1",
	[DB_SUMMARIES] = "SELECT " SUMMARY_ROW " FROM summary WHERE series_id = ?1 AND " IN_SPAN,
	[DB_NEWEST] =
		"SELECT time, wss_bytes, maximum_bytes, balloon_bytes, rss_bytes, qemu_bytes, unreclaimable_bytes, "
		"reserve_bytes, " DB_SAMPLE_IS_POSSIBLE
		" FROM sample WHERE series_id = ?1 AND time <= " NOW " ORDER BY id DESC",
	[DB_HOURS] = "SELECT start, max_bytes, " DB_SIZES_ARE_POSSIBLE " FROM summary "
		     "WHERE series_id = ?1 AND level = ?3 AND start >= ?2 AND " IS_PAST
		     " AND samples > 0 "
		     "ORDER BY start",
	[DB_HOUR_SUMMARIES] =
		"SELECT " SUMMARY_ROW " FROM summary "
		"WHERE series_id = ?1 AND level = 3600 AND " IS_PAST " ORDER BY start",
	[DB_OVERHEAD] =
		"SELECT qemu_bytes, count(*) OVER () FROM guest JOIN series ON guest_id = guest.id "
		"JOIN sample ON series_id = series.id "
		"WHERE uuid = ?1 AND time BETWEEN ?2 AND " NOW " AND qemu_bytes BETWEEN 0 AND ?3 "
		"ORDER BY qemu_bytes",
	/*
	 * The most that the guest could not give up, with the page cache that its window may have touched, and when it said
	 * so last; the smallest size that its balloon left it for an hour of the clock, of which half was sampled; the most
	 * of it that was on the host, or in the host's swap.
	 */
	[DB_FLOOR] =
		"SELECT max(most), max(said), min(had) FILTER (WHERE had < maximum AND lasted >= 1800), max(resident) FROM ("
		"SELECT max(unreclaimable_bytes + min(coalesce(cache_bytes, 0), wss_bytes)) AS most, "
		"max(time) FILTER (WHERE unreclaimable_bytes IS NOT NULL) AS said, "
		"max(balloon_bytes) AS had, min(maximum_bytes) AS maximum, max(time) - min(time) AS lasted, "
		"max(rss_bytes + coalesce(swap_bytes, 0)) AS resident "
		"FROM guest JOIN series ON guest_id = guest.id JOIN sample ON series_id = series.id "
		"WHERE uuid = ?1 AND time BETWEEN ?2 AND " NOW " AND " DB_SAMPLE_IS_POSSIBLE
		" GROUP BY time / 3600)",
	[DB_SQUEEZE_PUT] =
		"INSERT OR REPLACE INTO squeeze (uuid, time, bytes, paged) VALUES (?1, " NOW
		", ?2, ?3)",
	[DB_SQUEEZE_GET] =
		"SELECT bytes, paged FROM squeeze WHERE uuid = ?1 AND time BETWEEN ?2 AND " NOW,
	[DB_GUESTS] = "SELECT uuid, name FROM guest ORDER BY name, uuid",
	/*
	 * The rows of a guest are sorted in memory, so what is the same for a whole series is read by
	 * a query of its own.
	 */
	[DB_SERIES_OF] = "SELECT name, uuid, method, observes, granularity_bytes, window_ns "
			 "FROM series JOIN guest ON guest.id = guest_id WHERE series.id = ?1",
	[DB_SAMPLES] =
		"SELECT series_id, time, quality, sample.window_ns, wss_bytes, low_bytes, "
		"high_bytes, maximum_bytes, balloon_bytes, rss_bytes, swap_bytes, qemu_bytes, " DB_SAMPLE_IS_POSSIBLE
		" FROM guest JOIN series ON guest_id = guest.id "
		"JOIN sample ON series_id = series.id "
		"WHERE uuid = ?1 AND time >= ?2 AND time <= ?3 ORDER BY time, sample.id",
	[DB_SPANS] = "SELECT " SUMMARY_SIZES " FROM guest JOIN series ON guest_id = guest.id "
		     "JOIN summary ON series_id = series.id "
		     "WHERE uuid = ?1 AND level = ?4 AND start > ?2 - ?4 AND start <= ?3 "
		     "ORDER BY start, series_id",
	[DB_COLDNESS_PUT] =
		"INSERT OR REPLACE INTO coldness (guest_id, level, start, time, watched_s, "
		"granularity_bytes, held_bytes, absent_bytes, " COLD_AGES ") SELECT id, ?2, ?3, "
		"?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
		"?21, ?22, ?23 FROM guest WHERE uuid = ?1",
	[DB_COLDNESS_NEWEST] =
		"SELECT " COLD_REPORT " FROM guest JOIN coldness ON guest_id = guest.id "
		"WHERE uuid = ?1 AND time <= " NOW " AND " COLD_IS_POSSIBLE
		" ORDER BY time DESC LIMIT 1",
	[DB_COLDNESS_AT] = "SELECT " COLD_REPORT " FROM guest JOIN coldness ON guest_id = guest.id "
			   "WHERE uuid = ?1 AND level = ?2 AND start = ?3 AND " COLD_IS_POSSIBLE,
	[DB_JOURNAL_PUT] =
		"INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, "
		"to_bytes, reason, uri, maximum_bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
	/* Does nothing if the guest has unfinished steps. */
	[DB_JOURNAL_BEGIN] =
		"INSERT INTO balloon (uuid, name, time, original_bytes, from_bytes, "
		"to_bytes, reason, uri, maximum_bytes) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 "
		"WHERE NOT EXISTS (SELECT 1 FROM balloon WHERE uuid = ?1 AND done = 0)",
	/* All that are too long to be UUIDs are read as "". */
	[DB_JOURNAL_DONE] = "UPDATE balloon SET done = 1 WHERE done = 0 AND "
			    "(uuid = ?1 OR (?1 = '' AND length(CAST(uuid AS BLOB)) > 36))",
	/* The oldest unfinished step has the guest's size before all of them; the newest was set last. */
	[DB_JOURNAL_OPEN] =
		"SELECT a.uuid, a.name, a.original_bytes, a.uri, z.from_bytes, z.to_bytes, "
		"z.maximum_bytes, a.maximum_bytes FROM (SELECT min(id) AS first, max(id) AS last FROM balloon WHERE done = 0 "
		"AND (?1 IS NULL OR uuid = ?1) GROUP BY uuid) "
		"JOIN balloon a ON a.id = first JOIN balloon z ON z.id = last ORDER BY a.name",
};

int wss_db_error(struct wss_history *history, const char *what, struct wss_error *err)
{
	int why = sqlite3_errcode(history->db) & 0xff;
	enum wss_error_code code = why == SQLITE_BUSY	     ? WSS_ERR_BUSY
				   : why == SQLITE_NOMEM     ? WSS_ERR_NO_MEMORY
				   : why == SQLITE_INTERRUPT ? WSS_ERR_INTERRUPTED
				   : why == SQLITE_CORRUPT || why == SQLITE_NOTADB ? WSS_ERR_DAMAGED
										   : WSS_ERR_FAILED;

	bool full = why == SQLITE_FULL ||
		    (why == SQLITE_IOERR && sqlite3_system_errno(history->db) == ENOSPC);

	return wss_error_set(err, code, "history %s: %s: %s", history->path, what,
			     full ? strerror(ENOSPC) : sqlite3_errmsg(history->db));
}

int wss_db_exec(struct wss_history *history, const char *text, const char *what,
		struct wss_error *err)
{
	return sqlite3_exec(history->db, text, NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : wss_db_error(history, what, err);
}

int wss_db_number(struct wss_history *history, const char *text, int64_t *ret_number,
		  struct wss_error *err)
{
	sqlite3_stmt *stmt;
	int r = sqlite3_prepare_v2(history->db, text, -1, &stmt, NULL);

	if (r == SQLITE_OK) {
		r = sqlite3_step(stmt);
		*ret_number = r == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	}
	if (r != SQLITE_ROW && r != SQLITE_DONE) {
		wss_db_error(history, "cannot read it", err);
		sqlite3_finalize(stmt);
		return -1;
	}
	sqlite3_finalize(stmt);
	return 0;
}

uint64_t wss_db_log_bytes(const struct wss_history *history)
{
	wss_auto_free char *log = NULL;
	struct stat st;

	if (asprintf(&log, "%s-wal", history->path) < 0) {
		log = NULL;
		return 0;
	}
	return stat(log, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

bool wss_db_log_write_back(struct wss_history *history)
{
	int patience_ms = history->patience_ms, r;

	if (patience_ms > LOG_PATIENCE_MS)
		history->patience_ms = LOG_PATIENCE_MS;
	r = sqlite3_wal_checkpoint_v2(history->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	history->patience_ms = patience_ms;
	return r == SQLITE_OK;
}

int wss_db_log_check(struct wss_history *history, struct wss_error *err)
{
	if (wss_db_log_bytes(history) <= history->log_max_bytes || wss_db_log_write_back(history))
		return 0;
	return wss_error_set(err, WSS_ERR_BUSY,
			     "history %s: its write-ahead log has reached its limit of %" PRIu64
			     " MiB, because another "
			     "process has not finished reading: end that process",
			     history->path, history->log_max_bytes >> 20);
}

sqlite3_stmt *wss_db_statement(struct wss_history *history, enum wss_db_statement which,
			       struct wss_error *err)
{
	sqlite3_stmt **stmt = &history->statements[which];

	if (!*stmt && sqlite3_prepare_v3(history->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT,
					 stmt, NULL) != SQLITE_OK) {
		wss_db_error(history, "cannot prepare a query", err);
		return NULL;
	}
	sqlite3_reset(*stmt);
	sqlite3_clear_bindings(*stmt);
	if (sqlite3_bind_parameter_count(*stmt) == NOW_AT)
		sqlite3_bind_int64(*stmt, NOW_AT, wss_clock_wall_seconds());
	return *stmt;
}

const char *wss_history_sqlite_version(void)
{
	return sqlite3_libversion();
}

char *wss_history_default_path(void)
{
	const char *set = getenv("VIRT_WSS_HISTORY"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *user = NULL;
	char *path = NULL;
	int r = -1;

	if (set && *set)
		return strdup(set);
	if (geteuid() == 0)
		return strdup(WSS_HISTORY_OF_ROOT);
	if (state && *state == '/')
		r = asprintf(&path, "%s/virt-wss/history.db", state);
	else if ((home && *home == '/') || ((user = getpwuid(geteuid())) && user->pw_dir))
		r = asprintf(&path, "%s/.local/state/virt-wss/history.db",
			     user ? user->pw_dir : home);
	return r < 0 ? NULL : path;
}

struct wss_history *wss_db_new(const char *path, struct wss_error *err)
{
	struct wss_history *history = calloc(1, sizeof(*history));

	if (history && !(history->path = strdup(path))) {
		free(history);
		history = NULL;
	}
	if (history) {
		history->patience_ms = DB_BUSY_MS;
		history->log_max_bytes = LOG_MAX_BYTES;
	}
	if (!history)
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return history;
}

void wss_history_set_patience(struct wss_history *history, int milliseconds)
{
	history->patience_ms = milliseconds;
}

/*
 * Called for the attempt-th time while another process has the file locked. Decides whether to
 * wait and try again.
 */
static int on_busy(void *opaque, int attempt)
{
	struct wss_history *history = opaque;
	int limit_ms = history->patience_ms;

	if (!attempt)
		history->waited_ms = 0;
	/* Not zero: a process that is about to end may still have to record its last step. */
	if (wss_stop_requested() && limit_ms > STOP_MS)
		limit_ms = STOP_MS;
	if (history->waited_ms >= limit_ms)
		return 0;
	/* Unlike the stop flag's poll(), this waits even after a stop request. */
	poll(NULL, 0, BUSY_STEP_MS);
	history->waited_ms += BUSY_STEP_MS;
	return 1;
}

static int is_stopped(void *opaque)
{
	(void)opaque;
	return wss_stop_requested();
}

void wss_db_set_interruptible(struct wss_history *history, bool interruptible)
{
	sqlite3_progress_handler(history->db, interruptible ? STEPS_BETWEEN_LOOKS : 0,
				 interruptible ? is_stopped : NULL, NULL);
}

void wss_history_close(struct wss_history *history)
{
	if (!history)
		return;
	for (size_t i = 0; i < DB_STATEMENTS; i++)
		sqlite3_finalize(history->statements[i]);
	sqlite3_close(history->db);
	free(history->path);
	free(history);
}

void wss_db_swap(struct wss_history *a, struct wss_history *b)
{
	struct wss_history old = *a;

	*a = *b;
	*b = old;
	sqlite3_busy_handler(a->db, on_busy, a);
	sqlite3_busy_handler(b->db, on_busy, b);
}

int wss_db_set_up(struct wss_history *history, struct wss_error *err)
{
	sqlite3_busy_handler(history->db, on_busy, history);
	sqlite3_extended_result_codes(history->db, 1);
	sqlite3_limit(history->db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_db_config(history->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return wss_db_exec(history,
			   "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
			   "PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = ON",
			   "cannot open it", err);
}
