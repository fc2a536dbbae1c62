/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/session.h"
#include "cmd/window-options.h"
#include "help-text.h"
#include "out/progress.h"
#include "rec/codec.h"
#include "track/residency.h"
#include "service/measure.h"

#define LENGTH_DEFAULT_NS (60 * WSS_NS_PER_S)
#define INTERVAL_DEFAULT_NS WSS_NS_PER_S
#define INTERVAL_MAX_NS (3600 * WSS_NS_PER_S)
#define LENGTH_MAX_NS (365 * 24 * 3600 * WSS_NS_PER_S)
/* With a gap before each. */
#define WINDOWS_MAX (WSS_REC_INTERVALS_MAX / 2)
/* Whether memory is on huge pages, which decides what is known of writes, is looked at so often. */
#define MEMORY_AGE_NS (10 * WSS_NS_PER_S)
#define POLL_NS WSS_NS_PER_S
/*
 * Windows that are so far apart get a dirty log each: it can be started again in what is a gap
 * anyway, and the guest is mapped large for most of it.
 */
#define CHAIN_REST_NS (10 * WSS_NS_PER_S)
/* QEMU's longest dirty-rate calculation, and some seconds to end it. */
#define BUSY_NS (65 * WSS_NS_PER_S)

struct record_options {
	const char *path;
	const struct wss_tracker_ops *method; /* NULL: auto */
	struct wss_window_options window;
	uint64_t interval_ns;
	uint64_t length_ns;
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
	{ "output-file", required_argument, NULL, 'o' },
	{ "for", required_argument, NULL, OPT_FOR },
	{ "until-stopped", no_argument, NULL, OPT_UNTIL_STOPPED },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "granularity", required_argument, NULL, OPT_GRANULARITY },
	{ "max-stall", required_argument, NULL, OPT_MAX_STALL },
	{ "method", required_argument, NULL, OPT_METHOD },
	{ NULL, 0, NULL, 0 },
};

static int parse_granularity(const char *text, struct record_options *options,
			     struct wss_error *err)
{
	bool fine = wss_granularity_is_4k(text);

	if (!fine && strcmp(text, "native") != 0)
		return wss_error_set(err, WSS_ERR_USAGE, "--granularity: '%s' is not 4k or native",
				     text);
	options->window.track.granularity = fine ? WSS_GRANULARITY_4K : WSS_GRANULARITY_NATIVE;
	return 0;
}

static int take(void *opaque, int c, const char *value, struct wss_error *err)
{
	struct record_options *options = opaque;

	switch (c) {
	case 'o':
		options->path = value;
		return 0;
	case OPT_FOR:
		options->length_given = true;
		return wss_duration_parse(value, LENGTH_MAX_NS, "--for", &options->length_ns, err);
	case OPT_UNTIL_STOPPED:
		options->until_stopped = true;
		return 0;
	case OPT_INTERVAL:
		return wss_duration_parse(value, INTERVAL_MAX_NS, "--interval",
					  &options->interval_ns, err);
	case OPT_WINDOW:
		return wss_duration_parse(value, INTERVAL_MAX_NS, "--window",
					  &options->window.track.window_ns, err);
	case OPT_GRANULARITY:
		return parse_granularity(value, options, err);
	case OPT_METHOD:
		return wss_method_parse(value, &options->method, err);
	default:
		return wss_max_stall_parse(value, &options->window.track.max_stall_ns, err);
	}
}

