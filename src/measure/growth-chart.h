/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Growth curve of one or more guests, as a picture and in the terminal. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "measure/curve.h"
#include "measure/sample.h"
#include "show/chart.h"

/* One guest's curve and the sizes to compare it with. */
struct wss_growth_drawn {
	const char *domain;
	const char *method;
	uint64_t granularity_bytes;
	bool degraded; /* one of its windows was degraded */
	struct wss_amount rss_bytes;
	struct wss_amount balloon_bytes;
	const struct wss_grid *grid;
};

/*
 * Draws an SVG with logarithmic axes for time and size. RSS is a dashed line, the balloon a
 * dotted one; each guest has its own colour. The knee is a dot, the spread of several windows
 * a band; where only bounds are known, a paler band lies between them and the curve is dashed.
 * The caller checks the stream for errors.
 */
void wss_growth_plot(FILE *f, const struct wss_chart_source *source,
		     const struct wss_growth_drawn *guests, size_t n);

/*
 * Prints the curve of one guest as text, in lines of at most width columns (38 or more). Where
 * only bounds are known, prints both, and a bar of '-' from one to the other.
 */
void wss_growth_print(FILE *f, const struct wss_growth_drawn *guest, int width);
