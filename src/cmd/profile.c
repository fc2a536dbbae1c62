/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/plot.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "out/growth-chart.h"
#include "out/progress.h"
#include "service/round.h"
#include "wss/curve.h"

#define FROM_DEFAULT_NS WSS_NS_PER_MS
#define TO_DEFAULT_NS (40 * WSS_NS_PER_S)
#define TO_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define REPEAT_MAX 1000

struct profile_options {
	struct wss_measure_options measure;
	uint64_t deadline_ns;
	uint64_t from_ns;
	const char *plot;
};

/* What the windows of one guest add up to. */
struct guest_profile {
	struct wss_grid grid;
	struct wss_sample last; /* of the last window that was measured */
	unsigned windows;
	unsigned degraded; /* of them */
	unsigned vcpus;	   /* of the guest, at least 1 */
};

struct profile_run {
	const struct wss_cli *cli;
	const struct profile_options *options;
	struct guest_profile *profiles; /* one a guest, n of them */
	size_t n;
	size_t missed_by_none; /* of them */
	size_t name_width;
	char host[65];
	struct wss_tally tally;
};

static const struct wss_report_layout layout;

enum { OPT_FROM = 1, OPT_TO, OPT_REPEAT, OPT_PLOT };

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_WINDOW_LONG,
	{ "from", required_argument, NULL, OPT_FROM },
	{ "to", required_argument, NULL, OPT_TO },
	{ "repeat", required_argument, NULL, OPT_REPEAT },
	{ "plot", required_argument, NULL, OPT_PLOT },
	{ NULL, 0, NULL, 0 },
};

static int option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct profile_options *options = opaque;
	int taken = wss_window_option(&options->measure, &options->deadline_ns, c, value, err);
	uint64_t number;

	if (taken)
		return taken;
	switch (c) {
	case OPT_FROM:
		return wss_duration_parse(value, TO_MAX_NS, "--from", &options->from_ns, err);
	case OPT_TO:
		return wss_duration_parse(value, TO_MAX_NS, "--to",
					  &options->measure.window.track.window_ns, err);
	case OPT_REPEAT:
		if (wss_number_parse(value, 1, REPEAT_MAX, "--repeat", &number, err) < 0)
			return -1;
		options->measure.count = (unsigned)number;
		return 0;
	default:
		options->plot = value;
		return 0;
	}
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct profile_options *options,
		 struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &layout, err) < 0)
		return -1;
	if (options->from_ns >= options->measure.window.track.window_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "--from must be shorter than --to");
	if (options->measure.both)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--granularity both is for sample: a curve has one granularity");
	options->measure.interval_ns = options->measure.window.track.window_ns;
	return wss_cli_finish(cli, argc, argv, err);
}

/* Windows of another method or granularity than the last are never averaged with it. */
static bool same_kind(const struct wss_sample *a, const struct wss_sample *b)
{
	return a->method == b->method &&
	       a->granularity_bytes.value == b->granularity_bytes.value;
}

static bool on_opened(struct wss_target *target, void *opaque)
{
	struct guest_profile *profile = target->data;

	(void)opaque;
	profile->vcpus = target->guest->config.vcpus ? target->guest->config.vcpus : 1;
	return true;
}

static void on_left_out(struct wss_target *target, void *opaque)
{
	struct profile_run *run = opaque;

	(void)target;
	run->missed_by_none++;
}

static void print_notes(const struct wss_sample *sample)
{
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s: note: %s", sample->domain, sample->notes[i]);
}

