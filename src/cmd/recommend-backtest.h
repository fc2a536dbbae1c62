/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The backtest of recommend: judges recommendations by what guests needed later. */
#ifndef WSS_CMD_RECOMMEND_BACKTEST_H
#define WSS_CMD_RECOMMEND_BACKTEST_H

#include "cmd/cmd.h"
#include "cmd/store-options.h"
#include "wss/backtest.h"

struct recommend_backtest_options {
	bool backtest, sweep;
	bool given; /* an option that only these have */
	uint64_t train_ns, test_ns;
	double violations; /* of --sweep: largest share of hours */
};

#define RECOMMEND_BACKTEST_OPTIONS_INIT                                                       \
	{                                                                                     \
		.train_ns = WSS_ADVICE_SPAN_MAX_NS, /* all that there is */                   \
		.test_ns = 7 * WSS_HISTORY_DAY * WSS_NS_PER_S, .violations = 0.01,            \
	}

/* Sums over judged hours. */
struct recommend_backtest_loss {
	uint64_t hours; /* with a prediction */
	double share_sum;
	bool bound; /* some of them are upper bounds */
	uint64_t fault_hours; /* in which the guest has counted its major faults, with a prediction */
	double seen_sum, predicted_sum; /* per second */
};

/* A row: the figures of one size over one guest, or over all of them. */
struct recommend_backtest_row {
	const char *domain, *uuid; /* NULL: all guests */
	enum wss_backtest_player player;
	const struct wss_backtest *backtest;
	const struct recommend_backtest_loss *loss; /* NULL: of a rival */
	/* Of a rival with the margin at which it has as many violations. */
	bool has_equal;
	double equal_slack, equal_margin;
};

/* A row of the sweep: a rule for all guests. */
struct recommend_sweep_row {
	struct wss_learner_rule rule;
	struct wss_backtest backtest;
	bool cheapest; /* of those within the violation target */
};

extern const struct wss_report_layout recommend_backtest_layout;
extern const struct wss_report_layout recommend_sweep_layout;

struct recommend_options;

/*
 * Runs the backtest or the sweep, reading only the history, and with --connect the guests' policies. Returns the
 * exit code.
 */
int recommend_backtest_run(struct wss_cli *cli, const struct recommend_options *options);

#endif
