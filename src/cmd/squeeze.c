/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "balloon/squeeze-report.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/balloon.h"
#include "help-text.h"

#define SETTLE_NS_MAX (600 * WSS_NS_PER_S)
#define INTERVAL_NS_MAX (3600 * WSS_NS_PER_S)
/* Between two looks at a guest that waits for a step. */
#define PAUSE_NS WSS_NS_PER_S

enum {
	OPT_STEP = 1,
	OPT_SETTLE,
	OPT_INTERVAL,
	OPT_FLOOR,
	OPT_DRY_RUN,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_SIZING_LONG,
	{"step", required_argument, NULL, OPT_STEP},
	{"settle", required_argument, NULL, OPT_SETTLE},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"floor", required_argument, NULL, OPT_FLOOR},
	{"dry-run", no_argument, NULL, OPT_DRY_RUN},
	{NULL, 0, NULL, 0},
};

struct squeeze_options {
	struct balloon_options balloon; /* moves the balloon */
	struct wss_squeeze_options squeeze;
	bool dry_run;
};

/* Whole seconds, because guests report and are looked at no more often. */
static int seconds_parse(const char *value, uint64_t max_ns, const char *what, uint64_t *ret_s,
			 struct wss_error *err)
{
	uint64_t ns;

	if (wss_duration_parse(value, max_ns, what, &ns, err) < 0)
		return -1;
	if (ns % WSS_NS_PER_S)
		return wss_error_set(err, WSS_ERR_USAGE, "%s: '%s' is not in whole seconds", what,
				     value);
	*ret_s = ns / WSS_NS_PER_S;
	return 0;
}

static int squeeze_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct squeeze_options *options = opaque;
	struct wss_squeeze_options *squeeze = &options->squeeze;

	switch (c) {
	case OPT_STEP:
		return wss_whole_percent_parse(value, 1, WSS_SQUEEZE_STEP_PERCENT_MAX, "--step",
					       &squeeze->step_percent, err);
	case OPT_SETTLE:
		return seconds_parse(value, SETTLE_NS_MAX, "--settle", &squeeze->settle_s, err);
	case OPT_INTERVAL:
		return seconds_parse(value, INTERVAL_NS_MAX, "--interval", &squeeze->interval_s,
				     err);
	case OPT_FLOOR:
		return wss_size_parse(value, "--floor", &squeeze->floor_bytes, err);
	case OPT_DRY_RUN:
		options->dry_run = true;
		return 0;
	default:
		return wss_sizing_option(&options->balloon.sizing, c, value, err);
	}
}

static const struct wss_report_layout *layout_of(const struct squeeze_options *options)
{
	return options->dry_run ? &wss_squeeze_plan_layout : &wss_squeeze_layout;
}

static int squeeze_parse(struct wss_cli *cli, int argc, char **argv,
			 struct squeeze_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, layout_of(options), err) < 0 || wss_sizing_check(cli, err) < 0 ||
	    wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (cli->all || cli->n_domains != 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "squeeze takes one DOMAIN: name the guest to be squeezed");
	return 0;
}

/* What is kept of a guest once the controller has ended. */
struct squeeze_run {
	const struct wss_cli *cli;
	const struct squeeze_options *options;
	struct wss_tally tally;
	struct wss_squeeze_row row;
	struct wss_policy policy;
	char name[256], uuid[WSS_UUID_TEXT_MAX], error[512], no_step[WSS_SQUEEZE_TEXT_MAX];
	bool done;
};

static void run_name(struct squeeze_run *run, const struct wss_target *target)
{
	snprintf(run->name, sizeof(run->name), "%s", wss_target_name(target));
	run->row.domain = run->name;
	if (!target->guest)
		return;
	snprintf(run->uuid, sizeof(run->uuid), "%s", target->guest->config.uuid);
	run->row.uuid = run->uuid;
	run->policy = target->policy;
}

/* Appends " NAME=VALUE", or nothing if the value is unknown. */
static void amount_append(char *text, size_t size, const char *name, struct wss_amount amount)
{
	size_t len = strlen(text);

	if (amount.known)
		snprintf(text + len, size - len, " %s=%" PRIu64, name, amount.value);
}