static void on_sample(struct wss_target *target, const struct wss_sample *sample, bool last,
		      void *opaque)
{
	struct guest_profile *profile = target->data;
	struct profile_run *run = opaque;

	if (!wss_sample_measured(sample)) {
		if (last && !profile->windows)
			wss_tally_bad(&run->tally, sample->domain, &sample->error);
		else
			wss_warn("%s: %s", sample->domain, sample->error.text);
		return;
	}
	if (profile->windows && !same_kind(sample, &profile->last)) {
		wss_warn("%s: leaving out a window of another granularity", sample->domain);
		return;
	}
	wss_grid_add(&profile->grid, sample->curve, sample->n_curve,
		     wss_tracker_by_name(sample->method)->touch_faults ? profile->vcpus : 0);
	profile->last = *sample;
	profile->windows++;
	if (sample->quality == WSS_QUALITY_DEGRADED) {
		profile->degraded++;
		print_notes(sample);
	}
}

static void on_trouble(struct wss_target *target, const struct wss_error *error, void *opaque)
{
	struct guest_profile *profile = target->data;
	struct profile_run *run = opaque;

	if (profile->windows)
		wss_warn("%s: %s", target->name, error->text);
	else
		wss_tally_bad(&run->tally, target->name, error);
}

static const struct wss_round_events events = {
	.opened = on_opened,
	.left_out = on_left_out,
	.sample = on_sample,
	.trouble = on_trouble,
};

static struct wss_growth_drawn growth_of(struct guest_profile *profile)
{
	return (struct wss_growth_drawn){
		.domain = profile->last.domain,
		.method = profile->last.method,
		.granularity_bytes = profile->last.granularity_bytes.value,
		.degraded = profile->degraded > 0,
		.rss_bytes = profile->last.memory.rss_bytes,
		.balloon_bytes = profile->last.memory.balloon_bytes,
		.grid = &profile->grid,
	};
}

/* One row a grid point of a guest. */
struct point_row {
	const struct guest_profile *profile;
	const struct wss_grid_point *point;
};

static const struct wss_sample *last_of(const void *row)
{
	return &((const struct point_row *)row)->profile->last;
}

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(last_of(row)->domain);
}

static struct wss_value get_method(const void *row)
{
	return wss_value_text(last_of(row)->method);
}

static struct wss_value get_granularity(const void *row)
{
	return wss_value_amount(last_of(row)->granularity_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_seconds(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->point->ns, WSS_KIND_DURATION);
}

/* Windows by larger pages than 4 KiB give upper bounds. */
static struct wss_value size_value(const void *row, uint64_t bytes)
{
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 last_of(row)->granularity_bytes.value > 4096 ? WSS_BOUND_AT_MOST
									      : WSS_BOUND_EXACT);
}

static struct wss_value get_mean(const void *row)
{
	const struct wss_grid_point *point = ((const struct point_row *)row)->point;

	return size_value(row, wss_u64_from_double(point->mean_bytes + 0.5));
}

static struct wss_value get_min(const void *row)
{
	return size_value(row, ((const struct point_row *)row)->point->min_bytes);
}

static struct wss_value get_max(const void *row)
{
	return size_value(row, ((const struct point_row *)row)->point->max_bytes);
}

static struct wss_value get_high(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->high_bytes,
				WSS_KIND_BYTES);
}

/* The method's bounds; where there are none the mean is known as well as it can be. */
static struct wss_value get_bound_low(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->bound_low_bytes,
				WSS_KIND_BYTES);
}

static struct wss_value get_bound_high(const void *row)
{
	return wss_value_amount(((const struct point_row *)row)->point->bound_high_bytes,
				WSS_KIND_BYTES);
}

static struct wss_value get_windows(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->point->n, WSS_KIND_COUNT);
}

static struct wss_value get_knee(const void *row)
{
	const struct point_row *r = row;
	const struct wss_grid *grid = &r->profile->grid;

	return wss_value_number(grid->knee < grid->n && r->point == &grid->points[grid->knee],
				WSS_KIND_BOOL);
}

