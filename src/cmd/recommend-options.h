/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The options of recommend. */
#ifndef WSS_CMD_RECOMMEND_OPTIONS_H
#define WSS_CMD_RECOMMEND_OPTIONS_H

#include "cmd/recommend-backtest.h"
#include "cmd/sizing-options.h"
#include "service/host-sum.h"

struct recommend_options {
	struct wss_sizing_options sizing;
	double probability;
	const char *plot;
	bool host; /* what fits on the host, instead of each guest's size */
	struct wss_amount reserve_bytes;
	const char *flavours; /* a file, or NULL */
	struct wss_rounding rounding;
	struct recommend_backtest_options backtest;
	bool rule_given, others_given; /* options for the rule, and those that a backtest has no use for */
};

#define RECOMMEND_OPTIONS_INIT                                                                \
	{                                                                                     \
		.sizing = WSS_SIZING_OPTIONS_INIT, .probability = WSS_HOST_SUM_PROBABILITY,   \
		.backtest = RECOMMEND_BACKTEST_OPTIONS_INIT,                                  \
	}

const struct wss_report_layout *recommend_layout_of(const struct recommend_options *options);

extern const struct wss_syntax recommend_syntax;

/*
 * Parses the command line, and reads the file of flavours. For recommend_options_free(), also on error:
 * WSS_ERR_USAGE, WSS_ERR_FAILED, WSS_ERR_GONE, WSS_ERR_NO_MEMORY. options must not move afterwards.
 */
int recommend_parse(struct wss_cli *cli, int argc, char **argv, struct recommend_options *options,
		    struct wss_error *err);

void recommend_options_free(struct recommend_options *options);

#endif
