/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "recording/codec.h"
#include "recording/recording.h"
#include "show/progress.h"

#define INTERVAL_MAX_NS (3600 * WSS_NS_PER_S)
#define LENGTH_MAX_NS (365 * 24 * 3600 * WSS_NS_PER_S)
/* Each window may be preceded by a gap. */
#define WINDOWS_MAX (WSS_REC_INTERVALS_MAX / 2)

struct record_options {
	struct wss_record_options record;
	bool until_stopped;
	bool length_given;
};

enum {
	OPT_FOR = 1,
	OPT_UNTIL_STOPPED,
	OPT_INTERVAL,
	OPT_WINDOW,
	OPT_GRANULARITY,
	OPT_MAX_STALL,
	OPT_METHOD,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	{"output-file", required_argument, NULL, 'o'},
	{"for", required_argument, NULL, OPT_FOR},
	{"until-stopped", no_argument, NULL, OPT_UNTIL_STOPPED},
	{"interval", required_argument, NULL, OPT_INTERVAL},
	{"window", required_argument, NULL, OPT_WINDOW},
	{"granularity", required_argument, NULL, OPT_GRANULARITY},
	{"max-stall", required_argument, NULL, OPT_MAX_STALL},
	{"method", required_argument, NULL, OPT_METHOD},
	{NULL, 0, NULL, 0},
};

static int record_parse_granularity(const char *text, struct record_options *options,
				    struct wss_error *err)
{
	bool fine = wss_granularity_is_4k(text);

	if (!fine && strcmp(text, "native") != 0)
		return wss_error_set(err, WSS_ERR_USAGE, "--granularity: '%s' is not 4k or native",
				     text);
	options->record.window.track.granularity =
		fine ? WSS_GRANULARITY_4K : WSS_GRANULARITY_NATIVE;
	return 0;
}

static int record_option_take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct record_options *options = opaque;

	switch (c) {
	case 'o':
		options->record.path = value;
		return 0;
	case OPT_FOR:
		options->length_given = true;
		return wss_duration_parse(value, LENGTH_MAX_NS, "--for", &options->record.length_ns,
					  err);
	case OPT_UNTIL_STOPPED:
		options->until_stopped = true;
		return 0;
	case OPT_INTERVAL:
		return wss_duration_parse(value, INTERVAL_MAX_NS, "--interval",
					  &options->record.interval_ns, err);
	case OPT_WINDOW:
		return wss_duration_parse(value, INTERVAL_MAX_NS, "--window",
					  &options->record.window.track.window_ns, err);
	case OPT_GRANULARITY:
		return record_parse_granularity(value, options, err);
	case OPT_METHOD:
		return wss_method_parse(value, &options->record.method,
					&options->record.window.track, err);
	default:
		return wss_max_stall_parse(value, &options->record.window.track.max_stall_ns, err);
	}
}

static int record_parse(struct wss_cli *cli, int argc, char **argv, struct record_options *options,
			struct wss_error *err)
{
	struct wss_record_options *record = &options->record;

	if (wss_cli_parse(cli, argc, argv, options, err) < 0)
		return -1;
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (cli->all || cli->n_domains != (cli->qmp ? 0 : 1))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "name exactly one DOMAIN: a recording is of one guest");
	if (!record->path || !*record->path)
		return wss_error_set(err, WSS_ERR_USAGE, "missing required option -o FILE");
	if (!strcmp(record->path, "-"))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "-o: a recording cannot go to standard output: name a file");
	if (wss_cli_refuse_view(cli, "record", err) < 0)
		return -1;
	if (options->until_stopped && options->length_given)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--for and --until-stopped exclude each other");
	if (record->window.track.window_ns > record->interval_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--window cannot be longer than --interval");
	if (options->until_stopped)
		record->length_ns = 0;
	if (record->length_ns / record->interval_ns > WINDOWS_MAX)
		return wss_error_set(
			err, WSS_ERR_USAGE,
			"--for: a recording has at most %u windows: take a longer --interval",
			WINDOWS_MAX);
	return 0;
}

static void show_progress(const struct wss_session_progress *progress, void *opaque)
{
	char set[16], file[16], text[80];

	wss_size_format(progress->touched_bytes, set, sizeof(set));
	wss_size_format(progress->file_bytes, file, sizeof(file));
	snprintf(text, sizeof(text), "%llu window%s, set %s, file %s",
		 (unsigned long long)progress->windows, wss_plural(progress->windows), set, file);
	wss_progress_say(opaque, text);
}

static void say_waiting(const struct wss_error *why, void *opaque)
{
	(void)opaque;
	wss_log(WSS_LOG_INFO, "%s: waiting until that has ended", why->text);
}

static void say_end(const char *path, const struct wss_session_progress *progress)
{
	char length[16], file[16], gaps[16];

	wss_duration_format(progress->length_ns, length, sizeof(length));
	wss_size_format(progress->file_bytes, file, sizeof(file));
	wss_log(WSS_LOG_INFO, "%s: %llu window%s in %s, %s", path,
		(unsigned long long)progress->windows, wss_plural(progress->windows), length, file);
	if (!progress->gap_ns)
		return;
	wss_duration_format(progress->gap_ns, gaps, sizeof(gaps));
	wss_log(WSS_LOG_INFO, "%s: nothing was recorded for %s of that%s: %s", path, gaps,
		progress->ends_in_gap ? ", up to the end" : "", progress->gap_why);
}

/* Returns the exit code, or -1. */
static int record_target(struct wss_targets *targets, const struct wss_record_options *options,
			 struct wss_error *err)
{
	static const struct wss_record_events events = {show_progress, say_waiting};
	struct wss_session_progress progress;
	struct wss_progress *line;
	int r;

	if (!targets->list[0]->guest) {
		*err = targets->list[0]->error;
		return -1;
	}
	line = wss_progress_begin("recording", options->length_ns);
	r = wss_record(wss_steal_ptr(targets->list[0]), options, &events, line, &progress, err);
	wss_progress_end(line);
	if (progress.windows)
		say_end(options->path, &progress);
	if (r < 0)
		return r;
	/* Whoever stops a recording knows that it ends early. */
	return progress.ends_in_gap && !wss_stop_requested() ? WSS_EXIT_PARTIAL : WSS_EXIT_OK;
}

static int record_command(struct wss_cli *cli, int argc, char **argv)
{
	struct record_options options = {.until_stopped = false};
	struct wss_targets targets = {.n = 0};
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	wss_record_options_init(&options.record);
	if (record_parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	r = record_target(&targets, &options.record, &err);
	if (r < 0 && err.code != WSS_ERR_INTERRUPTED)
		wss_error_prefix(&err, "%s", cli->qmp ? cli->qmp : cli->domains[0]);
	wss_targets_free(&targets);
	return r < 0 ? wss_cli_error(&err) : r;
}

static const struct wss_option_values values[] = {
	{"granularity", "4k native"},
	{"output-file", WSS_VALUES_FILES},
	{NULL, NULL},
};

const struct wss_command wss_cmd_record = {
	.name = "record",
	.summary = "record which pages a guest touches, window by window",
	.help = wss_help_record,
	.short_options = WSS_COMMON_SHORT "o:",
	.long_options = long_options,
	.take = record_option_take,
	.takes = WSS_WORDS_DOMAINS,
	.values = values,
	.run = record_command,
};
