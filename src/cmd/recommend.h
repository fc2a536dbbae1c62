/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rows that recommend prints.
 */
#ifndef WSS_CMD_RECOMMEND_H
#define WSS_CMD_RECOMMEND_H

#include "cmd/cmd.h"
#include "service/advice.h"
#include "service/host-sum.h"

struct recommend_row {
	const char *domain;
	const char *uuid;
	const char *error;
	bool active;
	struct wss_policy policy;
	struct wss_advice advice;
};

extern const struct wss_report_layout recommend_layout;
extern const struct wss_report_layout recommend_what_if_layout; /* the same, of another table */
extern const struct wss_report_layout recommend_host_layout;	/* rows are struct wss_host_sum */
extern const struct wss_report_layout *const recommend_layouts[]; /* to be listed */

#endif
