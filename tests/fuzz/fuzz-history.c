/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A history that is damaged or forged (database.h), read as recommend and list read it and
 * written as sample --store writes it.
 */
#include <stdlib.h>

#include "database.h"
#include "fuzz.h"
#include "history/history.h"
#include "sizing/sizing.h"

#define WEEK (7 * WSS_HISTORY_DAY)

static void size_by(const struct wss_history_series *series)
{
	static const struct wss_sizing_rule rule = {.percentile = 0.99, .headroom_percent = 20};
	static const struct wss_policy policy;
	struct wss_sizing_state state = {.held_bytes = series->rss_bytes,
					 .balloon_bytes = series->balloon_bytes};
	struct wss_sizing sizing;

	wss_sizing_compute(&series->summary, &rule, &policy, &state, &sizing);
	wss_histogram_above(&series->summary.sizes, 1 << 28);
}

static void on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	wss_fit_hour(opaque, start, max_bytes);
}

static int on_guest(const char *uuid, const char *name, void *opaque)
{
	(void)opaque;
	fuzz_require(uuid && name);
	return 0;
}

static void on_sample(const struct wss_sample *sample, void *opaque)
{
	(void)opaque;
	fuzz_require(wss_sample_measured(sample) && sample->method);
	wss_bound_of(sample->wss_bytes.value, sample->low_bytes, sample->high_bytes);
}

static void on_span(const struct wss_history_span *span, void *opaque)
{
	(void)opaque;
	fuzz_require(span->summary.sizes.total == span->summary.samples);
	wss_histogram_percentile(&span->summary.sizes, 0.95);
}

static void list_guest(struct wss_history *history, time_t since)
{
	struct wss_error err = WSS_ERROR_INIT;

	fuzz_check(wss_history_guests(history, on_guest, NULL, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_history_samples(history, FUZZ_UUID, since, FUZZ_TIME, on_sample, NULL, &err),
		   &err);
	wss_error_clear(&err);
	fuzz_check(wss_history_spans(history, FUZZ_UUID, WSS_HISTORY_DAY, since, FUZZ_TIME, on_span,
				     NULL, &err),
		   &err);
}

static void read_hours(struct wss_history *history, const struct wss_history_series *series,
		       time_t since)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_fit_result result;
	struct wss_fit fit;

	fuzz_require(wss_fit_init(&fit, since, FUZZ_TIME) == 0);
	fuzz_check(wss_history_hours(history, series, since, on_hour, &fit, &err), &err);
	wss_fit_guest(&fit, 1 << 30);
	fuzz_require(wss_fit_result(&fit, 0.99, &result) == 0);
	wss_fit_free(&fit);
}

static void read_guest(struct wss_history *history, time_t since)
{
	struct wss_history_series series;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_amount last;
	int r = wss_history_last(history, FUZZ_UUID, &last, &err);

	fuzz_check(r, &err);
	wss_error_clear(&err);
	r = wss_history_series(history, FUZZ_UUID, since, WSS_HISTORY_CURVE, &series, &err);
	fuzz_check(r, &err);
	if (r == 1) {
		size_by(&series);
		read_hours(history, &series, since);
		wss_summary_free(&series.summary);
	}
}

static void write_guest(struct wss_history *history)
{
	static const struct wss_history_limits limits = WSS_HISTORY_LIMITS_DEFAULT;
	static const struct wss_history_limits few = {3600, 7200, 86400, 1 << 20};
	struct wss_sample sample = fuzz_sample(FUZZ_SAMPLES);
	struct wss_error err = WSS_ERROR_INIT;

	fuzz_check(wss_history_add(history, &sample, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_history_prune(history, &limits, FUZZ_TIME, &err), &err);
	wss_error_clear(&err);
	fuzz_check(wss_history_prune(history, &few, FUZZ_TIME + WEEK, &err), &err);
}

static void history_run(const uint8_t *data, size_t size)
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
		read_guest(history, FUZZ_TIME - WEEK);
		read_guest(history, 0);
		list_guest(history, 0);
		wss_history_close(history);
	}
	wss_error_clear(&err);
	r = wss_history_open(path, &history, &err);
	fuzz_check(r, &err);
	if (r < 0)
		return;
	write_guest(history);
	read_guest(history, FUZZ_TIME - WEEK);
	wss_history_close(history);
}

static size_t history_seed(unsigned n, uint8_t *data, size_t room)
{
	return n == 0 ? fuzz_database_whole(data, room) : 0;
}

const struct fuzz_target fuzz_target = {
	.name = "history",
	.run = history_run,
	.max_bytes = 131072,
	.mutations = 250,
	.seed = history_seed,
};
