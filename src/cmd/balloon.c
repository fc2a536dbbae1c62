/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/sizing-options.h"
#include "cmd/window-options.h"
#include "control/controller.h"
#include "control/plan.h"
#include "control/restore.h"
#include "help-text.h"

#define PERIOD_NS_MAX (3600 * WSS_NS_PER_S)
#define WINDOW_NS_MAX (600 * WSS_NS_PER_S)

struct balloon_options {
	struct wss_sizing_options sizing;
	struct wss_balloon_options control;
	bool apply, restore;
};

struct balloon_row {
	const char *domain;
	const char *uuid;
	const char *action; /* "shrink", "none", "refused"; NULL where it failed */
	char reason[128];
	const char *error;
	struct wss_amount from_bytes, to_bytes, gain_bytes, held_bytes;
	char hint[400]; /* what an operator could do about a refusal; "" nothing */
};

static const struct wss_report_layout layout;

enum {
	OPT_APPLY = 1,
	OPT_RESTORE,
	OPT_PERIOD,
	OPT_WINDOW,
	OPT_PAUSE,
	OPT_MAX_STALL,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_SIZING_LONG,
	{ "apply", no_argument, NULL, OPT_APPLY },
	{ "restore", no_argument, NULL, OPT_RESTORE },
	{ "period", required_argument, NULL, OPT_PERIOD },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "pause", required_argument, NULL, OPT_PAUSE },
	{ "max-stall", required_argument, NULL, OPT_MAX_STALL },
	{ NULL, 0, NULL, 0 },
};

static int take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct balloon_options *options = opaque;

	switch (c) {
	case OPT_APPLY:
		options->apply = true;
		return 0;
	case OPT_RESTORE:
		options->restore = true;
		return 0;
	case OPT_PERIOD:
		return wss_duration_parse(value, PERIOD_NS_MAX, "--period", &options->control.period_ns,
					  err);
	case OPT_WINDOW:
		return wss_duration_parse(value, WINDOW_NS_MAX, "--window", &options->control.window_ns,
					  err);
	case OPT_PAUSE:
		return wss_duration_parse(value, PERIOD_NS_MAX, "--pause", &options->control.pause_ns, err);
	case OPT_MAX_STALL:
		return wss_max_stall_parse(value, &options->control.max_stall_ns, err);
	default:
		return wss_sizing_option(&options->sizing, c, value, err);
	}
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct balloon_options *options,
		 struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &layout, err) < 0 || wss_sizing_check(cli, err) < 0)
		return -1;
	if (options->apply && options->restore)
		return wss_error_set(err, WSS_ERR_USAGE, "--apply and --restore exclude each other");
	if ((options->apply || options->restore) &&
	    wss_cli_refuse_view(cli, options->apply ? "--apply" : "--restore", err) < 0)
		return -1;
	if (options->control.window_ns >= options->control.period_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "--window must be shorter than --period");
	return wss_cli_finish(cli, argc, argv, err);
}

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->domain);
}

static struct wss_value get_uuid(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->uuid);
}

static struct wss_value get_action(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->action);
}

