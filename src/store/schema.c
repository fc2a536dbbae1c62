/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The schema, as numbered migrations: number N brings version N to N + 1 (user_version). A
 * migration that was shipped is never changed.
 */
#include "store/db.h"

#include <inttypes.h>
#include <stdio.h>

#define APPLICATION_ID 0x77737331 /* "wss1" */

static const char *const migrations[] = {
	"CREATE TABLE guest ("
	"	id INTEGER PRIMARY KEY,"
	"	uuid TEXT NOT NULL UNIQUE,"
	"	name TEXT NOT NULL);"
	/* What may be compared and added up: nothing else of a guest's samples may. */
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
	"	swap_bytes INTEGER, qemu_bytes INTEGER);"
	"CREATE INDEX sample_series ON sample (series_id);"
	"CREATE INDEX sample_time ON sample (time);"
	/* level: the span in seconds, an hour or a day; sizes, curve: wss/summary.h */
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
	"	PRIMARY KEY (series_id, level, start));",

	/* What was done to balloons; done: the guest has got back what it had. */
	"CREATE TABLE balloon ("
	"	id INTEGER PRIMARY KEY,"
	"	uuid TEXT NOT NULL,"
	"	name TEXT NOT NULL,"
	"	time INTEGER NOT NULL,"
	"	original_bytes INTEGER NOT NULL,"
	"	from_bytes INTEGER NOT NULL,"
	"	to_bytes INTEGER NOT NULL,"
	"	reason TEXT NOT NULL,"
	"	done INTEGER NOT NULL DEFAULT 0);"
	"CREATE INDEX balloon_open ON balloon (uuid) WHERE done = 0;",

	/* Of the connection that it was done through: the UUID may mean nothing to another. */
	"ALTER TABLE balloon ADD COLUMN uri TEXT;",
};

#define SCHEMA_VERSION ((int64_t)(sizeof(migrations) / sizeof(migrations[0])))

int wss_db_check_version(struct wss_history *history, struct wss_error *err)
{
	int64_t version, id;

	if (wss_db_number(history, "PRAGMA application_id", &id, err) < 0 ||
	    wss_db_number(history, "PRAGMA user_version", &version, err) < 0)
		return -1;
	if (id != APPLICATION_ID)
		return wss_error_set(err, WSS_ERR_FAILED, "history %s: the file is something else",
				     history->path);
	if (version < 1)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "history %s: damaged: its version is %" PRId64, history->path,
				     version);
	if (version > SCHEMA_VERSION)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "history %s: written by a newer virt-wss (version %" PRId64
				     ", this one knows %" PRId64 ")",
				     history->path, version, SCHEMA_VERSION);
	return 0;
}

static int migrate_from(struct wss_history *history, int64_t version, struct wss_error *err)
{
	char pragma[64];

	for (; version < SCHEMA_VERSION; version++)
		if (wss_db_exec(history, migrations[version], "cannot change the schema", err) < 0)
			return -1;
	snprintf(pragma, sizeof(pragma), "PRAGMA application_id = %d; PRAGMA user_version = %" PRId64,
		 APPLICATION_ID, SCHEMA_VERSION);
	return wss_db_exec(history, pragma, "cannot change the schema", err);
}

int wss_db_migrate(struct wss_history *history, struct wss_error *err)
{
	int64_t version, tables;
	int r;

	if (wss_db_number(history, "PRAGMA user_version", &version, err) < 0)
		return -1;
	if (version == SCHEMA_VERSION)
		return wss_db_check_version(history, err);
	if (wss_db_exec(history, "BEGIN IMMEDIATE", "cannot begin", err) < 0)
		return -1;
	/* Looked at again: another process may have done it while we waited for the lock. */
	r = wss_db_number(history, "PRAGMA user_version", &version, err);
	if (r == 0)
		r = wss_db_number(history, "SELECT count(*) FROM sqlite_master", &tables, err);
	if (r == 0 && (version || tables))
		r = wss_db_check_version(history, err);
	if (r == 0 && version < SCHEMA_VERSION)
		r = migrate_from(history, version, err);
	if (r == 0)
		r = wss_db_exec(history, "COMMIT", "cannot make the tables", err);
	if (r < 0)
		sqlite3_exec(history->db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}
