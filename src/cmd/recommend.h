/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Rows of recommend, and the notes to its table. */
#ifndef WSS_CMD_RECOMMEND_H
#define WSS_CMD_RECOMMEND_H

#include "cmd/cmd.h"
#include "service/advice-text.h"
#include "service/host-sum.h"

struct recommend_row {
	const char *domain;
	const char *uuid;
	const char *error;
	bool active;
	struct wss_policy policy;
	struct wss_advice advice;
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
	/* The next step for the guest that would free the most memory. */
	char step[WSS_ADVICE_TEXT_MAX + 300];
	uint64_t step_bytes;
	size_t n_freeing;     /* number of guests that would free memory */
	uint64_t freed_bytes; /* memory that they would free together */
};

/* risk: that of the options. */
void recommend_notes_add(struct recommend_notes *notes, const char *domain,
			 const struct wss_advice *advice, double risk);

/* Prints the notes; the next step only on a terminal. */
void recommend_notes_print(const struct recommend_notes *notes, bool terminal);

extern const struct wss_report_layout recommend_layout;
extern const struct wss_report_layout recommend_what_if_layout; /* the same, of another table */
extern const struct wss_report_layout recommend_host_layout;	/* rows are struct wss_host_sum */
extern const struct wss_report_layout *const recommend_layouts[]; /* to be listed */

#endif