static int parse(struct wss_cli *cli, int argc, char **argv, struct record_options *options,
		 struct wss_error *err)
{
	if (wss_cli_parse(cli, argc, argv, options, err) < 0)
		return -1;
	if (wss_cli_finish(cli, argc, argv, err) < 0)
		return -1;
	if (cli->all || cli->n_domains != (cli->qmp ? 0 : 1))
		return wss_error_set(err, WSS_ERR_USAGE, "name one DOMAIN: a recording is of one guest");
	if (!options->path || !*options->path)
		return wss_error_set(err, WSS_ERR_USAGE, "missing required option -o FILE");
	if (!strcmp(options->path, "-"))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "-o: a recording cannot go to standard output: name a file");
	if (options->until_stopped && options->length_given)
		return wss_error_set(err, WSS_ERR_USAGE, "--for and --until-stopped exclude each other");
	if (!options->window.track.window_ns)
		options->window.track.window_ns = options->interval_ns;
	if (options->window.track.window_ns > options->interval_ns)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--window cannot be longer than --interval");
	if (!options->until_stopped && options->length_ns / options->interval_ns > WINDOWS_MAX)
		return wss_error_set(err, WSS_ERR_USAGE,
				     "--for: a recording has at most %u windows: take a longer --interval",
				     WINDOWS_MAX);
	if (!options->until_stopped && options->window.track.window_ns > options->length_ns)
		options->window.track.window_ns = options->length_ns;
	if (options->interval_ns - options->window.track.window_ns < CHAIN_REST_NS)
		options->window.track.chain_ns = options->until_stopped
						   ? UINT64_MAX
						   : options->length_ns + options->window.track.window_ns / 2;
	return 0;
}

struct record_run {
	const struct record_options *options;
	struct wss_target *target;
	struct wss_guest *guest; /* the target's */
	struct wss_session *session;
	struct wss_measure_options measure_options;
	struct wss_measure *measure;
	const struct wss_tracker_ops *method; /* the one that was chosen */
	struct wss_pageset *resident; /* NULL where it cannot be told what the balloon takes */
	uint64_t balloon_bytes;	      /* when resident was filled */
	uint64_t begun_ns;	      /* wss_clock_now_ns(), as all of these */
	uint64_t end_ns;	      /* of the recording */
	bool said_busy;
	struct wss_progress *progress; /* NULL where nobody looks */
};

static bool over(const struct record_run *run)
{
	return wss_stop_requested() ||
	       (!run->options->until_stopped && wss_clock_now_ns() >= run->end_ns);
}

static void show_progress(const struct record_run *run)
{
	struct wss_session_progress progress;
	char set[16], file[16], text[80];

	wss_session_progress(run->session, &progress);
	wss_size_format(progress.touched_bytes, set, sizeof(set));
	wss_size_format(progress.file_bytes, file, sizeof(file));
	snprintf(text, sizeof(text), "%llu windows, set %s, file %s",
		 (unsigned long long)progress.windows, set, file);
	wss_progress_say(run->progress, text);
}

/*
 * Until the window ends: 1; 0: stopped before. What records pages needs no polls: the few that
 * there are see that the guest still lives, and large entries of KVM.
 */
static int wait_for_end(struct record_run *run, struct wss_error *err)
{
	struct wss_window *window = wss_measure_window(run->measure);
	uint64_t step_ns = run->options->window.track.window_ns / 2, next_ns;

	if (step_ns > POLL_NS)
		step_ns = POLL_NS;
	for (next_ns = wss_clock_now_ns() + step_ns; next_ns < wss_window_end_ns(window);
	     next_ns += step_ns) {
		if (wss_clock_sleep_until_ns(next_ns) < 0)
			return 0;
		if (wss_window_poll(window, err) < 0)
			return -1;
	}
	return wss_clock_sleep_until_ns(wss_window_end_ns(window)) == 0;
}

/*
 * The pages that the host has something for, anew if the balloon's size has changed; else
 * NULL. An error ends the looking, not the recording.
 */
static const struct wss_pageset *look_at_balloon(struct record_run *run)
{
	const struct wss_guest *guest = run->guest;
	struct wss_error error = WSS_ERROR_INIT;

	if (!run->resident || !guest->balloon_bytes.known || guest->balloon_bytes.value == run->balloon_bytes)
		return NULL;
	run->balloon_bytes = guest->balloon_bytes.value;
	if (wss_residency_read(guest, wss_session_recording(run->session), run->resident, &error) == 0)
		return run->resident;
	wss_debug("%s", error.text);
	wss_pageset_free(run->resident);
	run->resident = NULL;
	return NULL;
}

