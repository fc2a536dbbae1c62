/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Report on a recording, as text, CSV (its graph) or JSON. */
#pragma once

#include <stdio.h>

#include "pages/refset.h"
#include "show/report.h"

struct wss_refset_report {
	const char *file;
	const struct wss_recording *recording;
	const struct wss_refset_result *result;
	uint64_t file_bytes;
	uint64_t duration_ns;
	bool ended;
	bool whole; /* all of the file was read */
};

/*
 * Prints the report. width: columns of the graph in text. If the view names columns or an
 * order, the text has a table of windows instead of the graph. WSS_ERR_FAILED if it could not
 * be written.
 */
int wss_refset_report_print(FILE *stream, enum wss_format format, const struct wss_view *view,
			    const struct wss_refset_report *report, int width,
			    struct wss_error *err);
