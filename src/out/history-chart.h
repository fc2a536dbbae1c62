/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The history of one guest as columns of a terminal: time to the right, size upwards. */
#ifndef WSS_OUT_HISTORY_CHART_H
#define WSS_OUT_HISTORY_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct wss_history_point {
	time_t time;
	uint64_t bytes;
};

struct wss_history_chart {
	const char *title; /* one line; what of it is not printable is replaced */
	const struct wss_history_point *points; /* by time; n_points of them, at least one */
	size_t n_points;
	bool blocks; /* by blocks of Unicode, an eighth of a line each; else by '#' */
};

/*
 * Draws the largest point of each column's time, in at most width columns of the terminal, 40
 * or more; times in which points are missing stay blank.
 */
void wss_history_chart_print(FILE *f, const struct wss_history_chart *chart, int width);

/* Whether the user's locale has UTF-8. */
bool wss_locale_is_utf8(void);

#endif