static void point_log(const char *name, const struct wss_edge_point *point)
{
	char text[400] = "";

	amount_append(text, sizeof(text), "major_faults_per_s", point->major_faults_per_s);
	amount_append(text, sizeof(text), "swapped_bytes_per_s", point->swapped_bytes_per_s);
	amount_append(text, sizeof(text), "read_bytes_per_s", point->read_bytes_per_s);
	amount_append(text, sizeof(text), "pressure_permille", point->pressure_permille);
	amount_append(text, sizeof(text), "usable_bytes", point->usable_bytes);
	amount_append(text, sizeof(text), "free_bytes", point->free_bytes);
	amount_append(text, sizeof(text), "refused_bytes", point->refused_bytes);
	wss_debug("%s: observed size_bytes=%" PRIu64 "%s%s%s", name, point->size_bytes, text,
		  point->grew ? " grew" : "", point->returned ? " returned" : "");
}

static void on_squeezed(const struct wss_target *target, const struct wss_squeeze *squeeze,
			void *opaque)
{
	struct squeeze_run *run = opaque;

	run_name(run, target);
	for (size_t i = 0; i < squeeze->n_points; i++)
		point_log(run->name, &squeeze->points[i]);
	wss_squeeze_row_end(&run->row, squeeze);
	run->done = true;
}

static const char *unrecommended_text(const struct wss_history *history,
				      const struct wss_advice *advice)
{
	if (!history)
		return "there is no history";
	if (advice->only_writes)
		return "its windows in the history show only writes";
	switch (advice->status) {
	case WSS_ADVICE_TOO_EARLY:
		return "fewer than 10 windows in the history";
	case WSS_ADVICE_OPTED_OUT:
		return "its policy opts out";
	case WSS_ADVICE_NO_SIZE:
		return "what it cannot give up is unknown in the history";
	default:
		return "no window in the history";
	}
}

/* Adds the recommendation of the history, as recommend has it. */
static int run_recommend(struct squeeze_run *run, struct wss_history *history,
			 struct wss_error *err)
{
	const struct wss_advice_options *options = &run->options->balloon.sizing.advice;
	const struct wss_advice_guest guest = {
		.uuid = run->row.uuid, .active = true, .policy = &run->policy};
	time_t since = wss_advice_since(options, wss_clock_wall_seconds());
	struct wss_advice advice;

	if (wss_advice_read(history, &guest, since, options, &advice, err) < 0)
		return -1;
	run->row.recommended_bytes = advice.sizing.recommended_bytes;
	if (!run->row.recommended_bytes.known)
		run->row.unrecommended = unrecommended_text(history, &advice);
	wss_advice_free(&advice);
	return 0;
}

static int run_print(struct squeeze_run *run, bool bad, struct wss_error *err)
{
	struct wss_report *report;

	if (wss_report_open(stdout, run->cli->format, &run->cli->view, layout_of(run->options),
			    &report, err) < 0)
		return -1;
	wss_report_set_first_width(report, wss_name_width(0, run->row.domain));
	if (bad)
		wss_report_bad_row(report, &run->row);
	else
		wss_report_row(report, &run->row);
	return wss_report_close(report, err);
}