static int add_window(struct record_run *run, const struct wss_sample *sample,
		      struct wss_error *err)
{
	uint64_t start_ns = wss_window_start_ns(wss_measure_window(run->measure));
	const struct wss_session_window window = {
		.start_ns = start_ns,
		.end_ns = start_ns + sample->window_ns.value,
		.sample = sample,
		.pages = wss_window_pages(wss_measure_window(run->measure)),
		.resident = look_at_balloon(run),
	};

	return wss_session_add(run->session, &window, err);
}

/* One window. 1: written, or nothing to write; 0: it could not be taken, err says why; -1. */
static int record_window(struct record_run *run, struct wss_error *err)
{
	uint64_t until_ns = run->options->until_stopped ? UINT64_MAX : run->end_ns;
	struct wss_sample sample;
	int r = wss_measure_arm(run->measure, until_ns, err);

	if (r > 0 || (r < 0 && err->code == WSS_ERR_INTERRUPTED))
		return 1;
	if (r == 0)
		r = wait_for_end(run, err);
	/* What was touched in a part of a window is no set to compare with the others'. */
	if (r == 0) {
		wss_session_note(run->session, "the recording was stopped within this window");
		wss_window_rest(wss_measure_window(run->measure));
		return 1;
	}
	if (r < 0 || wss_measure_read(run->measure, &sample, err) < 0)
		return 0;
	r = add_window(run, &sample, err);
	wss_window_rest(wss_measure_window(run->measure));
	return r < 0 ? -1 : 1;
}

/*
 * Before the first window: what an earlier recording, that was stopped or killed, has left under
 * way ends by itself. Then the time begins.
 */
static bool wait_while_busy(const struct wss_error *error, struct record_run *run)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (error->code != WSS_ERR_BUSY || now_ns >= run->begun_ns + BUSY_NS)
		return false;
	if (!run->said_busy)
		wss_log(WSS_LOG_INFO, "%s: waiting until that has ended", error->text);
	run->said_busy = true;
	run->end_ns = now_ns + run->options->length_ns;
	return true;
}

/* A guest that is paused or busy now may be recorded later; else it is the end. */
static bool passes(const struct wss_error *error, struct record_run *run)
{
	struct wss_session_progress progress;

	wss_session_progress(run->session, &progress);
	if (!progress.windows)
		return wait_while_busy(error, run);
	return error->code == WSS_ERR_FAILED || error->code == WSS_ERR_BUSY ||
	       error->code == WSS_ERR_TIMEOUT;
}

/* The windows are whole: the last ends up to half of one before the time is over, or after. */
static bool fits_one_more(const struct record_run *run)
{
	return run->options->until_stopped ||
	       wss_clock_now_ns() + run->options->window.track.window_ns / 2 < run->end_ns;
}

static int record(struct record_run *run, struct wss_error *err)
{
	uint64_t next_ns = wss_clock_now_ns();

	run->begun_ns = next_ns;
	run->end_ns = next_ns + run->options->length_ns;
	while (!over(run) && fits_one_more(run)) {
		struct wss_error error = WSS_ERROR_INIT;
		uint64_t now_ns;
		int r = record_window(run, &error);

		if (r < 0 || (r == 0 && !passes(&error, run))) {
			*err = error;
			return -1;
		}
		if (r == 0) {
			wss_debug("a window is lost: %s", error.text);
			wss_session_note(run->session, error.text);
		}
		show_progress(run);
		/* What is late stays late: windows are not made up for. */
		next_ns += run->options->interval_ns;
		now_ns = wss_clock_now_ns();
		if (next_ns < now_ns)
			next_ns = now_ns;
		if (!run->options->until_stopped && next_ns > run->end_ns)
			next_ns = run->end_ns;
		wss_clock_sleep_until_ns(next_ns);
	}
	return 0;
}

static int open_session(struct record_run *run, struct wss_error *err)
{
	const struct wss_host *host = wss_hypervisor_host(run->target->hypervisor);
	char boot_id[WSS_HOST_BOOT_ID_MAX];

	wss_host_boot_id(wss_test_sysroot(), boot_id);
	if (wss_session_open(run->options->path, run->guest, run->method->name, boot_id,
			     run->options->interval_ns, run->options->window.track.window_ns,
			     &run->session,
			     err) < 0)
		return -1;
	wss_session_set_host(run->session, host->name);
	if (run->guest->config.has_balloon)
		run->resident = wss_pageset_new(
			wss_recording_pages(wss_session_recording(run->session)));
	return 0;
}

