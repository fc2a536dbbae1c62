/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "help-text.h"
#include "out/metadata.h"
#include "out/sample-report.h"
#include "track/round.h"
#include "wss/profile.h"

#define WINDOW_DEFAULT_NS (4 * WSS_NS_PER_S)
#define REPORT_DEFAULT_NS WSS_NS_PER_S
/* A day: longer windows are a typing error, or a working set that is all memory. */
#define WINDOW_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define STALL_MAX_NS (60 * WSS_NS_PER_S)
#define COUNT_MAX 1000000
/* 8 GiB by 4 KiB; at about 2 us a fault, four seconds of one CPU over the window. */
#define MAX_FAULTS_DEFAULT (2u << 20)

struct sample_options {
	struct wss_round_options round;
	bool publish;
};

struct sample_run {
	const struct sample_options *options;
	enum wss_format format;
	struct wss_report *report;
	struct wss_tally tally;
};

enum {
	OPT_METHOD = 1,
	OPT_WINDOW,
	OPT_COUNT,
	OPT_INTERVAL,
	OPT_CUMULATIVE,
	OPT_PAUSE,
	OPT_MAX_STALL,
	OPT_PUBLISH,
	OPT_GRANULARITY,
	OPT_MAX_FAULTS,
};

static const struct option long_options[] = {
	WSS_COMMON_LONG,
	{ "method", required_argument, NULL, OPT_METHOD },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "cumulative", no_argument, NULL, OPT_CUMULATIVE },
	{ "pause", no_argument, NULL, OPT_PAUSE },
	{ "max-stall", required_argument, NULL, OPT_MAX_STALL },
	{ "publish", no_argument, NULL, OPT_PUBLISH },
	{ "granularity", required_argument, NULL, OPT_GRANULARITY },
	{ "max-faults", required_argument, NULL, OPT_MAX_FAULTS },
	{ NULL, 0, NULL, 0 },
};

static int parse_method(const char *name, struct sample_options *options, struct wss_error *err)
{
	if (!strcmp(name, "auto")) {
		options->round.method = NULL;
		return 0;
	}
	options->round.method = wss_tracker_by_name(name);
	if (!options->round.method)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--method: '%s' is not auto, mmu or refs", name);
	return 0;
}

static int parse_granularity(const char *name, struct sample_options *options,
			     struct wss_error *err)
{
	static const char *const names[] = {
		[WSS_GRANULARITY_NATIVE] = "native",
		[WSS_GRANULARITY_4K] = "4k",
		[WSS_GRANULARITY_AUTO] = "auto",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i])) {
			options->round.window.granularity = (enum wss_granularity)i;
			return 0;
		}
	}
	return wss_error_set(err, WSS_ERR_USAGE, "--granularity: '%s' is not native, 4k or auto",
			     name);
}

static int parse_option(int c, struct sample_options *options, struct wss_cli *cli, char **argv,
			struct wss_error *err)
{
	struct wss_round_options *round = &options->round;
	uint64_t number;

	switch (c) {
	case OPT_METHOD:
		return parse_method(optarg, options, err);
	case OPT_WINDOW:
		return wss_duration_parse(optarg, WINDOW_MAX_NS, "--window",
					  &round->window.window_ns, err);
	case OPT_COUNT:
		if (wss_number_parse(optarg, 1, COUNT_MAX, "--count", &number, err) < 0)
			return -1;
		round->count = (unsigned)number;
		return 0;
	case OPT_INTERVAL:
		return wss_duration_parse(optarg, WINDOW_MAX_NS, "--interval", &round->interval_ns,
					  err);
	case OPT_CUMULATIVE:
		round->cumulative = true;
		return 0;
	case OPT_PAUSE:
		round->window.pause = true;
		return 0;
	case OPT_MAX_STALL:
		return wss_duration_parse(optarg, STALL_MAX_NS, "--max-stall",
					  &round->window.max_stall_ns, err);
	case OPT_PUBLISH:
		options->publish = true;
		return 0;
	case OPT_GRANULARITY:
		return parse_granularity(optarg, options, err);
	case OPT_MAX_FAULTS:
		return wss_number_parse(optarg, 1, UINT64_MAX, "--max-faults",
					&round->window.max_faults, err);
	default:
		return wss_cli_option(cli, c, argv, err);
	}
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct sample_options *options,
		 struct wss_error *err)
{
	struct wss_round_options *round = &options->round;
	int c;

