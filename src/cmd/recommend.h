/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recommend: its options, the rows and the notes of its table, and its backtest, which judges recommendations by what guests
 * needed later.
 */
#pragma once

#include "cmd/cmd.h"
#include "cmd/sizing-options.h"
#include "sizing/advice-text.h"
#include "sizing/backtest.h"
#include "sizing/config-advice.h"
#include "sizing/host-sum.h"
#include "sizing/rounding.h"

struct recommend_row {
	const char *domain;
	const char *uuid;
	const char *error;
	bool active;
	bool reports_free;	   /* its balloon reports free pages to the host */
	struct wss_conn_size size; /* as libvirt says */
	struct wss_policy policy;
	struct wss_advice advice;
	bool has_findings; /* its configuration was read */
	/* What keeps its memory on the host; "": nothing that is known. */
	char blocked[WSS_CONFIG_BLOCKS_MAX];
	size_t n_findings;
	struct wss_config_finding findings[WSS_CONFIG_SETTINGS];
};

/*
 * Notes to the table: which windows the sizes are based on, what was left out, and the next
 * step. They are collected row by row and printed after the table.
 */
#define RECOMMEND_KINDS_MAX 8
#define RECOMMEND_NOTES_MAX 16

struct recommend_notes {
	size_t n_kinds, n_notes;
	size_t more_kinds, more_notes; /* number of guests and notes that did not fit */
	struct recommend_kind {
		char text[WSS_ADVICE_TEXT_MAX];
		char guests[200]; /* names of guests */
		size_t n_guests, n_named;
	} kinds[RECOMMEND_KINDS_MAX];
	char notes[RECOMMEND_NOTES_MAX][WSS_ADVICE_TEXT_MAX + 300];
	size_t n_needs; /* what each size has proved, after the notes */
	char needs[RECOMMEND_NOTES_MAX][WSS_ADVICE_TEXT_MAX + 300];
	/* The next step for the guest that would free the most memory. */
	char step[WSS_ADVICE_TEXT_MAX + 300];
	uint64_t step_bytes;
	size_t n_freeing;	       /* number of guests that would free memory */
	uint64_t freed_bytes;	       /* memory that they would free together */
	struct recommend_kind no_size; /* guests of which only the need is known */
	size_t n_no_balloon;	       /* those of them that have no balloon which could tell */
	size_t n_silent;	       /* those whose balloon is asked, and does not tell */
	size_t n_improvable;	       /* guests whose configuration could return more */
	/* Who may have a guest report statistics, a clause; NULL: libvirt, by virsh. */
	const char *statistics_by;
	bool named; /* the guests were named, so that each may be explained at length */
};

/* risk: that of the options. */
void recommend_notes_add(struct recommend_notes *notes, const struct recommend_row *row);

/* Prints the notes; the next step only on a terminal. */
void recommend_notes_print(const struct recommend_notes *notes, bool terminal);

extern const struct wss_report_layout recommend_layout;
extern const struct wss_report_layout recommend_what_if_layout;	  /* the same, of another table */
extern const struct wss_report_layout *const recommend_layouts[]; /* to be listed */

/* --- the backtest --- */

struct recommend_backtest_options {
	bool backtest;
	bool given; /* an option that only it has */
	uint64_t train_ns, test_ns;
};

#define RECOMMEND_BACKTEST_OPTIONS_INIT                                     \
	{                                                                   \
		.train_ns = WSS_ADVICE_SPAN_MAX_NS, /* all that there is */ \
			.test_ns = 7 * WSS_HISTORY_DAY * WSS_NS_PER_S,      \
	}

/* --- the options --- */

struct recommend_options {
	struct wss_sizing_options sizing;
	double probability;
	const char *plot;
	bool host; /* what fits on the host, instead of each guest's size */
	struct wss_amount reserve_bytes;
	const char *flavours; /* a file, or NULL */
	struct wss_rounding rounding;
	struct recommend_backtest_options backtest;
	bool others_given; /* options that a backtest has no use for */
};

#define RECOMMEND_OPTIONS_INIT                                                              \
	{                                                                                   \
		.sizing = WSS_SIZING_OPTIONS_INIT, .probability = WSS_HOST_SUM_PROBABILITY, \
		.backtest = RECOMMEND_BACKTEST_OPTIONS_INIT,                                \
	}

const struct wss_report_layout *recommend_layout_of(const struct recommend_options *options);

/* For struct wss_command. */
extern const struct option recommend_long_options[];
int recommend_take(void *options, int c, const char *value, struct wss_error *err);

/*
 * Parses the command line, and reads the file of flavours. For recommend_options_free(), also on error:
 * WSS_ERR_USAGE, WSS_ERR_FAILED, WSS_ERR_GONE, WSS_ERR_NO_MEMORY. options must not move afterwards.
 */
int recommend_parse(struct wss_cli *cli, int argc, char **argv, struct recommend_options *options,
		    struct wss_error *err);

void recommend_options_free(struct recommend_options *options);

/*
 * Runs the backtest, reading only the history, and with --connect the guests' policies. Returns the
 * exit code.
 */
int recommend_backtest_run(struct wss_cli *cli, const struct recommend_options *options);
