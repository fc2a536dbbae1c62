/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The row that squeeze prints. */
#pragma once

#include "balloon/squeeze.h"
#include "cmd/balloon.h"

struct squeeze_row {
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
	char hint[BALLOON_HINT_MAX];
	const char *error;
};

extern const struct wss_report_layout squeeze_layout;
/* The same, with what --dry-run knows. */
extern const struct wss_report_layout squeeze_plan_layout;
