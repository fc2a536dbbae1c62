/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Summary of the windows of one series in an hour or a day. */
#pragma once

#include "cold/cold-timeline.h"
#include "history/summary.h"

struct wss_history_span {
	const char *domain, *uuid, *method; /* owned by the creator of the struct */
	enum wss_observes observes;
	struct wss_amount granularity_bytes;
	uint64_t requested_window_ns;
	time_t start;		    /* start of the hour or day, in UTC */
	int seconds;		    /* its length */
	struct wss_summary summary; /* without its curve */
	/* How cold the guest's memory was at its end; NULL: not known. */
	const struct wss_cold_report *cold;
};
