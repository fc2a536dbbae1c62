/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The history as a table: a row each hour or day of a series, or each sample. */
#ifndef WSS_OUT_HISTORY_REPORT_H
#define WSS_OUT_HISTORY_REPORT_H

#include "out/report.h"
#include "wss/span.h"

/* Rows are struct wss_history_span. */
extern const struct wss_report_layout wss_history_span_layout;

/* Rows are struct wss_sample, as they are stored. */
extern const struct wss_report_layout wss_history_sample_layout;

#endif