static int open_measure(struct record_run *run, struct wss_error *err)
{
	run->measure_options = (struct wss_measure_options){
		.window = run->options->window,
		.method = run->options->method,
		.count = 1,
		.interval_ns = run->options->interval_ns,
	};
	return wss_measure_open(run->target, &run->measure_options, NULL, &run->measure, &run->method,
				err);
}

static void say_end(const struct record_run *run)
{
	struct wss_session_progress progress;
	char length[16], file[16];

	wss_session_progress(run->session, &progress);
	wss_duration_format(progress.length_ns, length, sizeof(length));
	wss_size_format(progress.file_bytes, file, sizeof(file));
	wss_log(WSS_LOG_INFO, "%s: %llu windows in %s, %s%s", run->options->path,
		(unsigned long long)progress.windows, length, file,
		progress.gaps ? "; windows that are not exact are gaps" : "");
}

static int record_target(struct wss_target *target, const struct record_options *options,
			 struct wss_error *err)
{
	struct record_run run = { .options = options, .target = target, .guest = target->guest };
	struct wss_session_progress progress = { 0 };
	int r;

	if (!run.guest) {
		*err = target->error;
		return -1;
	}
	r = open_measure(&run, err);
	if (r == 0)
		r = open_session(&run, err);
	if (r == 0) {
		run.progress = wss_progress_begin(
			"recording", options->until_stopped ? 0 : options->length_ns);
		r = record(&run, err);
		wss_progress_end(run.progress);
	}
	wss_measure_close(run.measure);
	wss_pageset_free(run.resident);
	if (run.session) {
		wss_session_progress(run.session, &progress);
		if (progress.windows)
			say_end(&run);
	}
	if (wss_session_close(run.session, wss_clock_now_ns(), r < 0 ? NULL : err) < 0)
		r = -1;
	if (r < 0)
		return -1;
	if (!progress.windows)
		return wss_error_set(err, wss_stop_requested() ? WSS_ERR_INTERRUPTED : WSS_ERR_FAILED,
				     "no window could be recorded");
	if (wss_stop_requested() && !options->until_stopped)
		return wss_error_set(err, WSS_ERR_INTERRUPTED,
				     "interrupted: the %llu windows so far are in %s",
				     (unsigned long long)progress.windows, options->path);
	return 0;
}

static int record_run(struct wss_cli *cli, int argc, char **argv)
{
	struct record_options options = {
		.window = WSS_WINDOW_OPTIONS_INIT,
		.interval_ns = INTERVAL_DEFAULT_NS,
		.length_ns = LENGTH_DEFAULT_NS,
	};
	struct wss_targets targets = { .n = 0 };
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	options.window.track.granularity = WSS_GRANULARITY_4K;
	options.window.track.recorder = WSS_RECORDER_PAGES;
	options.window.memory_age_ns = MEMORY_AGE_NS;
	if (parse(cli, argc, argv, &options, &err) < 0)
		return wss_cli_error(&err);
	if (wss_cli_open_targets(cli, WSS_TARGET_DEADLINE_NS, &targets, &err) < 0)
		return wss_cli_error(&err);
	r = record_target(targets.list[0], &options, &err);
	if (r < 0 && err.code != WSS_ERR_INTERRUPTED)
		wss_error_prefix(&err, "%s", targets.list[0]->name);
	wss_targets_free(&targets);
	return r < 0 ? wss_cli_error(&err) : WSS_EXIT_OK;
}

static const struct wss_syntax syntax = { WSS_COMMON_SHORT "o:", long_options, take };

const struct wss_command wss_cmd_record = {
	.name = "record",
	.summary = "record which pages a guest touches, window by window",
	.help = wss_help_record,
	.syntax = &syntax,
	.takes = WSS_WORDS_DOMAINS,
	.run = record_run,
};
