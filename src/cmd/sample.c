/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/sample.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "out/metadata.h"
#include "out/sample-report.h"
#include "track/round.h"
#include "wss/profile.h"

#define WINDOW_DEFAULT_NS (4 * WSS_NS_PER_S)
#define REPORT_DEFAULT_NS WSS_NS_PER_S
/* A day: longer windows are a typing error, or a working set that is all memory. */
#define WINDOW_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define COUNT_MAX 1000000
#define STORE_COUNT_MAX 1000

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
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "cumulative", no_argument, NULL, OPT_CUMULATIVE },
	{ "publish", no_argument, NULL, OPT_PUBLISH },
	{ "persistent", no_argument, NULL, OPT_PERSISTENT },
	{ "store", no_argument, NULL, OPT_STORE },
	{ NULL, 0, NULL, 0 },
};

static int take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct sample_options *options = opaque;
	struct wss_round_options *round = &options->round;
	int taken = wss_window_option(round, c, value, err);
	uint64_t number;

	if (!taken)
		taken = wss_store_option(&options->history, c, value, err);
	options->granularity_given = options->granularity_given || c == WSS_OPT_GRANULARITY;
	if (taken)
		return taken;
	switch (c) {
	case OPT_WINDOW:
		return wss_duration_parse(value, WINDOW_MAX_NS, "--window",
					  &round->window.track.window_ns, err);
	case OPT_COUNT:
		if (wss_number_parse(value, 1, COUNT_MAX, "--count", &number, err) < 0)
			return -1;
		round->count = (unsigned)number;
		return 0;
	case OPT_INTERVAL:
		return wss_duration_parse(value, WINDOW_MAX_NS, "--interval", &round->interval_ns,
					  err);
	case OPT_CUMULATIVE:
		round->cumulative = true;
		return 0;
	case OPT_PUBLISH:
		options->publish = true;
		return 0;
	case OPT_PERSISTENT:
		options->persistent = true;
		return 0;
	default:
		options->store = true;
		return 0;
	}
}

static const struct wss_report_layout *layout_of(const struct sample_options *options)
{
	return wss_sample_layout(options->round.both_granularities,
				 options->round.count > 1 || options->round.cumulative);
}

/* Decisions rest on stored windows: on pages, not on their neighbourhoods, and on known growth. */
static void choose_for_store(struct sample_options *options)
{
	if (!options->store)
		return;
	options->round.window.growth = true;
	if (!options->granularity_given)
		options->round.window.track.granularity = WSS_GRANULARITY_AUTO;
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct sample_options *options,
		 struct wss_error *err)
{
	struct wss_round_options *round = &options->round;

	if (wss_cli_parse(cli, argc, argv, options, err) < 0)
		return -1;
	if (wss_cli_view(cli, layout_of(options), err) < 0)
		return -1;
	choose_for_store(options);
	if (round->cumulative && round->count > 1)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--cumulative arms once: --count cannot go with it");
	if (!round->interval_ns)
		round->interval_ns = round->cumulative ? REPORT_DEFAULT_NS
						       : round->window.track.window_ns;
	if (!round->cumulative && round->interval_ns < round->window.track.window_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--interval must not be shorter than --window");
	if (options->round.both_granularities && round->cumulative)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--cumulative is one arming, --granularity both two");
	if (options->round.both_granularities && options->store)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--store keeps samples of one granularity: not with --granularity both");
	if (options->persistent && !options->publish)
		return wss_error_set(err, WSS_ERR_USAGE, "--persistent needs --publish");
	if ((options->publish || options->store) && cli->qmp)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "%s needs libvirt: it cannot go with --qmp",
				     options->publish ? "--publish" : "--store");
	if (!options->store && options->history.given)
		return wss_error_set(err, WSS_ERR_USAGE, "--history and --keep need --store");
	/* They are kept until the guest's turn is over. */
	if (options->store && round->count > STORE_COUNT_MAX)
		return wss_error_set(err, WSS_ERR_USAGE, "--store takes a --count up to %d",
				     STORE_COUNT_MAX);
	if (options->store && round->cumulative)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--cumulative gives no samples of their own: not with --store");
	return wss_cli_finish(cli, argc, argv, err);
}

/*
 * A table has no room for notes: they are said beside it where the figure is not exact. What
 * always holds of a method stands in the man page. CSV and JSON have them in the record.
 */
void wss_sample_print_notes(const struct wss_sample *sample)
{
	/* A figure that is missing has its note, too. */
	if (sample->quality == WSS_QUALITY_OK && sample->low_bytes.value == sample->high_bytes.value &&
	    sample->memory.rss_bytes.known)
		return;
	for (size_t i = 0; i < sample->n_notes; i++)
		wss_log(WSS_LOG_INFO, "%s: note: %s", sample->domain, sample->notes[i]);
}

/* A guest counts once: a series with a window missing is not whole, whatever follows. */
void wss_sample_count_bad(struct sample_run *run, struct wss_round_guest *entry, const char *domain,
		      const struct wss_error *error)
{
	if (entry->guest && entry->error.code)
		wss_warn("%s: %s", domain, error->text);
	else
		wss_tally_bad(&run->tally, domain, error);
	entry->error = *error;
}

static int publish(const struct sample_options *options, const struct wss_sample *sample,
		   struct wss_guest *guest, struct wss_error *err)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile profile;

	wss_profile_from_sample(sample, PACKAGE_VERSION, &profile);
	if (wss_metadata_write(&profile, &xml, err) < 0)
		return -1;
	return guest->ops->publish(guest, xml, options->persistent, err);
}

