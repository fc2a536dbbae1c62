/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The frame that all pictures have in common: the title, a line that says what the data is,
 * the legend, and the place for the plot.
 */
#ifndef WSS_OUT_CHART_H
#define WSS_OUT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "out/axis.h"

#define WSS_CHART_WIDTH 960.0
/* Guests that the legend names; the others are only counted there. */
#define WSS_CHART_NAMED_MAX 12

/* Where the data comes from. What is NULL, "" or 0 is not known, and left out. */
struct wss_chart_source {
	const char *host;
	time_t start;
	time_t end; /* where the data is spread over days */
	uint64_t length_ns;
	const char *method;
	uint64_t granularity_bytes;
	const char *extra; /* anything else */
};

enum wss_chart_symbol { WSS_CHART_DOT, WSS_CHART_LINE, WSS_CHART_AREA, WSS_CHART_NO_SYMBOL };

/* An entry of the legend. */
struct wss_chart_key {
	enum wss_chart_symbol symbol;
	const char *class;
	char text[448];
	char note[96]; /* at the right end of the row, of a key that has own_row; "" else */
	bool own_row;
};

struct wss_chart {
	const char *name; /* for screen readers */
	/* The title; the domain, or NULL, is cut where there is no room for it. */
	const char *before, *domain, *after;
	struct wss_chart_source source;
	const struct wss_chart_key *keys;
	size_t n_keys;
	double left, right; /* margins */
	double above;	    /* between the legend and the plot */
	double plot_height;
	double below; /* for the axis and what else is below the plot */
};

/* Opens the picture and draws all but the plot, whose place is *ret_box. See wss_svg_end(). */
void wss_chart_begin(FILE *f, const struct wss_chart *chart, struct wss_axis_box *ret_box);

/* The last row of a legend that does not name all n guests; false where it does. */
bool wss_chart_more(struct wss_chart_key *key, size_t n);

/* A name that comes from elsewhere, for a place of that width: printable, cut with an
 * ellipsis. */
void wss_chart_fit_name(const char *name, double font, double width, char *ret_text,
			size_t size);

#endif
