/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Axes of pictures: round ticks for time and size with their labels, and labels at both ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Position of the plot in the picture. */
struct wss_axis_box {
	double left, right, top, bottom;
};

#define WSS_TICKS_MAX 64

/* Ticks of an axis. All zero except for vertical means no ticks. */
struct wss_ticks {
	bool vertical;
	size_t n;
	struct wss_tick {
		double at; /* coordinate */
		char text[24];
	} list[WSS_TICKS_MAX];
};

/* Adds a tick unless its label would touch another one. */
void wss_ticks_add(struct wss_ticks *ticks, double at, const char *text);

/* Removes trailing zeros of a fraction: "1.50 GiB" becomes "1.5 GiB". */
void wss_axis_trim(char *text);

/*
 * Formats a size for an axis, without rounding it to three digits like a measured size: in the
 * largest unit for which two decimals suffice ("1.25 GiB", "1025 GiB"). size: at least 24.
 */
void wss_axis_size_label(uint64_t bytes, char *ret_text, size_t size);

/* Returns the shortest round step, in ns, with at most `ticks` ticks over the length. */
double wss_axis_time_step(double length_ns, unsigned ticks);

/*
 * Formats a time on an axis with this step that ends at end_ns: "5 s", "1.5 h", "0.25 s". All
 * labels of an axis have the same unit. size: 16.
 */
void wss_axis_time_label(double ns, double step_ns, double end_ns, char *ret_text, size_t size);

/* Makes the ticks of a linear axis of time from from_ns to to_ns, which is later. */
void wss_ticks_time(struct wss_ticks *ticks, const struct wss_axis_box *box, double from_ns,
		    double to_ns);

/*
 * Makes about six ticks of a linear axis of size that starts at 0 and includes bytes. Returns
 * the end of the axis, which is its last tick.
 */
uint64_t wss_ticks_size(struct wss_ticks *ticks, const struct wss_axis_box *box, uint64_t bytes);

/*
 * Draws the axis with its ticks and its label: a horizontal axis below the box, within
 * WSS_AXIS_BELOW units, a vertical one to its left. grid: draw a line across the box at each
 * tick.
 */
#define WSS_AXIS_BELOW 66.0
void wss_axis_draw(FILE *f, const struct wss_axis_box *box, const struct wss_ticks *ticks,
		   const char *label, bool grid);