static void on_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
		      void *opaque)
{
	struct sample_run *run = opaque;
	struct wss_error error = WSS_ERROR_INIT;

	if (!wss_sample_measured(sample)) {
		wss_report_bad_row(run->report, sample);
		wss_sample_count_bad(run, entry, sample->domain, &sample->error);
		return;
	}
	wss_report_row(run->report, sample);
	if (run->format == WSS_FORMAT_TABLE && last)
		wss_sample_print_notes(sample);
	if (!last || !run->options->publish)
		return;
	wss_budget_enter(&entry->budget, 0);
	if (publish(run->options, sample, entry->guest, &error) < 0)
		wss_sample_count_bad(run, entry, sample->domain, &error);
	wss_budget_leave();
}

static void on_native(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
		      void *opaque)
{
	struct sample_run *run = opaque;

	(void)last;
	run->natives[entry - run->guests->list] = *sample;
}

/* The sample is the one by 4 KiB; what the other says stands beside it. */
static void on_fine(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
		    void *opaque)
{
	struct sample_run *run = opaque;
	const struct wss_sample *native = &run->natives[entry - run->guests->list];
	struct wss_sample joined = *sample;

	run->ended += wss_round_ends_series(&sample->error);
	if (wss_sample_measured(&joined) && wss_sample_measured(native))
		wss_sample_set_native(&joined, native);
	else if (wss_sample_measured(&joined))
		wss_sample_degrade(&joined, "native granularity is absent: %s", native->error.text);
	on_sample(&joined, entry, last && run->last_turn, opaque);
}

/*
 * A window of each granularity a turn. The one by the host's mappings comes first: after the
 * other one the dirty log is still on for a moment.
 */
static int run_both(struct wss_guests *guests, const struct sample_options *options,
		    struct sample_run *run, struct wss_error *err)
{
	struct wss_round_options native = options->round, fine = options->round;
	uint64_t next_ns = wss_clock_now_ns();
	int r = 0;

	native.count = fine.count = 1;
	native.window.track.granularity = WSS_GRANULARITY_NATIVE;
	fine.window.track.granularity = WSS_GRANULARITY_4K;
	for (unsigned i = 0; r == 0 && i < options->round.count && run->ended < guests->n; i++) {
		run->ended = 0;
		run->last_turn = i + 1 == options->round.count;
		if (wss_clock_sleep_until_ns(next_ns) < 0)
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		/* A turn that is late is not made up for by turns that follow without a pause. */
		next_ns += options->round.interval_ns;
		if (next_ns < wss_clock_now_ns())
			next_ns = wss_clock_now_ns();
		r = wss_round_run(&guests->host, guests->list, guests->n, &native, on_native, run,
				  err);
		if (r == 0)
			r = wss_round_run(&guests->host, guests->list, guests->n, &fine, on_fine,
					  run, err);
	}
	return r;
}

static int run_windows(struct wss_guests *guests, const struct sample_options *options,
		       struct sample_run *run, struct wss_error *err)
{
	wss_auto_free struct wss_sample *natives = NULL;

	if (!options->round.both_granularities)
		return wss_round_run(&guests->host, guests->list, guests->n, &options->round,
				     on_sample, run, err);
	natives = calloc(guests->n ? guests->n : 1, sizeof(*natives));
	if (!natives)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	run->natives = natives;
	return run_both(guests, options, run, err);
}

static int sample_guests(const struct wss_cli *cli, const struct sample_options *options,
			 struct wss_guests *guests)
{
	struct wss_error err = WSS_ERROR_INIT, out_err = WSS_ERROR_INIT;
	struct sample_run run = { .options = options, .format = cli->format, .guests = guests };
	int r;

	if (wss_report_open(stdout, cli->format, &cli->view, layout_of(options), &run.report,
			    &err) < 0)
		return wss_cli_error(&err);
	wss_report_set_first_width(run.report, wss_guests_name_width(guests));
	r = run_windows(guests, options, &run, &err);
	if (wss_report_close(run.report, &out_err) < 0)
		return wss_cli_error(&out_err);
	if (r < 0)
		return wss_cli_error(&err);
	return wss_tally_exit_code(&run.tally, guests->n);
}

static int sample_run(struct wss_cli *cli, int argc, char **argv)
{
	struct sample_options options = { .history = WSS_STORE_OPTIONS_INIT };
	struct wss_guests guests = WSS_GUESTS_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	int code;

	wss_window_options_init(&options.round, WINDOW_DEFAULT_NS);
	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (options.store)
		return wss_sample_job(cli, &options);
	guests.deadline_ns = options.round.deadline_ns;
	code = wss_guests_open(cli, &guests, &err) < 0 ? wss_cli_error(&err)
						       : sample_guests(cli, &options, &guests);
	wss_guests_close(&guests);
	return code;
}

static const struct wss_report_layout *const layouts[] = { &wss_sample_all_layout, NULL };

static const struct wss_syntax syntax = { WSS_COMMON_SHORT, long_options, take };

const struct wss_command wss_cmd_sample = {
	.name = "sample",
	.summary = "measure the working set of guests",
	.help = wss_help_sample,
	.syntax = &syntax,
	.layouts = layouts,
	.takes = WSS_WORDS_DOMAINS,
	.run = sample_run,
};
