/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Columns of a sample. */
#pragma once

#include "show/report.h"

/*
 * Returns the layout of rows that are struct wss_sample. both: append the figures of the
 * window by the host's mappings. series: the table shows the time of each of several windows.
 */
const struct wss_report_layout *wss_sample_layout(bool both, bool series);

/* All columns, for lists of them. */
extern const struct wss_report_layout wss_sample_all_layout;
