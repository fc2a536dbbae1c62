/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints what the history holds for each guest. Reads only the history and never calls libvirt. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "cmd/stored-guests.h"
#include "help-text.h"
#include "history/history-chart.h"
#include "history/history-report.h"
#include "show/plot.h"

/* A day of samples, and a week of hours or days, fit a screen. */
#define SPAN_SAMPLES_S WSS_HISTORY_DAY
#define SPAN_SUMMARIES_S (7 * WSS_HISTORY_DAY)
#define SPAN_MAX_NS (36500ULL * WSS_HISTORY_DAY * WSS_NS_PER_S)

struct history_options {
	struct wss_store_options store;
	int level; /* WSS_HISTORY_HOUR or WSS_HISTORY_DAY; 0: each sample */
	time_t now, since, until;
	bool span_given, since_given, until_given;
	bool chart, forget;
};

struct history_run {
	const struct wss_cli *cli;
	const struct history_options *options;
	struct wss_history *history;
	struct wss_report *report; /* NULL with --chart */
	struct wss_tally tally;
	struct wss_stored_guests guests;
	size_t rows;	  /* total number of rows */
	uint64_t n_older; /* rows from before the default time range */
	/* About the guest being read. */
	bool mixed;		/* its rows come from several series */
	struct wss_sample kind; /* series of its first row */
	char method[WSS_METHOD_NAME_MAX];
	size_t n_points, room;
	struct wss_history_point *points;
	bool bounds;	   /* some points are bounds */
	size_t n_degraded; /* windows that the chart leaves out */
};

enum { OPT_BY = 1, OPT_SPAN, OPT_SINCE, OPT_UNTIL, OPT_CHART, OPT_FORGET };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_HISTORY_LONG,
	{"by", required_argument, NULL, OPT_BY},
	{"span", required_argument, NULL, OPT_SPAN},
	{"since", required_argument, NULL, OPT_SINCE},
	{"until", required_argument, NULL, OPT_UNTIL},
	{"chart", no_argument, NULL, OPT_CHART},
	{"forget", no_argument, NULL, OPT_FORGET},
	{NULL, 0, NULL, 0},
};

static int history_parse_level(const char *value, int *ret_level, struct wss_error *err)
{
	if (strcmp(value, "hour") != 0 && strcmp(value, "day") != 0)
		return wss_error_set(err, WSS_ERR_USAGE, "--by: '%s' is not hour or day", value);
	*ret_level = *value == 'h' ? WSS_HISTORY_HOUR : WSS_HISTORY_DAY;
	return 0;
}

/* Parses a date, a date and a time in UTC, or an age. */
static int history_parse_time(const char *value, const char *what, time_t now, time_t *ret_time,
			      struct wss_error *err)
{
	static const char *const rests[] = {"", "Z", ":00Z", "T00:00:00Z"};
	char text[WSS_CLOCK_TEXT_MAX + 16];
	uint64_t ago_ns;

	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
		snprintf(text, sizeof(text), "%.*s%s", WSS_CLOCK_TEXT_MAX, value, rests[i]);
		if (strlen(value) < WSS_CLOCK_TEXT_MAX && wss_clock_parse(text, ret_time) == 0)
			return 0;
	}
	if (wss_duration_parse(value, SPAN_MAX_NS, what, &ago_ns, NULL) < 0)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"%s: '%s' is not a time such as 2026-11-20T18:00 (UTC) or 2d (ago)", what,
			value);
	*ret_time = now - (time_t)(ago_ns / WSS_NS_PER_S);
	return 0;
}

static int history_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct history_options *options = opaque;
	uint64_t span_ns;

	switch (c) {
	case OPT_BY:
		return history_parse_level(value, &options->level, err);
	case OPT_SPAN:
		options->span_given = true;
		if (wss_duration_parse(value, SPAN_MAX_NS, "--span", &span_ns, err) < 0)
			return -1;
		options->since = options->now - (time_t)(span_ns / WSS_NS_PER_S);
		return 0;
	case OPT_SINCE:
		options->since_given = true;
		return history_parse_time(value, "--since", options->now, &options->since, err);
	case OPT_UNTIL:
		options->until_given = true;
		return history_parse_time(value, "--until", options->now, &options->until, err);
	case OPT_CHART:
		options->chart = true;
		return 0;
	case OPT_FORGET:
		options->forget = true;
		return 0;
	default:
		return wss_store_option(&options->store, c, value, err);
	}
}

