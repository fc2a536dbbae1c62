/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The growth curve of one or several guests, as a picture and in the terminal.
 */
#ifndef WSS_OUT_GROWTH_CHART_H
#define WSS_OUT_GROWTH_CHART_H

#include <stddef.h>
#include <stdio.h>

#include "out/chart.h"
#include "wss/curve.h"
#include "wss/sample.h"

/* One guest's curve and what it is compared with. */
struct wss_growth_drawn {
	const char *domain;
	const char *method;
	uint64_t granularity_bytes;
	bool degraded; /* a window of it was */
	struct wss_amount rss_bytes;
	struct wss_amount balloon_bytes;
	const struct wss_grid *grid;
};

/*
 * An SVG with logarithmic axes: time, and size. RSS is a dashed line, balloon a dotted
 * one; of several guests each in its colour. The knee is a dot, the spread of several
 * windows a band; what is only bounded is a paler band between the bounds, and its curve dashed.
 * The stream is the caller's, who checks it for errors.
 */
void wss_growth_plot(FILE *f, const struct wss_chart_source *source,
		     const struct wss_growth_drawn *guests, size_t n);

/*
 * The curve of one guest as lines of text, its bars at most width columns wide, which
 * is 38 at least. What is only bounded has both bounds, and a bar of '-' from one to the other.
 */
void wss_growth_print(FILE *f, const struct wss_growth_drawn *guest, int width);

#endif