	optind = 0;
	while ((c = getopt_long(argc, argv, WSS_COMMON_SHORT, long_options, NULL)) != -1)
		if (parse_option(c, options, cli, argv, err) < 0)
			return -1;
	if (round->cumulative && round->count > 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--cumulative arms once: --count cannot go with it");
	if (!round->interval_ns)
		round->interval_ns = round->cumulative ? REPORT_DEFAULT_NS
						       : round->window.window_ns;
	if (!round->cumulative && round->interval_ns < round->window.window_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--interval must not be shorter than --window");
	if (options->publish && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--publish needs libvirt: it cannot go with --qmp");
	return wss_cli_finish(cli, argc, argv, err);
}

static int publish(const struct wss_sample *sample, struct wss_guest *guest, struct wss_error *err)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile profile;

	wss_profile_from_sample(sample, PACKAGE_VERSION, &profile);
	if (wss_metadata_write(&profile, &xml, err) < 0)
		return -1;
	return guest->ops->publish(guest, xml, err);
}

/*
 * A table has no room for notes: they are said beside it where the figure is not exact. What
 * always holds of a method stands in the man page. CSV and JSON have them in the record.
 */
static void print_notes(const struct wss_sample *sample)
{
	if (sample->quality == WSS_QUALITY_OK && sample->low_bytes.value == sample->high_bytes.value)
		return;
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s: note: %s", sample->domain, sample->notes[i]);
}

/* A guest counts once: a series with a window missing is not whole, whatever follows. */
static void count_bad(struct sample_run *run, struct wss_round_guest *entry, const char *domain,
		      const struct wss_error *error)
{
	if (entry->guest && entry->error.code)
		wss_warn("%s: %s", domain, error->text);
	else
		wss_tally_bad(&run->tally, domain, error);
	entry->error = *error;
}

static void on_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
		      void *opaque)
{
	struct sample_run *run = opaque;
	struct wss_error error = WSS_ERROR_INIT;

	if (!wss_sample_measured(sample)) {
		wss_report_bad_row(run->report, sample);
		count_bad(run, entry, sample->domain, &sample->error);
		return;
	}
	wss_report_row(run->report, sample);
	if (run->format == WSS_FORMAT_TABLE && last)
		print_notes(sample);
	if (last && run->options->publish && publish(sample, entry->guest, &error) < 0)
		count_bad(run, entry, sample->domain, &error);
}

static int sample_guests(const struct wss_cli *cli, const struct sample_options *options,
			 struct wss_guests *guests)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct sample_run run = { .options = options, .format = cli->format };
	int r;

	if (wss_report_open(stdout, cli->format, &wss_sample_layout, &run.report, &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(run.report, wss_guests_name_width(guests));
	r = wss_round_run(&guests->host, guests->list, guests->n, &options->round, on_sample, &run,
			  &err);
	if (wss_report_close(run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	if (r < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run.tally, guests->n);
}

static int sample_run(struct wss_cli *cli, int argc, char **argv)
{
	struct sample_options options = {
		.round = {
			.window = { .window_ns = WINDOW_DEFAULT_NS,
				    .max_stall_ns = WSS_MAX_STALL_DEFAULT_NS,
				    .max_faults = MAX_FAULTS_DEFAULT },
			.count = 1,
		},
	};
	struct wss_guests guests = WSS_GUESTS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (cli->help) {
		fputs(wss_help_sample, stdout);
		return WSS_EXIT_OK;
	}
	code = wss_guests_open(cli, &guests, &err) < 0 ? wss_cli_error(&err)
						       : sample_guests(cli, &options, &guests);
	wss_guests_close(&guests);
	return code;
}

const struct wss_command wss_cmd_sample = { "sample", sample_run };
