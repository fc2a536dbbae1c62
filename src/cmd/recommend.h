/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What recommend computes and what it prints of it.
 */
#ifndef WSS_CMD_RECOMMEND_H
#define WSS_CMD_RECOMMEND_H

#include "cmd/cmd.h"
#include "out/missrate-chart.h"
#include "store/history.h"
#include "wss/sizing.h"

struct recommend_row {
	const char *domain;
	const char *uuid;
	const char *error;
	bool active;	    /* what does not run holds nothing, whatever its newest sample says */
	const char *status; /* "ok", "too early", "unknown", "opted out", "failed" */
	bool has_series;
	struct wss_history_series series;
	struct wss_sizing_rule rule;
	struct wss_policy policy;
	struct wss_sizing sizing;
	struct wss_amount held_bytes, assigned_bytes, curve_bytes;
	struct wss_amount what_if_bytes;
	bool has_missrate, curve_is_beyond;
	double exceeded, faults_per_second, loss; /* at what_if_bytes */
	bool bound;				  /* these two are at most that */
};

struct recommend_host {
	uint64_t guests, hours;
	uint64_t unsized;	     /* that count with all they were given, whatever their status */
	uint64_t unknown, too_early; /* by their status */
	double probability;
	bool from_peak;
	struct wss_amount wss_bytes, assigned_bytes, needed_bytes, overhead_bytes, host_bytes;
	struct wss_amount fits_bytes;
};

extern const struct wss_report_layout recommend_layout;
extern const struct wss_report_layout recommend_what_if_layout; /* the same, of another table */
extern const struct wss_report_layout recommend_host_layout;
extern const struct wss_report_layout *const recommend_layouts[]; /* to be listed */

#endif
