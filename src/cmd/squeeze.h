/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The row that squeeze prints. */
#ifndef WSS_CMD_SQUEEZE_H
#define WSS_CMD_SQUEEZE_H

#include "cmd/balloon.h"
#include "wss/squeeze.h"

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
	const char *end;     /* why it ended, static; NULL if it did not begin */
	const char *refusal; /* static; NULL if there is none */
	/* By the history: of its working set, and then of the whole guest. */
	struct wss_amount recommended_bytes, recommended_size_bytes;
	const char *unrecommended; /* why that is absent; NULL if it is not */
	char hint[BALLOON_HINT_MAX];
	const char *error;
};

extern const struct wss_report_layout squeeze_layout;

#endif
