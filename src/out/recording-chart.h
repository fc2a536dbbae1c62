/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the pictures of recordings have in common: where the data comes from, and the marks,
 * which are numbered at the upper edge of the plot and listed below it.
 */
#ifndef WSS_OUT_RECORDING_CHART_H
#define WSS_OUT_RECORDING_CHART_H

#include <stdio.h>

#include "out/chart.h"
#include "wss/marks.h"

/* The recording lasted end_ns. What it points to is the recording's. */
struct wss_chart_source wss_recording_source(const struct wss_recording *recording,
					     uint64_t end_ns);

/* Marks of the part of a recording that a picture shows, by time. */
struct wss_mark_chart {
	const struct wss_marks *marks; /* of the whole recording */
	double from_ns,
		to_ns; /* that is shown; marks outside keep their numbers and are left out */
	bool outside;  /* ticks above the plot only, which is covered */
};

/* The room that marks need above the plot, and the list below it; 0 where none is shown. */
double wss_mark_chart_above(const struct wss_mark_chart *chart);
double wss_mark_chart_below(const struct wss_mark_chart *chart);

/*
 * Draws the marks: as lines through the plot, or as ticks at its upper edge where they are
 * many; and the list, which begins at y.
 */
void wss_mark_chart_draw(FILE *f, const struct wss_mark_chart *chart,
			 const struct wss_axis_box *box, double y);

#endif