static const struct wss_report_layout *history_layout(const struct history_options *options)
{
	return options->level ? &wss_history_span_layout : &wss_history_sample_layout;
}

static bool history_range_is_default(const struct wss_cli *cli,
				     const struct history_options *options)
{
	return !cli->all && !options->span_given && !options->since_given;
}

/* Samples from the future, stored before the clock was set back, are shown only if --until includes them. */
static void history_set_range(const struct wss_cli *cli, struct history_options *options)
{
	if (history_range_is_default(cli, options))
		options->since = options->now - (options->level || options->chart ? SPAN_SUMMARIES_S
										  : SPAN_SAMPLES_S);
	if (!options->until_given)
		options->until = cli->all ? WSS_TIME_MAX_S : options->now;
}

static int history_check_range(const struct history_options *options, struct wss_error *err)
{
	char since[WSS_CLOCK_TEXT_MAX], until[WSS_CLOCK_TEXT_MAX];

	if (options->since <= options->until)
		return 0;
	wss_clock_format(options->since, since);
	wss_clock_format(options->until, until);
	if (!options->until_given)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--since: %s is in the future: give a time before %s, or a later one "
			"with --until",
			since, until);
	return wss_error_set(
		err, WSS_ERR_USAGE,
		"--until: %s is before the first time to show, %s: give an earlier one with --since",
		until, since);
}

static int history_parse(struct wss_cli *cli, int argc, char **argv,
			 struct history_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, history_layout(options), err) < 0)
		return -1;
	if (cli->qmp)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--qmp: history reads what is stored: name a guest, or none for all");
	if (cli->uri)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--connect: history does not use libvirt: select guests by "
				     "DOMAIN, or a history by --history");
	if (options->span_given && options->since_given)
		return wss_error_set(err, WSS_ERR_USAGE, "--span and --since exclude each other");
	history_set_range(cli, options);
	if (history_check_range(options, err) < 0)
		return -1;
	if (options->chart && cli->format != WSS_FORMAT_TABLE)
		return wss_error_set(err, WSS_ERR_USAGE, "--chart and --output exclude each other");
	if (options->chart && wss_cli_refuse_view(cli, "--chart", err) < 0)
		return -1;
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	wss_cli_take_ids(cli);
	if (options->forget && (!cli->n_domains || cli->all || options->chart || options->level ||
				!history_range_is_default(cli, options) || options->until_given))
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--forget deletes all that is stored of each DOMAIN: name one, "
			"without --all, a time, --by or --chart");
	return 0;
}

/*
 * Notes whether a guest's rows come from one series, because only the wide table shows the
 * series.
 */
static void history_note_kind(struct history_run *run, const struct wss_sample *kind, bool first)
{
	if (first) {
		run->kind = *kind;
		snprintf(run->method, sizeof(run->method), "%s", kind->method);
		run->kind.method = run->method;
		return;
	}
	run->mixed = run->mixed || strcmp(kind->method, run->method) != 0 ||
		     kind->observes != run->kind.observes ||
		     kind->granularity_bytes.value != run->kind.granularity_bytes.value ||
		     kind->requested_window_ns != run->kind.requested_window_ns;
}

static void history_add_point(struct history_run *run, time_t time, uint64_t bytes)
{
	if (run->n_points == run->room) {
		run->room = run->room ? 2 * run->room : 256;
		run->points = wss_xreallocarray(run->points, run->room, sizeof(*run->points));
	}
	run->points[run->n_points++] = (struct wss_history_point){time, bytes};
}

static void history_on_sample(const struct wss_sample *sample, void *opaque)
{
	struct history_run *run = opaque;

	/* As in the sums of hours: one point among the others would look as good as they are. */
	if (run->options->chart && sample->quality != WSS_QUALITY_OK) {
		run->n_degraded++;
		return;
	}
	history_note_kind(run, sample, !run->n_points);
	if (run->report)
		wss_report_row(run->report, sample);
	run->bounds = run->bounds || wss_bound_of(sample->wss_bytes.value, sample->low_bytes,
						  sample->high_bytes) != WSS_BOUND_EXACT;
	history_add_point(run, sample->wall, sample->wss_bytes.value);
}

