/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ranges of guest-physical pages as text, CSV or JSON: the differences of two sets, and the hottest
 * ranges. Rows are written as they come.
 */
#pragma once

#include <stdio.h>

#include "base/amount.h"
#include "pages/recording.h"
#include "pages/top.h"
#include "show/report.h"

/* Comparison of two sets, in pages. */
struct wss_diff_summary {
	const char *a;
	const char *b;
	uint64_t a_pages;
	uint64_t b_pages;
	uint64_t gained;
	uint64_t lost;
	uint64_t kept;
	/* The gap in which the time of a set is, if it is in one. */
	struct wss_amount a_gap_start_ns, a_gap_end_ns, b_gap_start_ns, b_gap_end_ns;
};

/* Totals of the touched pages of recordings. */
struct wss_heat_summary {
	const char *domain;
	uint64_t recordings;
	uint64_t windows; /* of all recordings */
	uint64_t ranges;  /* number of ranges, whether shown or not */
};

/* One set of a diff, and which of its pages were written (NULL: unknown). */
struct wss_diff_side {
	const struct wss_pageset *pages;
	const struct wss_pageset *written;
};

struct wss_range_report;

/* Columns of the lists, and of the summaries that precede them in JSON. */
extern const struct wss_report_layout wss_diff_layout, wss_diff_summary_layout;
extern const struct wss_report_layout wss_heat_layout, wss_heat_summary_layout;

/* Writes the summary and starts the list. recording, stream and the sets must outlive it. */
int wss_range_report_diff(FILE *stream, enum wss_format format, const struct wss_view *view,
			  const struct wss_recording *recording,
			  const struct wss_diff_summary *summary, struct wss_diff_side a,
			  struct wss_diff_side b, struct wss_range_report **ret_report,
			  struct wss_error *err);

int wss_range_report_heat(FILE *stream, enum wss_format format, const struct wss_view *view,
			  const struct wss_recording *recording,
			  const struct wss_heat_summary *summary,
			  struct wss_range_report **ret_report, struct wss_error *err);

void wss_range_report_row(struct wss_range_report *report, const struct wss_page_range *range);

/*
 * Ends the list and frees the report. WSS_ERR_FAILED if anything could not be written. Accepts
 * NULL.
 */
int wss_range_report_close(struct wss_range_report *report, struct wss_error *err);
