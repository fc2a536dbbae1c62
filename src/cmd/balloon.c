/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/window-options.h"
#include "help-text.h"

#define PERIOD_NS_MAX (3600 * WSS_NS_PER_S)
#define WINDOW_NS_MAX (600 * WSS_NS_PER_S)

enum {
	OPT_APPLY = 1,
	OPT_RESTORE,
	OPT_FORGET,
	OPT_PERIOD,
	OPT_WINDOW,
	OPT_PAUSE,
	OPT_MAX_STALL,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	WSS_TABLE_LONG,
	WSS_SIZING_LONG,
	{"apply", no_argument, NULL, OPT_APPLY},
	{"restore", no_argument, NULL, OPT_RESTORE},
	{"forget", no_argument, NULL, OPT_FORGET},
	{"period", required_argument, NULL, OPT_PERIOD},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"pause", required_argument, NULL, OPT_PAUSE},
	{"max-stall", required_argument, NULL, OPT_MAX_STALL},
	{NULL, 0, NULL, 0},
};

static int balloon_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct balloon_options *options = opaque;

	switch (c) {
	case OPT_APPLY:
		options->apply = true;
		return 0;
	case OPT_RESTORE:
		options->restore = true;
		return 0;
	case OPT_FORGET:
		options->forget = true;
		return 0;
	case OPT_PERIOD:
		return wss_duration_parse(value, PERIOD_NS_MAX, "--period",
					  &options->control.period_ns, err);
	case OPT_WINDOW:
		return wss_duration_parse(value, WINDOW_NS_MAX, "--window",
					  &options->control.window_ns, err);
	case OPT_PAUSE:
		return wss_duration_parse(value, PERIOD_NS_MAX, "--pause",
					  &options->control.pause_ns, err);
	case OPT_MAX_STALL:
		return wss_max_stall_parse(value, &options->control.max_stall_ns, err);
	default:
		return wss_sizing_option(&options->sizing, c, value, err);
	}
}

static bool acts(const struct balloon_options *options)
{
	return options->apply || options->restore || options->forget;
}

static int balloon_parse(struct wss_cli *cli, int argc, char **argv,
			 struct balloon_options *options, struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0 ||
	    wss_cli_view(cli, &wss_balloon_layout, err) < 0 || wss_sizing_check(cli, err) < 0)
		return -1;
	if (options->apply + options->restore + options->forget > 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--apply, --restore and --forget exclude each other");
	if (acts(options) && wss_cli_refuse_view(cli,
						 options->apply	    ? "--apply"
						 : options->restore ? "--restore"
								    : "--forget",
						 err) < 0)
		return -1;
	if (options->control.window_ns >= options->control.period_ns)
		return wss_error_set(err, WSS_ERR_USAGE, "--window must be shorter than --period");
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (options->forget && !cli->n_domains)
		return wss_error_set(err, WSS_ERR_USAGE, "--forget needs a DOMAIN");
	return 0;
}

/* Carries out --apply, --restore or --forget. */
static int balloon_act(const struct wss_cli *cli, struct balloon_options *options)
{
	wss_auto_free char *path = wss_xchecked(wss_store_path(&options->sizing.history));
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tally tally = {.bad = 0};
	size_t guests = 0;

	if (balloon_carry_out(cli, options, path, &tally, &guests, &err) < 0)
		return wss_cli_error(&err);
	if (options->restore && !guests && !cli->n_domains)
		wss_log(WSS_LOG_INFO, "%s: nothing to restore", path);
	if (options->apply && wss_stop_requested())
		return 128 + wss_stop_signal();
	return wss_tally_exit_code(&tally, guests);
}

static int balloon_run(struct wss_cli *cli, int argc, char **argv)
{
	struct balloon_options options = {.sizing = WSS_SIZING_OPTIONS_INIT,
					  .control = WSS_BALLOON_OPTIONS_INIT};
	struct wss_error err = WSS_ERROR_INIT;

	if (balloon_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	return acts(&options) ? balloon_act(cli, &options) : balloon_dry_run(cli, &options);
}

static const struct wss_report_layout *const layouts[] = {&wss_balloon_layout, NULL};

const struct wss_command wss_cmd_balloon = {
	.name = "balloon",
	.summary = "show what balloons could reclaim, or reclaim it",
	.help = wss_help_balloon,
	.long_options = long_options,
	.take = balloon_option_take,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = balloon_run,
};