static struct wss_value get_from(const void *row)
{
	return wss_value_amount(((const struct balloon_row *)row)->from_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_to(const void *row)
{
	return wss_value_amount(((const struct balloon_row *)row)->to_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_gain(const void *row)
{
	return wss_value_amount(((const struct balloon_row *)row)->gain_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_held(const void *row)
{
	return wss_value_amount(((const struct balloon_row *)row)->held_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_reason(const void *row)
{
	const char *reason = ((const struct balloon_row *)row)->reason;

	return wss_value_text(*reason ? reason : NULL);
}

static struct wss_value get_hint(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->hint);
}

static struct wss_value get_error(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->error);
}

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain, "Name of the guest", false },
	{ "uuid", NULL, "UUID", -36, get_uuid, "UUID of the guest", false },
	{ "action", NULL, "ACTION", -7, get_action,
	  "What the controller would do: shrink, none or refused", false },
	{ "from_bytes", NULL, "FROM", 8, get_from,
	  "Size of the guest now, as its balloon leaves it, in bytes", false },
	{ "to_bytes", NULL, "TO", 8, get_to, "Size of the guest at the end, in bytes",
	  false },
	{ "host_gain_bytes", NULL, "GAIN", 8, get_gain,
	  "Memory that the host would reclaim: what is resident beyond the new size, in bytes", false },
	{ "held_bytes", NULL, "HELD", 8, get_held,
	  "Guest memory that is resident on the host now, in bytes", false },
	{ "reason", NULL, "WHY", -27, get_reason, "Reason for the action", false },
	{ "hint", NULL, "HINT", -20, get_hint, "What to do about a refusal", false },
	{ "error", NULL, "ERROR", -20, get_error, "Why the guest could not be examined", false },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/balloon/1",
	.array_key = "balloons",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,action,from_bytes,to_bytes,host_gain_bytes,reason",
	.wide = "domain,action,from_bytes,to_bytes,host_gain_bytes,held_bytes,reason",
};

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

struct balloon_run {
	const struct balloon_options *options;
	struct wss_history *history; /* NULL where there is none yet */
	struct wss_report *report;
	struct wss_tally tally;
};

static void hint(const struct wss_guest *guest, const struct wss_balloon_facts *facts,
		 struct balloon_row *row)
{
	if (!facts->has_device || !facts->running || facts->statistics)
		return;
	if (!facts->answers)
		snprintf(row->hint, sizeof(row->hint), "load the balloon driver in the guest");
	else if (!facts->asked)
		snprintf(row->hint, sizeof(row->hint), "virsh dommemstat %s --period 5 --live",
			 guest->config.uuid);
}

static int balloon_row_fill(const struct balloon_run *run, const struct wss_target *target,
			    struct balloon_row *row, struct wss_error *err)
{
	struct wss_reports reports = { 0 };
	struct wss_need need;
	struct wss_look look;
	struct wss_plan plan;

	if (wss_look_take(target->guest, &target->policy, &reports, &look, err) < 0 ||
	    wss_need_read(&run->options->sizing.advice, run->history, target->guest->config.uuid,
			  &target->policy, &need, err) < 0)
		return -1;
	wss_look_join(&need, &look);
	wss_plan_make(&look, &plan);
	row->action = wss_plan_action_name(plan.action);
	snprintf(row->reason, sizeof(row->reason), "%s", plan.reason);
	row->from_bytes = look.view.actual_bytes;
	row->to_bytes = plan.to_bytes;
	row->gain_bytes = plan.gain_bytes;
	row->held_bytes = look.view.rss_bytes;
	hint(target->guest, &look.facts, row);
	return 0;
}

static void handle(struct balloon_run *run, const struct wss_target *target, bool table)
{
	struct wss_error error = target->guest ? (struct wss_error)WSS_ERROR_INIT : target->error;
	struct balloon_row row = {
		.domain = wss_target_name(target),
		.uuid = target->guest ? target->guest->config.uuid : NULL,
	};

	if (target->guest && balloon_row_fill(run, target, &row, &error) == 0) {
		wss_report_row(run->report, &row);
		if (table && row.hint[0])
			wss_log(WSS_LOG_INFO, "%s: to lift the refusal: %s", row.domain, row.hint);
		return;
	}
	row.error = error.text;
	wss_report_bad_row(run->report, &row);
	wss_tally_bad(&run->tally, row.domain, &error);
}

static int dry_run(const struct wss_cli *cli, struct balloon_run *run,
		   struct wss_targets *targets)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_sizing_open(&run->options->sizing, &run->history, &err) < 0 ||
	    wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, targets, &err) < 0 ||
	    wss_report_open(stdout, cli->format, &cli->view, &layout, &run->report, &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(run->report, wss_targets_name_width(targets));
	for (size_t i = 0; i < targets->n; i++)
		handle(run, targets->list[i], cli->format == WSS_FORMAT_TABLE);
	if (wss_report_close(run->report, &err) < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run->tally, targets->n);
}

static void on_moved(const struct wss_control_move *move, void *unused)
{
	char size[16];

	(void)unused;
	wss_size_format(move->bytes, size, sizeof(size));
	if (!move->reason)
		wss_log(WSS_LOG_INFO, "%s: all memory given back (%s)", move->guest, size);
	else if (move->verb == WSS_CONTROL_GAVE_BACK)
		wss_log(WSS_LOG_INFO, "%s: gives all memory back (%s): %s", move->guest, size,
			move->reason);
	else
		wss_log(WSS_LOG_INFO, "%s: %s to %s: %s", move->guest,
			move->verb == WSS_CONTROL_GROWS ? "grows" : "shrinks", size, move->reason);
}

/* Whom the controller and the restore tell what happens. */
struct balloon_listener {
	const struct wss_cli *cli;
	struct wss_tally tally;
};

static void on_trouble(const char *guest, const struct wss_error *error, void *opaque)
{
	wss_tally_bad(&((struct balloon_listener *)opaque)->tally, guest, error);
}

static void on_progress(const char *guest, const char *text, void *unused)
{
	(void)unused;
	wss_log(WSS_LOG_INFO, "%s: %s", guest, text);
}

static void on_none_running(const char *uri, void *opaque)
{
	wss_cli_say_empty(((struct balloon_listener *)opaque)->cli, uri, true);
}

static int run_controller(const struct wss_control_scope *scope, struct balloon_options *options,
			  const struct wss_control_events *events, size_t *ret_guests,
			  struct wss_error *err)
{
	/* By UUID, as a guest may have been named like the UUID of another. */
	const char *const command[] = {
		"virt-wss", "balloon", "--restore", "--uuid", "--history", scope->history,
		scope->uri ? "-c" : NULL, scope->uri, NULL
	};

	options->control.advice = options->sizing.advice;
	options->control.restore_command = command;
	return wss_controller_run(scope, &options->control, events, ret_guests, err);
}

/* --apply or --restore. */
static int act(const struct wss_cli *cli, struct balloon_options *options)
{
	wss_auto_free char *path = wss_store_path(&options->sizing.history);
	wss_auto_free struct wss_domain_ref *refs = NULL;
	struct wss_control_scope scope = { .uri = cli->uri, .monitor = cli->monitor,
					   .history = path, .n_guests = (size_t)cli->n_domains };
	struct balloon_listener listener = { .cli = cli };
	const struct wss_control_events events = { on_moved, on_trouble, on_progress,
						   on_none_running, &listener };
	struct wss_error err = WSS_ERROR_INIT;
	size_t guests = 0;
	int r;

	scope.guests = refs = calloc(scope.n_guests + 1, sizeof(*refs));
	if (!path || !refs) {
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
		return wss_cli_error(&err);
	}
	for (int i = 0; i < cli->n_domains; i++)
		refs[i] = wss_cli_domain(cli, i);
	r = options->apply ? run_controller(&scope, options, &events, &guests, &err)
			   : wss_restore_run(&scope, &events, &guests, &err);
	if (r < 0)
		return wss_cli_error(&err);
	if (options->apply && wss_stop_requested())
		return 128 + wss_stop_signal();
	return wss_tally_exit_code(&listener.tally, guests);
}

static int balloon_run(struct wss_cli *cli, int argc, char **argv)
{
	struct balloon_options options = { .sizing = WSS_SIZING_OPTIONS_INIT,
					   .control = WSS_BALLOON_OPTIONS_INIT };
	struct balloon_run run = { .options = &options };
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (options.apply || options.restore)
		return act(cli, &options);
	code = dry_run(cli, &run, &targets);
	wss_targets_free(&targets);
	wss_history_close(run.history);
	return code;
}

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, take };

const struct wss_command wss_cmd_balloon = {
	.name = "balloon",
	.summary = "show what balloons could reclaim, or reclaim it",
	.help = wss_help_balloon,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = balloon_run,
};
