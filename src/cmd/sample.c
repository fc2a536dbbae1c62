/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "history/lock.h"
#include "history/sample-report.h"
#include "measure/profile.h"
#include "measure/round.h"
#include "measure/sample-order.h"
#include "show/progress.h"
#include "sizing/advice-text.h"
#include "sizing/publish-profile.h"

#define WINDOW_DEFAULT_NS (4 * WSS_NS_PER_S)
#define REPORT_DEFAULT_NS WSS_NS_PER_S
/* Longest window: a day. A longer one is a typing error, or would find all memory in use. */
#define WINDOW_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define COUNT_MAX 1000000

struct sample_options {
	struct wss_round_options round;
	uint64_t deadline_ns; /* for each guest, not counting its windows */
	struct wss_store_options history;
	bool granularity_given;
	bool store;
	bool publish;
};

enum {
	OPT_WINDOW = 1,
	OPT_COUNT,
	OPT_INTERVAL,
	OPT_CUMULATIVE,
	OPT_PUBLISH,
	OPT_PERSISTENT,
	OPT_STORE,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_WINDOW_LONG,
	WSS_STORE_LONG,
	{"window", required_argument, NULL, OPT_WINDOW},
	{"count", required_argument, NULL, OPT_COUNT},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"cumulative", no_argument, NULL, OPT_CUMULATIVE},
	{"publish", no_argument, NULL, OPT_PUBLISH},
	{"persistent", no_argument, NULL, OPT_PERSISTENT},
	{"store", no_argument, NULL, OPT_STORE},
	{NULL, 0, NULL, 0},
};

static int sample_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct sample_options *options = opaque;
	struct wss_measure_options *measure = &options->round.measure;
	uint64_t number;
	int taken;

	if (c == WSS_OPT_METHOD) {
		measure->methods = strcmp(value, "all") ? NULL : wss_trackers;
		if (measure->methods)
			return 0;
	}
	taken = wss_window_option(&options->round, &options->deadline_ns, c, value, err);
	if (!taken)
		taken = wss_store_option(&options->history, c, value, err);
	options->granularity_given = options->granularity_given || c == WSS_OPT_GRANULARITY;
	if (taken)
		return taken;
	switch (c) {
	case OPT_WINDOW:
		return wss_duration_parse(value, WINDOW_MAX_NS, "--window",
					  &measure->window.track.window_ns, err);
	case OPT_COUNT:
		if (wss_number_parse(value, 1, COUNT_MAX, "--count", &number, err) < 0)
			return -1;
		measure->count = (unsigned)number;
		return 0;
	case OPT_INTERVAL:
		return wss_duration_parse(value, WINDOW_MAX_NS, "--interval", &measure->interval_ns,
					  err);
	case OPT_CUMULATIVE:
		measure->cumulative = true;
		return 0;
	case OPT_PUBLISH:
		options->publish = true;
		return 0;
	case OPT_PERSISTENT:
		options->round.persistent = true;
		return 0;
	default:
		options->store = true;
		return 0;
	}
}

static const struct wss_report_layout *layout_of(const struct sample_options *options)
{
	const struct wss_measure_options *measure = &options->round.measure;

	return wss_sample_layout(measure->both,
				 measure->count > 1 || measure->cumulative || measure->methods);
}

static int check_series(struct wss_measure_options *measure, struct wss_error *err)
{
	if (measure->cumulative && measure->count > 1)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--count and --cumulative exclude each other: --cumulative takes a single window");
	if (!measure->interval_ns)
		measure->interval_ns =
			measure->cumulative ? REPORT_DEFAULT_NS : measure->window.track.window_ns;
	if (!measure->cumulative && measure->interval_ns < measure->window.track.window_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--interval must not be shorter than --window");
	if (measure->both && measure->cumulative)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--granularity both takes two windows, --cumulative only one");
	if (measure->methods && (measure->both || measure->cumulative))
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--method all takes whole windows of one granularity: not with --granularity both or --cumulative");
	return 0;
}

static int check_store(const struct wss_cli *cli, const struct sample_options *options,
		       struct wss_error *err)
{
	const struct wss_measure_options *measure = &options->round.measure;

	if (measure->both && options->store)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--store keeps samples of one granularity: not with --granularity both");
	if (measure->methods && (options->store || options->publish))
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--store and --publish keep samples of one method: not with --method all");
	if (options->round.persistent && !options->publish)
		return wss_error_set(err, WSS_ERR_USAGE, "--persistent needs --publish");
	if (options->publish && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--publish needs libvirt: it cannot go with --qmp");
	if (options->store && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE, WSS_CLI_QMP_NO_HISTORY);
	if (!options->store && options->history.given)
		return wss_error_set(err, WSS_ERR_USAGE, "--history and --keep need --store");
	if (options->store && measure->cumulative)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--store keeps samples of whole windows: not with --cumulative");
	return 0;
}

/*
 * Sets options for stored windows, on which decisions are based: single pages instead of large
 * ones, and a growth curve.
 */
static void choose_for_store(struct sample_options *options)
{
	struct wss_window_options *window = &options->round.measure.window;

	if (!options->store)
		return;
	window->growth = true;
	if (!options->granularity_given)
		window->track.granularity = WSS_GRANULARITY_AUTO;
}

static int sample_parse(struct wss_cli *cli, int argc, char **argv, struct sample_options *options,
			struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, layout_of(options), err) < 0)
		return -1;
	choose_for_store(options);
	if (check_series(&options->round.measure, err) < 0 || check_store(cli, options, err) < 0)
		return -1;
	return wss_cli_finish(cli, argc, argv, err);
}