static void history_on_span(const struct wss_history_span *span, void *opaque)
{
	struct history_run *run = opaque;
	const struct wss_sample kind = {.method = span->method,
					.observes = span->observes,
					.granularity_bytes = span->granularity_bytes,
					.requested_window_ns = span->requested_window_ns};

	history_note_kind(run, &kind, !run->n_points);
	if (run->report)
		wss_report_row(run->report, span);
	run->bounds = run->bounds || span->granularity_bytes.value > 4096;
	history_add_point(run, span->start, wss_summary_percentile(&span->summary, 0.95));
}

static void history_draw(const struct history_run *run, const struct wss_stored_guest *guest)
{
	const struct history_options *options = run->options;
	char title[400], window[16], granularity[16];
	const struct wss_history_chart chart = {.title = title,
						.points = run->points,
						.n_points = run->n_points,
						.blocks = wss_locale_is_utf8()};

	wss_duration_format(run->kind.requested_window_ns, window, sizeof(window));
	wss_size_format(run->kind.granularity_bytes.value, granularity, sizeof(granularity));
	snprintf(title, sizeof(title), "%s: %s%s", guest->name,
		 !options->level		      ? "working set"
		 : options->level == WSS_HISTORY_HOUR ? "95th percentile of each hour"
						      : "95th percentile of each day",
		 run->bounds ? ", partly an upper bound" : "");
	if (!run->mixed)
		snprintf(title + strlen(title), sizeof(title) - strlen(title),
			 " (%s, %s pages, windows of %s)", run->method, granularity, window);
	if (run->rows)
		putchar('\n');
	wss_history_chart_print(stdout, &chart, wss_terminal_width());
}

/* Explains output that could mislead: several series that look like one, or an empty table. */
static void history_explain(const struct history_run *run, const struct wss_stored_guest *guest)
{
	const struct wss_view *view = &run->cli->view;
	struct wss_error err = WSS_ERROR_INIT;
	char time[WSS_CLOCK_TEXT_MAX];
	struct wss_amount last;
	uint64_t n;

	if (run->cli->format != WSS_FORMAT_TABLE)
		return;
	if (run->mixed && !view->wide && !view->columns)
		wss_log(WSS_LOG_INFO,
			"%s: measured in several ways that cannot be compared: see history --wide",
			guest->name);
	if (run->n_degraded)
		wss_log(WSS_LOG_INFO,
			"%s: the chart leaves out %zu window%s that %s degraded or uncertain: see the column QUALITY of history",
			guest->name, run->n_degraded, wss_plural(run->n_degraded),
			run->n_degraded == 1 ? "is" : "are");
	if (run->n_points || run->n_degraded ||
	    wss_history_last(run->history, guest->uuid, &last, &err) < 0)
		return;
	if (!last.known) {
		if (wss_history_count_older(run->history, guest->uuid, 0, WSS_TIME_MAX_S, &n,
					    &err) == 0)
			wss_log(WSS_LOG_INFO,
				n ? "%s: all its samples lie ahead of the present time: see history --all"
				  : "%s: no sample in the history",
				guest->name);
		return;
	}
	wss_clock_format((time_t)last.value, time);
	wss_log(WSS_LOG_INFO, "%s: no samples in this time range; the newest is from %s",
		guest->name, time);
}

static int history_show(const struct wss_stored_guest *guest, void *opaque, struct wss_error *err)
{
	struct history_run *run = opaque;
	const struct history_options *options = run->options;
	uint64_t n_older;
	int r;

	run->mixed = run->bounds = false;
	run->n_points = run->n_degraded = 0;
	if (options->level)
		r = wss_history_spans(run->history, guest->uuid, options->level, options->since,
				      options->until, history_on_span, run, err);
	else
		r = wss_history_samples(run->history, guest->uuid, options->since, options->until,
					history_on_sample, run, err);
	if (r < 0)
		return -1;
	if (options->chart && run->n_points)
		history_draw(run, guest);
	history_explain(run, guest);
	if (history_range_is_default(run->cli, options)) {
		if (wss_history_count_older(run->history, guest->uuid, options->level,
					    options->since, &n_older, err) < 0)
			return -1;
		run->n_older += n_older;
	}
	run->rows += run->n_points;
	return 0;
}

static void history_set_width(const struct history_run *run)
{
	size_t width = 0;

	for (size_t i = 0; i < run->guests.n; i++)
		width = wss_name_width(width, run->guests.list[i].name);
	for (int i = 0; i < run->cli->n_domains; i++)
		width = i ? wss_name_width(width, run->cli->domains[i])
			  : wss_name_width(0, run->cli->domains[i]);
	wss_report_set_first_width(run->report, width);
	wss_report_set_batch(run->report);
}

