/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the guests of a host need together, as a row of a table. */
#pragma once

#include "show/report.h"
#include "sizing/host-sum.h"

/* For a table, whose single column shows either the percentile or that the figure is the peak. */
struct wss_value wss_value_share_or_peak(double share, bool from_peak);

extern const struct wss_report_layout wss_host_sum_layout; /* rows are struct wss_host_sum */