struct sample_run {
	const struct wss_cli *cli;
	const struct sample_options *options;
	struct wss_report *report;
	struct wss_progress *line;   /* shown on the terminal; NULL if there is none */
	struct wss_history *history; /* NULL unless --store */
	struct wss_sample_order order;
	struct wss_tally tally;
	size_t total;		       /* guests that count as failed if they give no sample */
	size_t opted_out;	       /* guests left out of "all guests"; not in total */
	size_t stored;		       /* number of samples stored */
	size_t measured;	       /* number of guests measured */
	struct wss_sample last;	       /* sample of the last of these */
	struct wss_policy last_policy; /* policy of the last of these */
};

/* A target's data. */
struct sample_state {
	bool bad;      /* it has been counted as failed, once per guest */
	bool measured; /* last_good is set */
	struct wss_sample_place *place;
	struct wss_sample last_good;
};

static void sample_on_progress(const struct wss_round_progress *progress, void *opaque)
{
	wss_window_say_progress(progress, ((const struct sample_run *)opaque)->line);
}

static void count_bad(struct sample_run *run, struct wss_target *target,
		      const struct wss_error *error)
{
	struct sample_state *state = target->data;

	if (state->bad)
		wss_warn("%s: %s", target->name, error->text);
	else
		wss_tally_bad(&run->tally, target->name, error);
	state->bad = true;
}

/*
 * Whether the guest is due according to its policy. If the history cannot be read, every guest
 * is due.
 */
static bool is_due(struct sample_run *run, const struct wss_target *target)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_amount last;

	if (!run->history || !target->policy.period_ns.known)
		return true;
	if (wss_history_last(run->history, target->guest->config.uuid, &last, &error) < 0) {
		wss_warn("%s: %s", target->name, error.text);
		return true;
	}
	return wss_policy_due(&target->policy, last, wss_clock_wall_seconds());
}

/*
 * Whether to measure an opened guest. A named guest is always measured; of all guests, those
 * that run and are due. A guest that is not due counts as measured.
 */
static bool sample_on_opened(struct wss_target *target, void *opaque)
{
	struct sample_run *run = opaque;

	if (run->cli->n_domains || run->cli->qmp)
		return true;
	if (target->guest->state != WSS_GUEST_RUNNING) {
		wss_log(WSS_LOG_INFO, "%s: not measured: it is %s", target->name,
			target->guest->state_text);
		run->total--;
		return false;
	}
	return is_due(run, target);
}

static void sample_on_left_out(struct wss_target *target, void *opaque)
{
	struct sample_run *run = opaque;

	run->opted_out += target->policy.opt_out;
	run->total--;
}

/*
 * Prints the notes on an inexact sample, or on all, because a table has no room for them. The man page
 * documents the limits of each method. CSV and JSON include the notes in the record.
 */
static void sample_print_notes(const struct wss_sample *sample, bool all)
{
	/* A missing figure also has a note. */
	if (!all && sample->quality == WSS_QUALITY_OK &&
	    sample->low_bytes.value == sample->high_bytes.value && sample->memory.rss_bytes.known)
		return;
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s: note: %s", sample->domain, sample->notes[i]);
}

