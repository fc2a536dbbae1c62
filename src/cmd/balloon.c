/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "control/look.h"
#include "cmd/window-options.h"
#include "help-text.h"

#define PERIOD_NS_MAX (3600 * WSS_NS_PER_S)
#define WINDOW_NS_MAX (600 * WSS_NS_PER_S)

struct balloon_row {
	const char *domain;
	const char *uuid;
	const char *action; /* "shrink", "none", "refused"; NULL where it failed */
	const char *reason;
	const char *error;
	struct wss_amount from_bytes, to_bytes, held_bytes;
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
		return wss_duration_parse(value, PERIOD_NS_MAX, "--period", &options->period_ns,
					  err);
	case OPT_WINDOW:
		return wss_duration_parse(value, WINDOW_NS_MAX, "--window", &options->window_ns,
					  err);
	case OPT_PAUSE:
		return wss_duration_parse(value, PERIOD_NS_MAX, "--pause", &options->pause_ns, err);
	case OPT_MAX_STALL:
		return wss_max_stall_parse(value, &options->max_stall_ns, err);
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
	if (options->window_ns >= options->period_ns)
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

static struct wss_value get_held(const void *row)
{
	return wss_value_amount(((const struct balloon_row *)row)->held_bytes, WSS_KIND_BYTES);
}

static struct wss_value get_reason(const void *row)
{
	return wss_value_text(((const struct balloon_row *)row)->reason);
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
	  "What --apply would do: shrink, none, or refused", false },
	{ "from_bytes", NULL, "FROM", 8, get_from,
	  "Memory that the balloon leaves to the guest now, in bytes", false },
	{ "to_bytes", NULL, "TO", 8, get_to, "Memory that it would leave at the end, in bytes",
	  false },
	{ "held_bytes", NULL, "HELD", 8, get_held,
	  "Guest memory that is resident on the host, in bytes", false },
	{ "reason", NULL, "WHY", -27, get_reason, "What the action rests on", false },
	{ "hint", NULL, "HINT", -20, get_hint, "What would lift the refusal", false },
	{ "error", NULL, "ERROR", -20, get_error, "Why the guest could not be looked at", false },
};

static const struct wss_report_layout layout = {
	.schema = "virt-wss/balloon/1",
	.array_key = "balloons",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,action,from_bytes,to_bytes,reason",
	.wide = "domain,action,from_bytes,to_bytes,held_bytes,reason",
};

static const struct wss_report_layout *const layouts[] = { &layout, NULL };

struct balloon_run {
	const struct balloon_options *options;
	struct wss_history *history; /* NULL where there is none yet */
	struct wss_report *report;
	struct wss_tally tally;
};

static void decide(const struct balloon_look *look, struct balloon_row *row)
{
	const struct wss_balloon_view *view = &look->view;
	uint64_t reserve = wss_balloon_reserve(view), to;

	row->action = "refused";
	row->reason = wss_balloon_refusal(&look->facts);
	if (!row->reason && !view->actual_bytes.known)
		row->reason = "the size of its balloon is not known";
	if (row->reason)
		return;
	to = wss_balloon_floor(&look->limits, view, reserve);
	if (to >= view->actual_bytes.value) {
		row->action = "none";
		row->reason = "it needs what it has";
		return;
	}
	row->action = "shrink";
	row->to_bytes = wss_amount_of(to);
	row->reason = to > wss_balloon_history_floor(&look->limits, reserve)
			      ? "the newest window, or what the guest says it could not give up"
			      : "99th percentile and headroom, the miss-rate curve, or the minimum";
}

static void hint(const struct wss_guest *guest, const struct wss_balloon_facts *facts,
		 struct balloon_row *row)
{
	if (facts->has_device && facts->running && !facts->statistics)
		snprintf(row->hint, sizeof(row->hint), "virsh dommemstat %s --period 5 --live",
			 guest->config.uuid);
}

static int look(const struct balloon_run *run, const struct wss_target *target,
		struct balloon_row *row, struct wss_error *err)
{
	struct balloon_reports reports = { 0 };
	struct balloon_record record;
	struct balloon_look seen;

	if (wss_balloon_look(target, &reports, &seen, err) < 0 ||
	    wss_balloon_read(run->options, run->history, target->guest->config.uuid, &target->policy,
			     &record, err) < 0)
		return -1;
	wss_balloon_join(&record, &seen);
	row->from_bytes = seen.view.actual_bytes;
	row->held_bytes = seen.view.rss_bytes;
	decide(&seen, row);
	hint(target->guest, &seen.facts, row);
	return 0;
}

static void handle(struct balloon_run *run, const struct wss_target *target, bool table)
{
	struct wss_error error = target->guest ? (struct wss_error)WSS_ERROR_INIT : target->error;
	struct balloon_row row = {
		.domain = wss_target_name(target),
		.uuid = target->guest ? target->guest->config.uuid : NULL,
	};

	if (target->guest && look(run, target, &row, &error) == 0) {
		wss_report_row(run->report, &row);
		if (table && row.hint[0])
			wss_log(WSS_LOG_INFO, "%s: its statistics are off: %s", row.domain, row.hint);
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

static int balloon_run(struct wss_cli *cli, int argc, char **argv)
{
	struct balloon_options options = {
		.sizing = WSS_SIZING_OPTIONS_INIT,
		.period_ns = 30 * WSS_NS_PER_S,
		.window_ns = 4 * WSS_NS_PER_S,
		.pause_ns = 10 * WSS_NS_PER_S,
		.max_stall_ns = WSS_MAX_STALL_DEFAULT_NS,
	};
	struct balloon_run run = { .options = &options };
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (options.apply)
		return wss_balloon_apply(cli, &options);
	if (options.restore)
		return wss_balloon_restore(cli, &options);
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
