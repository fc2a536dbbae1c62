/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of a history (user_version 1). Once released, they change by numbered steps from version to version. */
#include "history/db.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define APPLICATION_ID 0x77737331 /* "wss1" */

static const char schema[] =
	"CREATE TABLE guest ("
	"	id INTEGER PRIMARY KEY,"
	"	uuid TEXT NOT NULL UNIQUE,"
	"	name TEXT NOT NULL);"
	/* Only samples of the same series may be compared and added up. */
	"CREATE TABLE series ("
	"	id INTEGER PRIMARY KEY,"
	"	guest_id INTEGER NOT NULL REFERENCES guest(id) ON DELETE CASCADE,"
	"	method TEXT NOT NULL,"
	"	observes INTEGER NOT NULL,"
	"	granularity_bytes INTEGER NOT NULL,"
	"	window_ns INTEGER NOT NULL,"
	"	UNIQUE (guest_id, method, observes, granularity_bytes, window_ns));"
	"CREATE TABLE sample ("
	"	id INTEGER PRIMARY KEY,"
	"	series_id INTEGER NOT NULL REFERENCES series(id) ON DELETE CASCADE,"
	"	time INTEGER NOT NULL,"
	"	quality INTEGER NOT NULL,"
	"	window_ns INTEGER,"
	"	wss_bytes INTEGER NOT NULL,"
	"	low_bytes INTEGER, high_bytes INTEGER,"
	"	maximum_bytes INTEGER, balloon_bytes INTEGER, rss_bytes INTEGER,"
	"	swap_bytes INTEGER, qemu_bytes INTEGER,"
	/* Memory that the guest's kernel could not give up then, page cache that it could, and what it keeps (struct wss_sample). */
	"	unreclaimable_bytes INTEGER, cache_bytes INTEGER, reserve_bytes INTEGER);"
	"CREATE INDEX sample_series ON sample (series_id);"
	"CREATE INDEX sample_time ON sample (time);"
	/* level: length in seconds, an hour or a day; sizes, curve: history/summary.h */
	"CREATE TABLE summary ("
	"	series_id INTEGER NOT NULL REFERENCES series(id) ON DELETE CASCADE,"
	"	level INTEGER NOT NULL,"
	"	start INTEGER NOT NULL,"
	"	samples INTEGER NOT NULL, degraded INTEGER NOT NULL,"
	"	first INTEGER NOT NULL, last INTEGER NOT NULL,"
	"	min_bytes INTEGER NOT NULL, max_bytes INTEGER NOT NULL,"
	"	sum_pages INTEGER NOT NULL,"
	"	sizes BLOB NOT NULL,"
	"	curve BLOB NOT NULL,"
	"	PRIMARY KEY (series_id, level, start));"
	/* Balloon steps; done: the guest has its original size again. */
	"CREATE TABLE balloon ("
	"	id INTEGER PRIMARY KEY,"
	"	uuid TEXT NOT NULL,"
	"	name TEXT NOT NULL,"
	"	time INTEGER NOT NULL,"
	"	original_bytes INTEGER NOT NULL,"
	"	from_bytes INTEGER NOT NULL,"
	"	to_bytes INTEGER NOT NULL,"
	"	reason TEXT NOT NULL,"
	"	done INTEGER NOT NULL DEFAULT 0,"
	/* URI of the connection that made the step; the UUID may be unknown to others. */
	"	uri TEXT,"
	"	maximum_bytes INTEGER);" /* of the guest's memory then */
	"CREATE INDEX balloon_open ON balloon (uuid) WHERE done = 0;"
	/* What the last squeeze of a guest has found: the smallest size at which it did not page, and whether it did below. */
	"CREATE TABLE squeeze ("
	"	uuid TEXT PRIMARY KEY,"
	"	time INTEGER NOT NULL,"
	"	bytes INTEGER NOT NULL,"
	"	paged INTEGER NOT NULL);"
	/*
	 * How cold a guest's memory was at the end of each hour or day (level as in summary). For each age the
	 * bounds, and the millionths of that time that were observed; low is NULL where some of it was not.
	 */
	"CREATE TABLE coldness ("
	"	guest_id INTEGER NOT NULL REFERENCES guest(id) ON DELETE CASCADE,"
	"	level INTEGER NOT NULL,"
	"	start INTEGER NOT NULL,"
	"	time INTEGER NOT NULL,"
	"	watched_s INTEGER NOT NULL,"
	"	granularity_bytes INTEGER NOT NULL,"
	"	held_bytes INTEGER NOT NULL, absent_bytes INTEGER NOT NULL,"
	"	low_2m INTEGER, high_2m INTEGER NOT NULL, observed_2m INTEGER NOT NULL,"
	"	low_10m INTEGER, high_10m INTEGER NOT NULL, observed_10m INTEGER NOT NULL,"
	"	low_1h INTEGER, high_1h INTEGER NOT NULL, observed_1h INTEGER NOT NULL,"
	"	low_24h INTEGER, high_24h INTEGER NOT NULL, observed_24h INTEGER NOT NULL,"
	"	low_never INTEGER, high_never INTEGER NOT NULL, observed_never INTEGER NOT NULL,"
	"	PRIMARY KEY (guest_id, level, start));";

#define SCHEMA_VERSION 1