static void sample_print(const struct wss_sample *sample, bool last, void *opaque)
{
	struct sample_run *run = opaque;

	/* Who was named by a UUID, or an ID, has a longer name. */
	wss_report_set_first_width(run->report, wss_name_width(0, sample->domain));
	if (!wss_sample_measured(sample)) {
		wss_report_bad_row(run->report, sample);
		return;
	}
	wss_progress_hold(run->line);
	wss_report_row(run->report, sample);
	fflush(stdout);
	wss_progress_release(run->line);
	if (run->cli->format == WSS_FORMAT_TABLE && last)
		sample_print_notes(sample, run->options->round.measure.methods);
}

static void sample_on_sample(struct wss_target *target, const struct wss_sample *sample, bool last,
			     void *opaque)
{
	struct sample_state *state = target->data;
	struct sample_run *run = opaque;
	struct wss_error error = WSS_ERROR_INIT;

	wss_sample_order_give(&run->order, state->place, sample, last);
	if (!wss_sample_measured(sample)) {
		count_bad(run, target, &sample->error);
		return;
	}
	if (!state->measured)
		run->measured++;
	state->measured = true;
	state->last_good = *sample;
	run->last = *sample;
	run->last_policy = target->policy;
	if (run->history && wss_history_add(run->history, sample, &error) < 0)
		count_bad(run, target, &error);
	else
		run->stored++;
}

static bool sample_on_publish(struct wss_target *target, struct wss_profile *ret_profile,
			      void *opaque)
{
	struct sample_state *state = target->data;
	struct sample_run *run = opaque;

	if (!run->options->publish || !state->measured)
		return false;
	wss_publish_profile(run->history, &state->last_good, &target->policy, ret_profile);
	return true;
}

static void sample_on_trouble(struct wss_target *target, const struct wss_error *error,
			      void *opaque)
{
	if (error->code != WSS_ERR_INTERRUPTED)
		count_bad(opaque, target, error);
}

static void sample_on_done(struct wss_target *target, void *opaque)
{
	struct sample_state *state = target->data;

	wss_sample_order_end(&((struct sample_run *)opaque)->order, state->place);
}

static const struct wss_round_events events = {
	.opened = sample_on_opened,
	.left_out = sample_on_left_out,
	.sample = sample_on_sample,
	.publish = sample_on_publish,
	.trouble = sample_on_trouble,
	.done = sample_on_done,
	.progress = sample_on_progress,
};

static int join_all(struct wss_round *round, struct sample_run *run, struct wss_targets *targets,
		    struct wss_error *err)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct wss_target *target = targets->list[i];
		struct sample_state *state = wss_xcalloc(1, sizeof(*state));

		state->place = &run->order.places[i];
		target->release_data = free;
		target->data = state;
		if (wss_round_join(round, target, NULL, targets->all, err) < 0)
			return -1;
		targets->list[i] = NULL;
	}
	return 0;
}

static int run_round(struct sample_run *run, struct wss_targets *targets, struct wss_error *err)
{
	wss_auto_free struct wss_sample_place *places = wss_xcalloc(targets->n, sizeof(*places));
	struct wss_round *round;
	int r;

	run->total = targets->n;
	run->order = (struct wss_sample_order){
		.places = places, .n = targets->n, .print = sample_print, .opaque = run};
	if (wss_round_new(&run->options->round, &events, run, &round, err) < 0)
		return -1;
	r = join_all(round, run, targets, err);
	run->line = wss_progress_begin("measuring",
				       wss_round_length_ns(&run->options->round, run->total));
	if (r == 0)
		r = wss_round_run(round, err);
	wss_sample_order_flush(&run->order);
	wss_progress_end(run->line);
	wss_round_free(round);
	return r;
}

/* Suggests the next step to a user who stores samples. */
static void say_next_step(const struct sample_run *run)
{
	const struct wss_advice_options options = WSS_ADVICE_OPTIONS_INIT;
	const struct wss_advice_guest guest = {
		.uuid = run->last.uuid, .active = true, .policy = &run->last_policy};
	struct wss_error error = WSS_ERROR_INIT;
	char text[WSS_ADVICE_TEXT_MAX];
	struct wss_advice advice;

	if (!run->history || !run->measured || run->cli->format != WSS_FORMAT_TABLE ||
	    !isatty(STDERR_FILENO))
		return;
	if (run->measured > 1) {
		wss_log(WSS_LOG_INFO, "%zu guests are in the history: recommend sizes them",
			run->measured);
		return;
	}
	if (wss_advice_read(run->history, &guest,
			    wss_advice_since(&options, wss_clock_wall_seconds()), &options, &advice,
			    &error) < 0)
		return;
	if (wss_advice_step_text(&advice, text))
		wss_log(WSS_LOG_INFO, "%s: %s", run->last.domain, text);
	wss_advice_free(&advice);
}

