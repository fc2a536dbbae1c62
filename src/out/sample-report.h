/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The columns of a sample.
 */
#ifndef WSS_OUT_SAMPLE_REPORT_H
#define WSS_OUT_SAMPLE_REPORT_H

#include "out/report.h"

/* Rows are struct wss_sample. */
extern const struct wss_report_layout wss_sample_layout;

/* The same with the figures of the window by the host's mappings at the end. */
extern const struct wss_report_layout wss_sample_both_layout;

#endif
