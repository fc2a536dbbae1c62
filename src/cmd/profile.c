/* SPDX-License-Identifier: LGPL-2.1-or-later */
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
#include "cmd/window-options.h"
#include "help-text.h"
#include "measure/growth-report.h"
#include "measure/round.h"
#include "show/plot.h"
#include "show/progress.h"

#define FROM_DEFAULT_NS WSS_NS_PER_MS
#define TO_DEFAULT_NS (40 * WSS_NS_PER_S)
#define TO_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define REPEAT_MAX 1000

struct profile_options {
	struct wss_round_options round;
	uint64_t deadline_ns;
	uint64_t from_ns;
	const char *plot;
};

struct guest_profile {
	struct wss_growth growth;
	unsigned vcpus; /* vCPUs of the guest, at least 1 */
};

struct profile_run {
	const struct wss_cli *cli;
	const struct profile_options *options;
	struct guest_profile *profiles; /* n elements, one for each guest */
	size_t n;
	size_t missed_by_none; /* guests that were left out and do not count as failed */
	size_t name_width;
	char host[65];
	struct wss_tally tally;
	struct wss_progress *line; /* shown on the terminal; NULL if there is none */
};

enum { OPT_FROM = 1, OPT_TO, OPT_REPEAT, OPT_PLOT };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_WINDOW_LONG,
	{"from", required_argument, NULL, OPT_FROM},
	{"to", required_argument, NULL, OPT_TO},
	{"repeat", required_argument, NULL, OPT_REPEAT},
	{"plot", required_argument, NULL, OPT_PLOT},
	{NULL, 0, NULL, 0},
};

static int profile_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct profile_options *options = opaque;
	int taken = wss_window_option(&options->round, &options->deadline_ns, c, value, err);
	uint64_t number;

	if (taken)
		return taken;
	switch (c) {
	case OPT_FROM:
		return wss_duration_parse(value, TO_MAX_NS, "--from", &options->from_ns, err);
	case OPT_TO:
		return wss_duration_parse(value, TO_MAX_NS, "--to",
					  &options->round.measure.window.track.window_ns, err);
	case OPT_REPEAT:
		if (wss_number_parse(value, 1, REPEAT_MAX, "--repeat", &number, err) < 0)
			return -1;
		options->round.measure.count = (unsigned)number;
		return 0;
	default:
		options->plot = value;
		return 0;
	}
}

static int profile_parse(struct wss_cli *cli, int argc, char **argv,
			 struct profile_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &wss_growth_layout, err) < 0)
		return -1;
	if (options->from_ns >= options->round.measure.window.track.window_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "--from must be shorter than --to");
	if (options->round.measure.both)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--granularity both is for sample: a curve has one granularity");
	options->round.measure.interval_ns = options->round.measure.window.track.window_ns;
	return wss_cli_finish(cli, argc, argv, err);
}

/* --- what is measured --- */

static bool profile_on_opened(struct wss_target *target, void *opaque)
{
	struct guest_profile *profile = target->data;

	(void)opaque;
	profile->vcpus = target->guest->config.vcpus ? target->guest->config.vcpus : 1;
	return true;
}

static void profile_on_left_out(struct wss_target *target, void *opaque)
{
	struct profile_run *run = opaque;

	(void)target;
	run->missed_by_none++;
}

static void profile_print_notes(const struct wss_sample *sample)
{
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s: note: %s", sample->domain, sample->notes[i]);
}

static void profile_on_sample(struct wss_target *target, const struct wss_sample *sample, bool last,
			      void *opaque)
{
	struct guest_profile *profile = target->data;
	struct profile_run *run = opaque;

	if (!wss_sample_measured(sample)) {
		if (last && !profile->growth.windows)
			wss_tally_bad(&run->tally, sample->domain, &sample->error);
		else
			wss_warn("%s: %s", sample->domain, sample->error.text);
		return;
	}
	if (!wss_growth_add(&profile->growth, sample,
			    wss_tracker_by_name(sample->method)->touch_faults ? profile->vcpus : 0))
		wss_warn("%s: leaving out a window of another granularity", sample->domain);
	else if (sample->quality == WSS_QUALITY_DEGRADED)
		profile_print_notes(sample);
}

