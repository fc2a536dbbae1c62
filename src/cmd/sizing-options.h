/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of commands that size guests: how much of the history counts, and the sizing rule. */
#pragma once

#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "sizing/advice.h"

enum {
	WSS_OPT_SPAN = 5000,
	WSS_OPT_HEADROOM,
	WSS_OPT_HOLD,
	WSS_OPT_MINIMUM,
};

#define WSS_SIZING_LONG                                                    \
	WSS_HISTORY_LONG, {"span", required_argument, NULL, WSS_OPT_SPAN}, \
		{"headroom", required_argument, NULL, WSS_OPT_HEADROOM},   \
		{"hold", required_argument, NULL, WSS_OPT_HOLD},           \
	{                                                                  \
		"minimum", required_argument, NULL, WSS_OPT_MINIMUM        \
	}

struct wss_sizing_options {
	struct wss_store_options history;
	struct wss_advice_options advice;
};

#define WSS_SIZING_OPTIONS_INIT                                                      \
	{                                                                            \
		.history = WSS_STORE_OPTIONS_INIT, .advice = WSS_ADVICE_OPTIONS_INIT \
	}

/*
 * Stores option c of getopt_long() with its value. Returns 1 if it is one of these options, 0
 * if not, -1 with err set.
 */
int wss_sizing_option(struct wss_sizing_options *options, int c, const char *value,
		      struct wss_error *err);

/*
 * Checks the options after all have been parsed. Returns 0, or -1 with WSS_ERR_USAGE, for
 * example because guests of --qmp have no history.
 */
int wss_sizing_check(const struct wss_cli *cli, struct wss_error *err);

/*
 * Opens the history for reading; close it with wss_history_close(). If there is none yet at
 * the default path, reports that, leaves *ret_history NULL and returns 0. Returns -1 with
 * WSS_ERR_GONE if the file that --history names does not exist, WSS_ERR_NO_MEMORY, and the
 * errors of wss_history_open_readonly().
 */
int wss_sizing_open(const struct wss_sizing_options *options, struct wss_history **ret_history,
		    struct wss_error *err);