/* Statistics of ANALYZE do not affect results. */
#define OBJECTS                                                                    \
	"SELECT type, name, tbl_name, sql FROM sqlite_schema "                     \
	"WHERE NOT (type = 'table' AND name IN ('sqlite_stat1', 'sqlite_stat4')) " \
	"ORDER BY type, name, tbl_name, sql"

/* Creates an empty history in memory. */
static sqlite3 *create_model(void)
{
	sqlite3 *db;

	if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
		    SQLITE_OK &&
	    sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK)
		return db;
	sqlite3_close(db);
	return NULL;
}

static bool same_column(sqlite3_stmt *a, sqlite3_stmt *b, int at)
{
	const char *x = (const char *)sqlite3_column_text(a, at);
	const char *y = (const char *)sqlite3_column_text(b, at);

	return x && y ? !strcmp(x, y) : !x && !y;
}

/*
 * Whether both queries return the same rows. *ret_name is the first row that differs, NULL if
 * one is missing.
 */
static bool same_objects(sqlite3_stmt *model, sqlite3_stmt *file, const char **ret_name)
{
	int wanted, there;

	do {
		wanted = sqlite3_step(model);
		there = sqlite3_step(file);
		*ret_name = there == SQLITE_ROW ? (const char *)sqlite3_column_text(file, 1) : NULL;
		for (int i = 0; wanted == SQLITE_ROW && there == SQLITE_ROW && i < 4; i++)
			if (!same_column(model, file, i))
				return false;
	} while (wanted == SQLITE_ROW && there == SQLITE_ROW);
	return wanted == there;
}

/*
 * A view in place of a table, a trigger, or an index or constraint with an expression would
 * make queries and new samples run foreign code, perhaps endlessly.
 */
static int check_objects(struct wss_history *history, struct wss_error *err)
{
	sqlite3 *model = create_model();
	sqlite3_stmt *wanted = NULL, *there = NULL;
	const char *name = NULL;
	int r = 0;

	if (!model || sqlite3_prepare_v2(model, OBJECTS, -1, &wanted, NULL) != SQLITE_OK)
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (sqlite3_prepare_v2(history->db, OBJECTS, -1, &there, NULL) != SQLITE_OK)
		r = wss_db_error(history, "cannot read it", err);
	else if (!same_objects(wanted, there, &name))
		r = wss_error_set(err, WSS_ERR_FAILED,
				  "history %s: damaged: its tables are not those of virt-wss (%s)",
				  history->path, name ? name : "one is missing");
	sqlite3_finalize(there);
	sqlite3_finalize(wanted);
	sqlite3_close(model);
	return r;
}

int wss_db_check_version(struct wss_history *history, struct wss_error *err)
{
	int64_t version, id;

	if (wss_db_number(history, "PRAGMA application_id", &id, err) < 0 ||
	    wss_db_number(history, "PRAGMA user_version", &version, err) < 0)
		return -1;
	if (id != APPLICATION_ID)
		return wss_error_set(err, WSS_ERR_FAILED, "history %s: not a history of virt-wss",
				     history->path);
	if (version < 1)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "history %s: damaged: its version is %" PRId64, history->path,
				     version);
	if (version > SCHEMA_VERSION)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "history %s: written by a newer virt-wss (version %" PRId64
				     ", this one knows %d)",
				     history->path, version, SCHEMA_VERSION);
	return check_objects(history, err);
}

int wss_db_check_texts(struct wss_history *history, struct wss_error *err)
{
	static const char query[] =
		"SELECT EXISTS (SELECT 1 FROM guest WHERE length(CAST(name AS BLOB)) > 1024 "
		"OR length(CAST(uuid AS BLOB)) > 128) OR "
		"EXISTS (SELECT 1 FROM series WHERE length(CAST(method AS BLOB)) > 128)";
	int64_t found;

	if (wss_db_number(history, query, &found, err) < 0)
		return -1;
	if (found)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "history %s: damaged: a name in it is too long",
				     history->path);
	return 0;
}

int wss_db_check_made(struct wss_history *history, struct wss_error *err)
{
	int64_t version, tables;

	if (wss_db_number(history, "PRAGMA user_version", &version, err) < 0 ||
	    wss_db_number(history, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
		return -1;
	return version || tables ? wss_db_check_version(history, err) : 0;
}

static int create_tables(struct wss_history *history, struct wss_error *err)
{
	char pragma[64];

	snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION_ID, SCHEMA_VERSION);
	return wss_db_exec(history, schema, "cannot create the tables", err) < 0
		       ? -1
		       : wss_db_exec(history, pragma, "cannot create the tables", err);
}

int wss_db_create_tables(struct wss_history *history, struct wss_error *err)
{
	int64_t version, tables = 0;
	int r;

	if (wss_db_number(history, "PRAGMA user_version", &version, err) < 0)
		return -1;
	if (version)
		return wss_db_check_version(history, err);
	if (wss_db_exec(history, "BEGIN IMMEDIATE", "cannot begin", err) < 0)
		return -1;
	/* Check again: another process may have done it while this one waited for the lock. */
	r = wss_db_number(history, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = wss_db_number(history, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (r == 0)
		r = version || tables ? wss_db_check_version(history, err)
				      : create_tables(history, err);
	if (r == 0)
		r = wss_db_exec(history, "COMMIT", "cannot create the tables", err);
	if (r < 0)
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}
