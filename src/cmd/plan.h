/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows that plan prints. */
#pragma once

#include "fleet/plan.h"
#include "show/report.h"

/* Prints the plan. The report is open, and closed by the caller. */
void plan_report(const struct wss_plan *plan, struct wss_report *report);

extern const struct wss_report_layout plan_layout;
extern const struct wss_report_layout *const plan_layouts[];