/* Prints a guest that failed, with the first error; the events have logged it. */
static int run_print_failure(struct squeeze_run *run)
{
	struct wss_error err = WSS_ERROR_INIT;

	run->row.domain = run->cli->domains[0];
	snprintf(run->error, sizeof(run->error), "%s", run->tally.error.text);
	run->row.error = run->error;
	if (run->tally.bad && run_print(run, true, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run->tally, 1);
}

/* Keeps for recommend what was found. Without a size at which the guest did not page, that is nothing. */
static int run_keep(const struct squeeze_run *run, const char *path, struct wss_error *err)
{
	const struct wss_edge *paging = &run->row.edges.paging;
	struct wss_history *history;
	int r;

	if (!run->done || !paging->high_bytes.known)
		return 0;
	if (wss_history_open(path, &history, err) < 0)
		return -1;
	r = wss_history_note_squeeze(history, run->uuid, paging->high_bytes.value,
				     paging->edge_bytes.known, err);
	wss_history_close(history);
	return r;
}

static int squeeze_act(struct squeeze_run *run, struct squeeze_options *options)
{
	const struct wss_control_squeeze squeeze = {
		.options = options->squeeze, .done = on_squeezed, .opaque = run};
	wss_auto_free char *path = wss_xchecked(wss_store_path(&options->balloon.sizing.history));
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	size_t guests = 0;
	int r;

	options->balloon.control.squeeze = &squeeze;
	options->balloon.control.window_ns = 0;
	options->balloon.control.pause_ns = PAUSE_NS;
	if (balloon_carry_out(run->cli, &options->balloon, path, &run->tally, &guests, &err) < 0 ||
	    run_keep(run, path, &err) < 0)
		return wss_cli_error(&err);
	if (!run->done && wss_stop_requested())
		return 128 + wss_stop_signal();
	if (!run->done)
		return run_print_failure(run);
	if (wss_sizing_open(&options->balloon.sizing, &history, &err) < 0)
		return wss_cli_error(&err);
	r = run_recommend(run, history, &err);
	wss_history_close(history);
	if (r < 0 || run_print(run, false, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run->tally, guests);
}

static int preview_look(struct squeeze_run *run, const struct wss_target *target,
			struct wss_history *history, struct wss_error *err)
{
	struct wss_look look = ((const struct balloon_sight *)target->data)->look;

	if (wss_look_journal(history, run->row.uuid, &look, err) < 0)
		return -1;
	wss_squeeze_row_preview(&run->row, &look, &run->policy, &run->options->squeeze,
				run->no_step);
	if (run->row.refusal)
		balloon_hint(run->cli, run->options->balloon.sizing.history.path, target->guest,
			     run->row.refusal, run->row.hint);
	return run_recommend(run, history, err);
}

static int squeeze_preview(struct squeeze_run *run, struct wss_targets *targets,
			   struct wss_history *history)
{
	struct wss_error err = WSS_ERROR_INIT, refusal = WSS_ERROR_INIT;
	const struct wss_target *target;

	if (wss_cli_open_targets(run->cli, WSS_TARGET_DEADLINE_NS, targets, &err) < 0 ||
	    wss_targets_run(targets, balloon_target_look, false, &err) < 0)
		return wss_cli_error(&err);
	target = targets->list[0];
	run_name(run, target);
	if (target->error.code) {
		wss_tally_bad(&run->tally, run->name, &target->error);
		return run_print_failure(run);
	}
	if (preview_look(run, target, history, &err) < 0 || run_print(run, false, &err) < 0)
		return wss_cli_error(&err);
	if (run->cli->format == WSS_FORMAT_TABLE)
		balloon_say_hint(run->name, run->row.hint);
	if (run->row.refusal) {
		wss_error_set(&refusal, WSS_ERR_UNSUPPORTED, "refused: %s", run->row.refusal);
		wss_tally_count(&run->tally, &refusal);
	}
	return wss_tally_exit_code(&run->tally, 1);
}

static int squeeze_run(struct wss_cli *cli, int argc, char **argv)
{
	struct squeeze_options options = {
		.balloon = {.sizing = WSS_SIZING_OPTIONS_INIT,
			    .control = WSS_BALLOON_OPTIONS_INIT,
			    .apply = true},
		.squeeze = WSS_SQUEEZE_OPTIONS_INIT,
	};
	/* Static, because a thread that libvirt never answers may outlive this call. */
	static struct squeeze_run run;
	struct wss_targets targets = {.n = 0};
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (squeeze_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	run.cli = cli;
	run.options = &options;
	if (!options.dry_run)
		return squeeze_act(&run, &options);
	if (wss_sizing_open(&options.balloon.sizing, &history, &err) < 0)
		return wss_cli_error(&err);
	code = squeeze_preview(&run, &targets, history);
	wss_targets_free(&targets);
	wss_history_close(history);
	return code;
}

static const struct wss_report_layout *const layouts[] = {&wss_squeeze_layout, NULL};

const struct wss_command wss_cmd_squeeze = {
	.name = "squeeze",
	.summary = "find the size below which a guest begins to page",
	.help = wss_help_squeeze,
	.long_options = long_options,
	.take = squeeze_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = squeeze_run,
};
