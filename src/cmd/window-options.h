/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options shared by sample and profile: how to take windows, and of how many guests at a time. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "measure/round.h"
#include "show/progress.h"

enum {
	WSS_OPT_METHOD = 2000,
	WSS_OPT_GRANULARITY,
	WSS_OPT_MAX_FAULTS,
	WSS_OPT_MAX_STALL,
	WSS_OPT_RECORDER,
	WSS_OPT_PAUSE,
	WSS_OPT_DEADLINE,
	WSS_OPT_JOBS,
};

#define WSS_WINDOW_LONG                                                        \
	{"method", required_argument, NULL, WSS_OPT_METHOD},                   \
		{"granularity", required_argument, NULL, WSS_OPT_GRANULARITY}, \
		{"max-faults", required_argument, NULL, WSS_OPT_MAX_FAULTS},   \
		{"max-stall", required_argument, NULL, WSS_OPT_MAX_STALL},     \
		{"recorder", required_argument, NULL, WSS_OPT_RECORDER},       \
		{"pause", no_argument, NULL, WSS_OPT_PAUSE},                   \
		{"deadline", required_argument, NULL, WSS_OPT_DEADLINE},       \
	{                                                                      \
		"jobs", required_argument, NULL, WSS_OPT_JOBS                  \
	}

/* Parses the value of --method with wss_tracker_parse(). Returns 0, or -1. */
int wss_method_parse(const char *value, const struct wss_tracker_ops **ret_method,
		     struct wss_track_options *track, struct wss_error *err);

/*
 * Parses the value of --max-stall, also for commands that have none of the other options.
 * Returns 0, or -1.
 */
int wss_max_stall_parse(const char *value, uint64_t *ret_ns, struct wss_error *err);

/*
 * Stores option c of getopt_long() with its value. Returns 1 if it is one of these options, 0
 * if not, -1 with err set. --deadline goes to *deadline_ns, all others to round.
 */
int wss_window_option(struct wss_round_options *round, uint64_t *deadline_ns, int c,
		      const char *value, struct wss_error *err);

/* Shows on line (NULL: nowhere) how many of several guests are done. */
void wss_window_say_progress(const struct wss_round_progress *progress, struct wss_progress *line);
