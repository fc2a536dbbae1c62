/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by the pictures of recordings: the source of the data, and marks, which are numbered
 * at the upper edge of the plot and listed below it.
 */
#pragma once

#include <stdio.h>

#include "pages/marks.h"
#include "show/chart.h"

/* Returns the source line for a recording that ends at end_ns. It points into the recording. */
struct wss_chart_source wss_recording_source(const struct wss_recording *recording,
					     uint64_t end_ns);

/* Marks of a recording, sorted by time, for a picture of a part of the recording. */
struct wss_mark_chart {
	const struct wss_marks *marks; /* all marks of the recording */
	double from_ns,
		to_ns; /* part that is shown; marks outside are left out but keep their numbers */
	bool outside;  /* draw ticks above the plot only, because the plot hides lines */
};

/*
 * Returns the room that marks need above the plot, and that their list needs below it; 0 if
 * there are none.
 */
double wss_mark_chart_above(const struct wss_mark_chart *chart);
double wss_mark_chart_below(const struct wss_mark_chart *chart);

/*
 * Draws the marks as lines through the plot, or as ticks at its upper edge if there are many,
 * and their list, which begins at y.
 */
void wss_mark_chart_draw(FILE *f, const struct wss_mark_chart *chart,
			 const struct wss_axis_box *box, double y);
