/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of recommend, and the notes to its table. */
#ifndef WSS_CMD_RECOMMEND_H
#define WSS_CMD_RECOMMEND_H

#include "cmd/cmd.h"
#include "service/config-advice.h"
#include "service/advice-text.h"
#include "service/host-sum.h"
#include "wss/prior.h"

struct recommend_prior; /* the guests that priors are from */

/*
 * Reads what all guests of the connection are recommended. targets: those of the command. For
 * recommend_prior_free(); NULL with the errors of wss_targets_find() and wss_advice_read().
 */
struct recommend_prior *recommend_prior_read(const struct wss_cli *cli, const struct wss_targets *targets,
					     struct wss_history *history, time_t since,
					     const struct wss_advice_options *options,
					     struct wss_error *err);

/* Accepts NULL. */
void recommend_prior_free(struct recommend_prior *prior);

struct recommend_row {
	const char *domain;
	const char *uuid;
	const char *error;
	bool active;
	struct wss_conn_size size; /* as libvirt says */
	struct wss_policy policy;
	struct wss_advice advice;
	const struct wss_origin *origin; /* NULL: unknown */
	bool wants_prior; /* it is too early to size it by its own history */
	struct wss_prior prior;
	struct wss_prior_size prior_size;
	bool has_findings; /* its configuration was read */
	char blocked[WSS_CONFIG_BLOCKS_MAX]; /* what keeps its memory on the host; "": nothing that is known */
	size_t n_findings;
	struct wss_config_finding findings[WSS_CONFIG_SETTINGS];
};

/* Finds the prior of a guest whose origin is known, and its size by that. WSS_ERR_NO_MEMORY. */
int recommend_prior_find(const struct recommend_prior *prior, struct recommend_row *row,
			 struct wss_error *err);

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
	/* The next step for the guest that would free the most memory. */
	char step[WSS_ADVICE_TEXT_MAX + 300];
	uint64_t step_bytes;
	size_t n_freeing;     /* number of guests that would free memory */
	uint64_t freed_bytes; /* memory that they would free together */
	size_t n_improvable;  /* guests whose configuration could return more */
	bool named;	      /* the guests were named, so that each may be explained at length */
};

/* risk: that of the options. */
void recommend_notes_add(struct recommend_notes *notes, const struct recommend_row *row, double risk);

/* Prints the notes; the next step only on a terminal. */
void recommend_notes_print(const struct recommend_notes *notes, bool terminal);

/* A share, 1 = 100 %. */
struct wss_value recommend_value_share(double share);

/*
 * For a table, whose single column shows either the percentile or that the figure is the peak.
 */
struct wss_value recommend_value_share_or_peak(double share, bool from_peak);

extern const struct wss_report_layout recommend_layout;
extern const struct wss_report_layout recommend_what_if_layout; /* the same, of another table */
extern const struct wss_report_layout recommend_host_layout;	/* rows are struct wss_host_sum */
extern const struct wss_report_layout *const recommend_layouts[]; /* to be listed */

#endif