static void profile_on_trouble(struct wss_target *target, const struct wss_error *error,
			       void *opaque)
{
	struct guest_profile *profile = target->data;
	struct profile_run *run = opaque;

	if (profile->growth.windows)
		wss_warn("%s: %s", target->name, error->text);
	else
		wss_tally_bad(&run->tally, target->name, error);
}

static void profile_on_progress(const struct wss_round_progress *progress, void *opaque)
{
	wss_window_say_progress(progress, ((const struct profile_run *)opaque)->line);
}

static const struct wss_round_events events = {
	.opened = profile_on_opened,
	.left_out = profile_on_left_out,
	.sample = profile_on_sample,
	.trouble = profile_on_trouble,
	.progress = profile_on_progress,
};

/* --- what is printed --- */

static int profile_print_rows(const struct profile_run *run, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, run->cli->format, &run->cli->view, &wss_growth_layout, &report,
			    err) < 0)
		return -1;
	wss_report_set_first_width(report, run->name_width);
	for (size_t i = 0; i < run->n; i++)
		wss_growth_report(&run->profiles[i].growth, report);
	return wss_report_close(report, err);
}

/* Prints the table as a drawing, unless columns or an order were requested. */
static int profile_print(struct profile_run *run, struct wss_error *err)
{
	const struct wss_view *view = &run->cli->view;

	if (run->cli->format != WSS_FORMAT_TABLE || view->wide || view->columns || view->sort)
		return profile_print_rows(run, err);
	for (size_t i = 0; i < run->n; i++) {
		const struct wss_growth *growth = &run->profiles[i].growth;
		struct wss_growth_drawn drawn = wss_growth_drawn(growth);

		if (growth->windows)
			wss_growth_print(stdout, &drawn, wss_terminal_width());
	}
	return 0;
}

/* Content of one chart. */
struct profile_chart {
	struct wss_chart_source source;
	const struct wss_growth_drawn *guests;
	size_t n;
};

static void profile_draw(FILE *f, const void *opaque)
{
	const struct profile_chart *chart = opaque;

	wss_growth_plot(f, &chart->source, chart->guests, chart->n);
}

/*
 * Shows the time of the first guest's last window. The number of windows may differ between
 * guests.
 */
static void profile_describe_source(const struct profile_run *run, const struct wss_growth *growth,
				    struct wss_chart_source *source, char *extra, size_t size)
{
	if (source->host)
		return;
	source->host = run->host;
	source->start = growth->last.wall;
	source->length_ns = growth->last.requested_window_ns;
	if (growth->windows > 1)
		snprintf(extra, size, "mean of %u windows", growth->windows);
	source->extra = extra;
}

static int profile_plot(struct profile_run *run, struct wss_error *err)
{
	wss_auto_free struct wss_growth_drawn *list = wss_xcalloc(run->n, sizeof(*list));
	struct profile_chart chart = {.guests = list};
	char extra[48] = "";

	for (size_t i = 0; i < run->n; i++) {
		const struct wss_growth *growth = &run->profiles[i].growth;

		if (!growth->windows)
			continue;
		list[chart.n++] = wss_growth_drawn(growth);
		profile_describe_source(run, growth, &chart.source, extra, sizeof(extra));
	}
	return chart.n ? wss_plot_write("--plot", run->options->plot, profile_draw, &chart, err)
		       : 0;
}

/*
 * After an interruption, prints the curves of the complete windows; err states how many there
 * are.
 */
