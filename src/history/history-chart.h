/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Terminal chart of one guest's history, with time to the right and size upwards. */
#pragma once

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
	const char *title;			/* one line; unprintable characters are replaced */
	const struct wss_history_point *points; /* n_points (at least one), by time */
	size_t n_points;
	bool blocks; /* draw Unicode blocks, an eighth of a line each; else '#' */
};

/*
 * Draws the largest point of each column's time span, in at most width columns (40 or more).
 * Times without points stay blank.
 */
void wss_history_chart_print(FILE *f, const struct wss_history_chart *chart, int width);

/* Whether the user's locale has UTF-8. */
bool wss_locale_is_utf8(void);
