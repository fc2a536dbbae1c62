/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a squeeze has found, or would do, as a row of a table. */
#pragma once

#include "balloon/plan-report.h"
#include "balloon/squeeze.h"
#include "show/report.h"

struct wss_squeeze_row {
	const char *domain;
	const char *uuid;
	const char *action; /* "squeezed", "squeeze" or "refused"; NULL after an error */
	struct wss_amount from_bytes, floor_bytes;
	/*
	 * Smallest size at which it was observed; number of smaller sizes; observations at all
	 * sizes.
	 */
	struct wss_amount smallest_bytes, steps, observations;
	struct wss_amount longest_ns; /* that a squeeze may take */
	struct wss_edges edges;
	/* By its own reports, once it has been looked at. */
	bool has_memory;
	struct wss_squeeze_memory memory;
	const char *end;		     /* why it ended, static; NULL if it did not begin */
	const char *refusal;		     /* static; NULL if there is none */
	struct wss_amount recommended_bytes; /* by the history, as recommend has it */
	const char *unrecommended;	     /* why that is absent; NULL if it is not */
	char hint[WSS_BALLOON_HINT_MAX];
	const char *error;
};

extern const struct wss_report_layout wss_squeeze_layout;
/* The same, with what is known before a squeeze. */
extern const struct wss_report_layout wss_squeeze_plan_layout;

/* Fills in what a squeeze that has ended found, but the guest. */
void wss_squeeze_row_end(struct wss_squeeze_row *row, const struct wss_squeeze *squeeze);

/*
 * Fills in what a squeeze with these options would do to a guest of this policy, by a look that wss_look_journal() has completed.
 * ret_no_step has a refusal, and must live as long as the row.
 */
void wss_squeeze_row_preview(struct wss_squeeze_row *row, const struct wss_look *look,
			     const struct wss_policy *policy,
			     const struct wss_squeeze_options *options,
			     char ret_no_step[WSS_SQUEEZE_TEXT_MAX]);