static void profile_print_kept(struct profile_run *run, struct wss_error *err)
{
	size_t windows = 0, wanted = run->options->round.measure.count * run->n;

	for (size_t i = 0; i < run->n; i++)
		windows += run->profiles[i].growth.windows;
	if (windows && profile_print(run, err) < 0)
		return;
	if (windows)
		wss_error_set(err, WSS_ERR_INTERRUPTED,
			      "interrupted: the curves cover %zu of %zu window%s", windows, wanted,
			      wss_plural(wanted));
	else
		wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted: no window was complete");
}

/* --- the round --- */

static int join_all(struct profile_run *run, struct wss_round *round, struct wss_targets *targets,
		    struct wss_error *err)
{
	for (size_t i = 0; i < targets->n; i++) {
		targets->list[i]->data = &run->profiles[i];
		if (wss_round_join(round, targets->list[i], NULL, targets->all, err) < 0)
			return -1;
		targets->list[i] = NULL;
	}
	return 0;
}

static int measure_all(struct profile_run *run, struct wss_targets *targets, struct wss_error *err)
{
	struct wss_round *round;
	int r;

	if (wss_round_new(&run->options->round, &events, run, &round, err) < 0)
		return -1;
	r = join_all(run, round, targets, err);
	if (r == 0)
		r = wss_round_run(round, err);
	wss_round_free(round);
	return r;
}

static int profile_targets(const struct wss_cli *cli, const struct profile_options *options,
			   struct wss_targets *targets)
{
	const struct wss_host *host = wss_hypervisor_host(targets->hypervisor);
	struct profile_run run = {.cli = cli,
				  .options = options,
				  .n = targets->n,
				  .name_width = wss_targets_name_width(targets)};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	memcpy(run.host, host->name, sizeof(run.host));
	run.profiles = wss_xcalloc(run.n, sizeof(*run.profiles));
	for (size_t i = 0; i < run.n; i++)
		wss_grid_init(&run.profiles[i].growth.grid, options->from_ns,
			      options->round.measure.window.track.window_ns);
	run.line = wss_progress_begin("measuring", wss_round_length_ns(&options->round, run.n));
	r = measure_all(&run, targets, &err);
	wss_progress_end(run.line);
	for (size_t i = 0; i < run.n; i++)
		wss_grid_find_knee(&run.profiles[i].growth.grid);
	if (r < 0 && err.code == WSS_ERR_INTERRUPTED)
		profile_print_kept(&run, &err);
	else if (r == 0)
		r = profile_print(&run, &err);
	if (r == 0 && options->plot)
		r = profile_plot(&run, &err);
	free(run.profiles);
	return r < 0 ? wss_cli_error(&err)
		     : wss_tally_exit_code(&run.tally, run.n - run.missed_by_none);
}

static int profile_run(struct wss_cli *cli, int argc, char **argv)
{
	struct profile_options options = {.from_ns = FROM_DEFAULT_NS,
					  .deadline_ns = WSS_TARGET_DEADLINE_NS};
	struct wss_targets targets = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	wss_measure_options_init(&options.round.measure, TO_DEFAULT_NS);
	options.round.jobs = WSS_ROUND_JOBS_DEFAULT;
	options.round.measure.window.curve = true;
	if (profile_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_plot_check("--plot", options.plot, false, &err) < 0 ||
	    wss_cli_find_targets(cli, options.deadline_ns, &targets, &err) < 0)
		return wss_cli_error(&err);
	code = profile_targets(cli, &options, &targets);
	wss_targets_free(&targets);
	return code;
}

static const struct wss_report_layout *const layouts[] = {&wss_growth_layout, NULL};

static const struct wss_option_values values[] = {
	{"granularity", "native 4k auto"},
	{NULL, NULL},
};

const struct wss_command wss_cmd_profile = {
	.name = "profile",
	.summary = "draw how a guest's working set grows with time",
	.help = wss_help_profile,
	.long_options = long_options,
	.take = profile_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.values = values,
	.run = profile_run,
};
