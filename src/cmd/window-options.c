/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/window-options.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

#define DEADLINE_MAX_NS (24 * 3600 * WSS_NS_PER_S)
#define JOBS_MAX 1000

int wss_method_parse(const char *value, const struct wss_tracker_ops **ret_method,
		     struct wss_track_options *track, struct wss_error *err)
{
	if (wss_tracker_parse(value, ret_method, track, err) < 0)
		return wss_error_prefix(err, "--method");
	return 0;
}

static int parse_granularity(const char *name, struct wss_measure_options *measure,
			     struct wss_error *err)
{
	measure->both = !strcmp(name, "both");
	if (measure->both || wss_granularity_parse(name, &measure->window.track.granularity) == 0)
		return 0;
	return wss_error_set(err, WSS_ERR_USAGE,
			     "--granularity: '%s' is not native, 4k, auto or both", name);
}

static int parse_recorder(const char *name, struct wss_measure_options *measure,
			  struct wss_error *err)
{
	static const char *const names[] = {
		[WSS_RECORDER_AUTO] = "auto",
		[WSS_RECORDER_PAGES] = "bpf",
		[WSS_RECORDER_COUNTERS] = "counters",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(name, names[i])) {
			measure->window.track.recorder = (enum wss_recorder_choice)i;
			return 0;
		}
	}
	return wss_error_set(err, WSS_ERR_USAGE, "--recorder: '%s' is not auto, bpf or counters",
			     name);
}

int wss_max_stall_parse(const char *value, uint64_t *ret_ns, struct wss_error *err)
{
	return wss_duration_parse(value, WSS_MAX_STALL_MAX_NS, "--max-stall", ret_ns, err);
}

static int option_take(struct wss_round_options *round, uint64_t *deadline_ns, int c,
		       const char *value, struct wss_error *err)
{
	struct wss_measure_options *measure = &round->measure;
	uint64_t number;

	switch (c) {
	case WSS_OPT_METHOD:
		return wss_method_parse(value, &measure->method, &measure->window.track, err);
	case WSS_OPT_GRANULARITY:
		return parse_granularity(value, measure, err);
	case WSS_OPT_MAX_FAULTS:
		return wss_number_parse(value, 1, UINT64_MAX, "--max-faults",
					&measure->window.track.max_faults, err);
	case WSS_OPT_MAX_STALL:
		return wss_max_stall_parse(value, &measure->window.track.max_stall_ns, err);
	case WSS_OPT_RECORDER:
		return parse_recorder(value, measure, err);
	case WSS_OPT_DEADLINE:
		return wss_duration_parse(value, DEADLINE_MAX_NS, "--deadline", deadline_ns, err);
	case WSS_OPT_JOBS:
		if (wss_number_parse(value, 1, JOBS_MAX, "--jobs", &number, err) < 0)
			return -1;
		round->jobs = (unsigned)number;
		return 0;
	default:
		measure->window.pause = true;
		return 0;
	}
}

int wss_window_option(struct wss_round_options *round, uint64_t *deadline_ns, int c,
		      const char *value, struct wss_error *err)
{
	if (c < WSS_OPT_METHOD || c > WSS_OPT_JOBS)
		return 0;
	return option_take(round, deadline_ns, c, value, err) < 0 ? -1 : 1;
}

void wss_window_say_progress(const struct wss_round_progress *progress, struct wss_progress *line)
{
	char text[64];

	if (progress->n < 2)
		return;
	snprintf(text, sizeof(text), "%zu of %zu guests", progress->done, progress->n);
	wss_progress_say(line, text);
}