/*
 * Measures all targets and writes the samples to the report and the history. Returns the exit
 * code.
 */
static int sample_targets(struct sample_run *run, struct wss_targets *targets)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	const struct wss_cli *cli = run->cli;
	int r;

	if (wss_report_open(stdout, cli->format, &cli->view, layout_of(run->options), &run->report,
			    &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(run->report, wss_targets_name_width(targets));
	r = run_round(run, targets, &err);
	if (r == 0 && run->history)
		r = wss_history_prune(run->history, &run->options->history.limits,
				      wss_clock_wall_seconds(), &err);
	if (wss_report_close(run->report, &out_err) < 0)
		return wss_cli_error(&out_err);
	if (r < 0 && err.code == WSS_ERR_INTERRUPTED && run->history)
		wss_error_set(&err, err.code, "interrupted: stored %zu sample%s", run->stored,
			      wss_plural(run->stored));
	if (r < 0)
		return wss_cli_error(&err);
	/* A path that was mistyped begins a second history, of which nobody else knows. */
	if (run->stored && run->options->history.path && wss_history_is_new(run->history))
		wss_log(WSS_LOG_INFO, "began a new history: %s", run->options->history.path);
	/* A periodic job stays silent. */
	if (!run->total && run->opted_out && isatty(STDERR_FILENO))
		wss_log(WSS_LOG_INFO, "no guest was measured: %s opted out by policy",
			run->opted_out > 1 ? "all running guests" : "the only running guest");
	say_next_step(run);
	return wss_tally_exit_code(&run->tally, run->total);
}

/* Opened before anything is measured, so that an unwritable history wastes no window. */
static int open_history(struct sample_run *run, int *ret_lock, struct wss_error *err)
{
	wss_auto_free char *path = wss_xchecked(wss_store_path(&run->options->history));

	if (wss_history_open(path, &run->history, err) < 0)
		return -1;
	if (run->cli->n_domains || wss_history_lock_round(run->history, ret_lock, err) == 0)
		return 0;
	if (err->code == WSS_ERR_BUSY)
		wss_error_set(err, err->code, "%s, or omit --store", err->text);
	return -1;
}

/* Where there is no place for profiles, samples that are stored are worth a round. */
static int check_publish(struct sample_options *options, const struct wss_hypervisor *hypervisor,
			 struct wss_error *err)
{
	const char *uri = wss_hypervisor_uri(hypervisor);

	if (!options->publish || wss_hypervisor_has_inventory(hypervisor))
		return 0;
	if (!options->store)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "--publish needs libvirt: %s has no place for profiles", uri);
	wss_log(WSS_LOG_INFO, "nothing is published: %s has no place for profiles", uri);
	options->publish = false;
	return 0;
}

static int sample_run(struct wss_cli *cli, int argc, char **argv)
{
	struct sample_options options = {.history = WSS_STORE_OPTIONS_INIT,
					 .deadline_ns = WSS_TARGET_DEADLINE_NS};
	struct sample_run run = {.cli = cli, .options = &options};
	struct wss_targets targets = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	wss_auto_close_locked int lock = -1;
	int code;

	wss_measure_options_init(&options.round.measure, WINDOW_DEFAULT_NS);
	options.round.measure.interval_ns = 0;
	options.round.jobs = WSS_ROUND_JOBS_DEFAULT;
	if (sample_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	options.round.publish_when = options.store ? WSS_PUBLISH_WHEN_DUE : WSS_PUBLISH_NOW;
	if (wss_cli_find_targets(cli, options.deadline_ns, &targets, &err) < 0)
		return wss_cli_error(&err);
	if (check_publish(&options, targets.hypervisor, &err) < 0 ||
	    (options.store && open_history(&run, &lock, &err) < 0))
		code = wss_cli_error(&err);
	else
		code = sample_targets(&run, &targets);
	wss_history_close_unused(run.history);
	wss_targets_free(&targets);
	return code;
}

static const struct wss_report_layout *const layouts[] = {&wss_sample_all_layout, NULL};

const struct wss_command wss_cmd_sample = {
	.name = "sample",
	.summary = "measure the working set of guests",
	.help = wss_help_sample,
	.long_options = long_options,
	.take = sample_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = sample_run,
};