static struct wss_value get_degraded(const void *row)
{
	return wss_value_number(((const struct point_row *)row)->profile->degraded, WSS_KIND_COUNT);
}

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain, "Name of the guest", false },
	{ "method", NULL, "METHOD", -6, get_method, "Name of the method that measured it", false },
	{ "granularity_bytes", NULL, "GRAN", 5, get_granularity,
	  "Granularity: the largest page-table entry seen, in bytes", false },
	{ "seconds", NULL, "TIME", 8, get_seconds, "Time since arming, in seconds", false },
	{ "mean_bytes", NULL, "WSS", 11, get_mean,
	  "Working set within that time, mean of the windows, in bytes", false },
	{ "min_bytes", NULL, "MIN", 11, get_min, "The smallest of the windows, in bytes", false },
	{ "max_bytes", NULL, "MAX", 11, get_max, "The largest of the windows, in bytes", false },
	{ "fault_high_bytes", NULL, "HIGH", 8, get_high,
	  "Upper bound, the time that faults took considered, in bytes", false },
	{ "windows", NULL, "WINDOWS", 7, get_windows, "Windows that reached this time, a count",
	  false },
	{ "knee", NULL, "KNEE", -4, get_knee, "Whether growth stops here", false },
	{ "degraded_windows", NULL, "DEGRADED", 8, get_degraded,
	  "Degraded windows of the guest, a count", false },
	{ "low_bytes", NULL, "WSS-LOW", 8, get_bound_low,
	  "The lowest lower bound of the windows, where the method only bounds the set, in bytes",
	  false },
	{ "high_bytes", NULL, "WSS-HIGH", 8, get_bound_high,
	  "The highest upper bound of them, in bytes", false },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/growth/1",
	.array_key = "points",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,seconds,mean_bytes,min_bytes,max_bytes,windows,knee",
	.wide = "domain,method,granularity_bytes,seconds,mean_bytes,min_bytes,max_bytes,"
		"fault_high_bytes,low_bytes,high_bytes,windows,degraded_windows,knee",
};

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

static int print_rows(const struct profile_run *run, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, run->cli->format, &run->cli->view, &layout, &report, err) < 0)
		return -1;
	wss_report_set_first_width(report, run->name_width);
	for (size_t i = 0; i < run->n; i++) {
		const struct guest_profile *profile = &run->profiles[i];

		for (size_t k = 0; k < profile->grid.n; k++)
			if (profile->grid.points[k].n)
				wss_report_row(report, &(struct point_row){
							       profile, &profile->grid.points[k] });
	}
	return wss_report_close(report, err);
}

/* The table is a drawing, unless columns or an order were asked for. */
static int print(struct profile_run *run, struct wss_error *err)
{
	const struct wss_view *view = &run->cli->view;

	if (run->cli->format != WSS_FORMAT_TABLE || view->wide || view->columns || view->sort)
		return print_rows(run, err);
	for (size_t i = 0; i < run->n; i++) {
		struct wss_growth_drawn growth = growth_of(&run->profiles[i]);

		if (run->profiles[i].windows)
			wss_growth_print(stdout, &growth, wss_terminal_width());
	}
	return 0;
}

/* What is drawn into one chart. */
struct chart {
	struct wss_chart_source source;
	const struct wss_growth_drawn *guests;
	size_t n;
};

static void draw(FILE *f, const void *opaque)
{
	const struct chart *chart = opaque;

	wss_growth_plot(f, &chart->source, chart->guests, chart->n);
}

/* The time is that of the first guest's last window; others may have taken more or fewer. */
static void describe_source(const struct profile_run *run, const struct guest_profile *profile,
			    struct wss_chart_source *source, char *extra, size_t size)
{
	if (source->host)
		return;
	source->host = run->host;
	source->start = profile->last.wall;
	source->length_ns = profile->last.requested_window_ns;
	if (profile->windows > 1)
		snprintf(extra, size, "mean of %u windows", profile->windows);
	source->extra = extra;
}