static int history_read(struct history_run *run, struct wss_error *err)
{
	const struct wss_cli *cli = run->cli;
	struct wss_error out_err = WSS_ERROR_INIT;
	int r;

	if (wss_store_open_reader(&run->options->store, &run->history, err) < 0 ||
	    (run->history && wss_stored_guests_read(run->history, &run->guests, err) < 0))
		return -1;
	if (!run->options->chart &&
	    wss_report_open(stdout, cli->format, &cli->view, history_layout(run->options),
			    &run->report, err) < 0)
		return -1;
	if (run->report)
		history_set_width(run);
	r = wss_cli_stored_guests_each(&run->guests, run->cli, run->report, &run->tally,
				       history_show, run, err);
	if (r == 0 && run->history && !run->guests.n && !cli->n_domains &&
	    cli->format == WSS_FORMAT_TABLE)
		wss_log(WSS_LOG_INFO, "no guest in the history");
	if (r == 0 && run->n_older && cli->format == WSS_FORMAT_TABLE)
		wss_log(WSS_LOG_INFO,
			"only the last %s: for %" PRIu64 " older %s%s, use --span TIME%s",
			run->options->level || run->options->chart ? "7 days" : "day", run->n_older,
			run->options->level ? "row" : "sample", wss_plural(run->n_older),
			cli->n_domains ? "" : " or --all");
	if (wss_report_close(run->report, &out_err) < 0 && r == 0) {
		*err = out_err;
		r = -1;
	}
	return r;
}

static int history_delete(const struct wss_store_options *store,
			  const struct wss_stored_guest *guest, struct wss_error *err)
{
	wss_auto_free char *path = wss_store_path(store);
	struct wss_history *history = NULL;
	int r;

	if (!path)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_history_open(path, &history, err) < 0)
		return -1;
	r = wss_history_forget(history, guest->uuid, err);
	wss_history_close(history);
	if (r == 0)
		wss_log(WSS_LOG_INFO, "%s (UUID %s): forgotten", guest->name, guest->uuid);
	return r;
}

/* Deletes the guests that were named, if each word names one. */
static int history_forget(struct history_run *run, struct wss_error *err)
{
	const struct wss_cli *cli = run->cli;
	int r;

	if (wss_store_open_reader(&run->options->store, &run->history, err) < 0 ||
	    (run->history && wss_stored_guests_read(run->history, &run->guests, err) < 0))
		return -1;
	/* Nobody wants to lose the wrong one. */
	run->guests.history = NULL;
	for (int i = 0; i < cli->n_domains; i++)
		if (!wss_cli_stored_guest(&run->guests, cli->domains[i], cli->by_uuid, err))
			return wss_error_prefix(err, "%s", cli->domains[i]);
	wss_history_close(run->history);
	run->history = NULL;
	r = 0;
	for (int i = 0; r == 0 && i < cli->n_domains; i++)
		r = history_delete(
			&run->options->store,
			wss_cli_stored_guest(&run->guests, cli->domains[i], cli->by_uuid, err),
			err);
	return r;
}

static int history_run(struct wss_cli *cli, int argc, char **argv)
{
	struct history_options options = {.store = WSS_STORE_OPTIONS_INIT,
					  .now = wss_clock_wall_seconds()};
	struct history_run run = {.cli = cli, .options = &options};
	struct wss_error err = WSS_ERROR_INIT;
	size_t n;
	int r;

	if (history_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	r = options.forget ? history_forget(&run, &err) : history_read(&run, &err);
	n = cli->n_domains ? (size_t)cli->n_domains : run.guests.n;
	wss_history_close(run.history);
	wss_stored_guests_free(&run.guests);
	free(run.points);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&run.tally, n);
}

static const struct wss_report_layout *const layouts[] = {&wss_history_sample_layout,
							  &wss_history_span_layout, NULL};

static const struct wss_option_values values[] = {
	{"by", "hour day"},
	{NULL, NULL},
};

const struct wss_command wss_cmd_history = {
	.name = "history",
	.summary = "show the stored samples of each guest",
	.help = wss_help_history,
	.long_options = long_options,
	.take = history_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.values = values,
	.run = history_run,
};
