/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The options of what decides from the history: what of it counts, and by which rule.
 */
#ifndef WSS_CMD_SIZING_OPTIONS_H
#define WSS_CMD_SIZING_OPTIONS_H

#include "base/clock.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "wss/missrate.h"
#include "wss/sizing.h"

enum {
	WSS_OPT_SPAN = 5000,
	WSS_OPT_HEADROOM,
	WSS_OPT_MINIMUM,
	WSS_OPT_TARGET_LOSS,
	WSS_OPT_FAULT_COST,
};

#define WSS_SIZING_LONG                                                \
	WSS_HISTORY_LONG,                                              \
	{ "span", required_argument, NULL, WSS_OPT_SPAN },               \
	{ "headroom", required_argument, NULL, WSS_OPT_HEADROOM },       \
	{ "minimum", required_argument, NULL, WSS_OPT_MINIMUM },         \
	{ "target-loss", required_argument, NULL, WSS_OPT_TARGET_LOSS }, \
	{ "fault-cost", required_argument, NULL, WSS_OPT_FAULT_COST }

struct wss_sizing_options {
	struct wss_store_options history;
	struct wss_sizing_rule rule;
	uint64_t span_ns;
	double target_loss; /* share of time that may be lost to faults */
	uint64_t fault_ns;  /* what one costs */
};

#define WSS_SIZING_OPTIONS_INIT                                                 \
	{                                                                       \
		.history = WSS_STORE_OPTIONS_INIT,                              \
		.rule = { .percentile = 0.99, .headroom_percent = 20,           \
			  .minimum_bytes = 256 * WSS_MIB },                     \
		.span_ns = 7 * WSS_HISTORY_DAY * WSS_NS_PER_S,                  \
		.target_loss = 0.01, .fault_ns = WSS_MISSRATE_FAULT_NS          \
	}

/* Takes option c of getopt_long() with its value: 1 if it is one of these, 0 if not, -1. */
int wss_sizing_option(struct wss_sizing_options *options, int c, const char *value,
		      struct wss_error *err);

/*
 * The miss-rate curve of a series, and what it asks for into a state that is to be sized by: false,
 * and nothing, where its windows have no such curve.
 */
bool wss_sizing_ask_curve(const struct wss_sizing_options *options,
			  const struct wss_history_series *series,
			  struct wss_missrate *ret_missrate, struct wss_sizing_state *state);

/* After all arguments were read: 0, or -1 with WSS_ERR_USAGE, as --qmp has no history. */
int wss_sizing_check(const struct wss_cli *cli, struct wss_error *err);

/*
 * Opens the history to read it, for wss_history_close(). 0; *ret_history stays as it was, NULL,
 * where there is none yet at the default path, which is said. -1: WSS_ERR_GONE where the one that
 * --history names is not there, WSS_ERR_NO_MEMORY, and as wss_history_open_readonly().
 */
int wss_sizing_open(const struct wss_sizing_options *options, struct wss_history **ret_history,
		    struct wss_error *err);

#endif
