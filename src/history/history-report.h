/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The history as a table: a row for each hour or day of a series, or for each sample. */
#pragma once

#include "history/span.h"
#include "show/report.h"

/* Layout of rows that are struct wss_history_span. */
extern const struct wss_report_layout wss_history_span_layout;

/* Layout of rows that are stored struct wss_sample. */
extern const struct wss_report_layout wss_history_sample_layout;
