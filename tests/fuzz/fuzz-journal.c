/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The journal of balloons in a history that is damaged or forged (database.h). */
#include <stdlib.h>
#include <string.h>

#include "balloon/journal.h"
#include "database.h"
#include "fuzz.h"

/* Checks the data that --restore would use: each step has a guest and a size. */
static void check_open(const struct wss_journal_open *open, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fuzz_require(memchr(open[i].uuid, '\0', sizeof(open[i].uuid)));
		fuzz_require(memchr(open[i].name, '\0', sizeof(open[i].name)));
		fuzz_require(memchr(open[i].uri, '\0', sizeof(open[i].uri)));
		fuzz_require(open[i].original_bytes <= INT64_MAX);
	}
}

static void list(struct wss_history *history, const char *uuid)
{
	struct wss_journal_open *open = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	size_t n = 0;
	int r = wss_journal_unfinished(history, uuid, &open, &n, &err);

	fuzz_check(r, &err);
	check_open(open, n);
	free(open);
}

static void write_steps(struct wss_history *history)
{
	static const struct wss_journal_step step = {
		.uuid = FUZZ_UUID,
		.name = "web1",
		.time = FUZZ_TIME,
		.original_bytes = 1ULL << 30,
		.from_bytes = 1ULL << 30,
		.to_bytes = 512ULL << 20,
		.reason = "a test",
	};
	struct wss_error err = WSS_ERROR_INIT;

	fuzz_check(wss_journal_check(history, FUZZ_UUID, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_journal_begin(history, &step, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_journal_write(history, &step, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_journal_done(history, FUZZ_UUID, &err), &err);
}

static void journal_run(const uint8_t *data, size_t size)
{
	const char *path = fuzz_database(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history;
	int r;

	if (!path)
		return;
	r = wss_history_open_readonly(path, &history, &err);
	fuzz_check(r, &err);
	if (r == 0) {
		list(history, NULL);
		list(history, FUZZ_UUID);
		wss_history_close(history);
	}
	wss_error_clear(&err);
	r = wss_history_open(path, &history, &err);
	fuzz_check(r, &err);
	if (r < 0)
		return;
	write_steps(history);
	list(history, NULL);
	wss_history_close(history);
}

const struct fuzz_target fuzz_target = {
	.name = "journal",
	.run = journal_run,
	.max_bytes = 16384,
	.mutations = 300,
};
