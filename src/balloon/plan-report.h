/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan as a row of a table. */
#pragma once

#include "balloon/plan.h"
#include "show/report.h"

/* Room for a command with the path of a history. */
#define WSS_BALLOON_HINT_MAX 4096

struct wss_balloon_row {
	const char *domain;
	const char *uuid;
	const char *action; /* "shrink", "none" or "refused"; NULL after an error */
	char reason[128];
	const char *error;
	struct wss_amount from_bytes, to_bytes, gain_bytes, held_bytes;
	char hint[WSS_BALLOON_HINT_MAX]; /* how an operator can lift a refusal; "" if unknown */
};

extern const struct wss_report_layout wss_balloon_layout;

/* Fills in the plan, and what the look that it was made from has seen. */
void wss_balloon_row_plan(struct wss_balloon_row *row, const struct wss_look *look,
			  const struct wss_balloon_plan *plan);
