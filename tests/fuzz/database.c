/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "database.h"

#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "balloon/journal.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "fuzz.h"
#include "history/history.h"

/*
 * Limit on SQLite's instructions for the SQL of an input, because its running time is not
 * under test.
 */
#define STEPS_MAX 200000

static uint8_t *good;
static size_t good_size;
static char path[4096];

struct wss_sample fuzz_sample(unsigned n)
{
	uint64_t bytes = (200 + n % 7) * (1ULL << 20);
	struct wss_sample sample = {
		.domain = "web1",
		.uuid = FUZZ_UUID,
		.wall = FUZZ_TIME - (time_t)(FUZZ_SAMPLES - 1 - n) * 3600,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4000000000,
		.window_ns = wss_amount_of(4000000000),
		.wss_bytes = wss_amount_of(bytes),
		.low_bytes = wss_amount_of(bytes),
		.high_bytes = wss_amount_of(bytes),
		.memory = {.rss_bytes = wss_amount_of(bytes * 4),
			   .maximum_bytes = wss_amount_of(bytes * 5),
			   .balloon_bytes = wss_amount_of(bytes * 5),
			   .qemu_bytes = wss_amount_of(64 << 20)},
	};

	for (double t = 0.001; t < 4; t *= 1.5)
		wss_sample_curve_add(&sample, (uint64_t)(t * 1e9),
				     (uint64_t)((double)bytes * (1 - exp(-t / 0.4))));
	return sample;
}

static void fill(struct wss_history *history)
{
	const struct wss_journal_step step = {
		.uuid = FUZZ_UUID,
		.name = "web1",
		.time = FUZZ_TIME,
		.original_bytes = 1ULL << 30,
		.from_bytes = 1ULL << 30,
		.to_bytes = 512ULL << 20,
		.reason = "a test",
		.uri = "qemu:///system",
	};

	for (unsigned n = 0; n < FUZZ_SAMPLES; n++) {
		struct wss_sample sample = fuzz_sample(n);

		fuzz_require(wss_history_add(history, &sample, NULL) == 0);
	}
	fuzz_require(wss_journal_begin(history, &step, NULL) == 0);
	fuzz_require(wss_journal_write(history, &step, NULL) == 0);
}

/* Makes the good history once, with the program's own code. */
static void make_good(void)
{
	struct wss_history *history;
	wss_auto_close int fd = -1;
	struct stat st;

	snprintf(path, sizeof(path), "%s/history.db", fuzz_directory());
	fuzz_require(wss_history_open(path, &history, NULL) == 0);
	fill(history);
	wss_history_close(history);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fuzz_require(fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0);
	good = malloc((size_t)st.st_size);
	fuzz_require(good && wss_io_pread(fd, good, (size_t)st.st_size, 0) == st.st_size);
	good_size = (size_t)st.st_size;
}

static void write_database(const uint8_t *data, size_t size)
{
	fuzz_file("history.db", data, size);
	fuzz_file("history.db-wal", NULL, 0);
	fuzz_file("history.db-shm", NULL, 0);
	fuzz_file("history.db-journal", NULL, 0);
}

static int stop(void *opaque)
{
	(void)opaque;
	return 1;
}

static void run_sql(const char *sql)
{
	sqlite3 *db;

	fuzz_require(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
	/* SQL cannot reach any other file. */
	sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
	sqlite3_progress_handler(db, STEPS_MAX, stop, NULL);
	sqlite3_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF", NULL, NULL,
		     NULL);
	sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void change_bytes(const uint8_t *data, size_t size)
{
	wss_auto_free uint8_t *changed = malloc(good_size);

	fuzz_require(changed);
	memcpy(changed, good, good_size);
	for (size_t i = 0; i + 4 <= size; i += 4) {
		size_t at = (size_t)data[i] << 16 | (size_t)data[i + 1] << 8 | data[i + 2];

		changed[at % good_size] = data[i + 3];
	}
	write_database(changed, good_size);
}

const char *fuzz_database(const uint8_t *data, size_t size)
{
	if (!good)
		make_good();
	if (!size)
		return NULL;
	if (data[0] == 'S') {
		wss_auto_free char *sql = fuzz_text(data + 1, size - 1);

		write_database(good, good_size);
		run_sql(sql);
	} else if (data[0] == 'P') {
		change_bytes(data + 1, size - 1);
	} else if (data[0] == 'F') {
		write_database(data + 1, size - 1);
	} else {
		return NULL;
	}
	return path;
}

size_t fuzz_database_whole(uint8_t *data, size_t room)
{
	if (!good)
		make_good();
	if (good_size + 1 > room)
		return 0;
	data[0] = 'F';
	memcpy(data + 1, good, good_size);
	return good_size + 1;
}