static int plot(struct profile_run *run, struct wss_error *err)
{
	wss_auto_free struct wss_growth_drawn *list = calloc(run->n + 1, sizeof(*list));
	struct chart chart = { .guests = list };
	char extra[48] = "";

	if (!list)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < run->n; i++) {
		if (!run->profiles[i].windows)
			continue;
		list[chart.n++] = growth_of(&run->profiles[i]);
		describe_source(run, &run->profiles[i], &chart.source, extra, sizeof(extra));
	}
	return chart.n ? wss_plot_write(run->options->plot, draw, &chart, err) : 0;
}

/* After an interruption: prints what the windows that were complete show; err says how many. */
static void profile_print_kept(struct profile_run *run, struct wss_error *err)
{
	size_t windows = 0, wanted = run->options->measure.count * run->n;

	for (size_t i = 0; i < run->n; i++)
		windows += run->profiles[i].windows;
	if (windows && print(run, err) < 0)
		return;
	if (windows)
		wss_error_set(err, WSS_ERR_INTERRUPTED,
			      "interrupted: the curves are of %zu of %zu windows", windows, wanted);
	else
		wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted: no window was complete");
}

static int join_all(struct profile_run *run, struct wss_round *round,
		    struct wss_targets *targets, struct wss_error *err)
{
	for (size_t i = 0; i < targets->n; i++) {
		targets->list[i]->data = &run->profiles[i];
		if (wss_round_join(round, targets->list[i], targets->all, err) < 0)
			return -1;
		targets->list[i] = NULL;
	}
	return 0;
}

static int measure_all(struct profile_run *run, struct wss_targets *targets, struct wss_error *err)
{
	const struct wss_round_options options = {
		.measure = run->options->measure,
		.jobs = WSS_ROUND_JOBS_DEFAULT,
	};
	struct wss_round *round;
	int r;

	if (wss_round_new(&options, &events, run, &round, err) < 0)
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
	struct profile_run run = { .cli = cli, .options = options, .n = targets->n,
				   .name_width = wss_targets_name_width(targets) };
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_progress *progress;
	int r;

	memcpy(run.host, host->name, sizeof(run.host));
	run.profiles = calloc(run.n ? run.n : 1, sizeof(*run.profiles));
	if (!run.profiles) {
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
		return wss_cli_error(&err);
	}
	for (size_t i = 0; i < run.n; i++)
		wss_grid_init(&run.profiles[i].grid, options->from_ns,
			      options->measure.window.track.window_ns);
	progress = wss_progress_begin("measuring",
				      options->measure.interval_ns * options->measure.count);
	r = measure_all(&run, targets, &err);
	wss_progress_end(progress);
	for (size_t i = 0; i < run.n; i++)
		wss_grid_find_knee(&run.profiles[i].grid);
	if (r < 0 && err.code == WSS_ERR_INTERRUPTED)
		profile_print_kept(&run, &err);
	else if (r == 0)
		r = print(&run, &err);
	if (r == 0 && options->plot)
		r = plot(&run, &err);
	free(run.profiles);
	return r < 0 ? wss_cli_error(&err)
		     : wss_tally_exit_code(&run.tally, run.n - run.missed_by_none);
}

static int profile_run(struct wss_cli *cli, int argc, char **argv)
{
	struct profile_options options = { .from_ns = FROM_DEFAULT_NS,
					   .deadline_ns = WSS_TARGET_DEADLINE_NS };
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	wss_measure_options_init(&options.measure, TO_DEFAULT_NS);
	options.measure.window.curve = true;
	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_plot_check(options.plot, false, &err) < 0 ||
	    wss_cli_find_targets(cli, options.deadline_ns, &targets, &err) < 0)
		return wss_cli_error(&err);
	code = profile_targets(cli, &options, &targets);
	wss_targets_free(&targets);
	return code;
}

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, option_take };

const struct wss_command wss_cmd_profile = {
	.name = "profile",
	.summary = "draw how a guest's working set grows with time",
	.help = wss_help_profile,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = profile_run,
};
