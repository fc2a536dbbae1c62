/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Frame of all pictures: the title, a line about the source of the data, the legend, and room
 * for the plot.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "show/axis.h"

#define WSS_CHART_WIDTH 960.0
/* Number of guests that the legend names; it only counts the others. */
#define WSS_CHART_NAMED_MAX 12

/* Source of the data. Members that are NULL, "" or 0 are unknown and omitted. */
struct wss_chart_source {
	const char *host;
	time_t start;
	time_t end; /* if the data is spread over days */
	uint64_t length_ns;
	const char *method;
	uint64_t granularity_bytes;
	const char *extra; /* any other text */
};

enum wss_chart_symbol { WSS_CHART_DOT, WSS_CHART_LINE, WSS_CHART_AREA, WSS_CHART_NO_SYMBOL };

/* Entry of the legend. */
struct wss_chart_key {
	enum wss_chart_symbol symbol;
	const char *class;
	char text[448];
	char note[96]; /* at the right end of the row, if the key has own_row; else "" */
	bool own_row;
};

struct wss_chart {
	const char *name; /* for screen readers */
	/* The title; domain may be NULL, and is cut if there is no room for it. */
	const char *before, *domain, *after;
	struct wss_chart_source source;
	const struct wss_chart_key *keys;
	size_t n_keys;
	double left, right; /* margins */
	double above;	    /* room between the legend and the plot */
	double plot_height;
	double below; /* room below the plot for the axis and everything else */
};

/*
 * Starts the picture and draws everything but the plot, which belongs into *ret_box. Finish
 * with wss_svg_end().
 */
void wss_chart_begin(FILE *f, const struct wss_chart *chart, struct wss_axis_box *ret_box);

/* Makes the last row of a legend that does not name all n guests; returns false if it does. */
bool wss_chart_more(struct wss_chart_key *key, size_t n);

/* Makes a name from outside printable, and shortens it to that width with an ellipsis. */
void wss_chart_fit_name(const char *name, double font, double width, char *ret_text, size_t size);
