/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan as tables: what to do, the hosts, and the total. */
#pragma once

#include "fleet/plan.h"
#include "show/report.h"

/* Prints the plan. The report is open, and closed by the caller. */
void wss_plan_report(const struct wss_plan *plan, struct wss_report *report);

extern const struct wss_report_layout wss_plan_layout;
extern const struct wss_report_layout *const wss_plan_layouts[]; /* to be listed */
