/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The columns of a sample.
 */
#ifndef WSS_OUT_SAMPLE_REPORT_H
#define WSS_OUT_SAMPLE_REPORT_H

#include "out/report.h"

/*
 * Rows are struct wss_sample. both: with the figures of the window by the host's mappings at the
 * end. series: for several windows of a guest, each with its time in the table.
 */
const struct wss_report_layout *wss_sample_layout(bool both, bool series);

/* All columns that there are, to be listed. */
extern const struct wss_report_layout wss_sample_all_layout;

#endif
