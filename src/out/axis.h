/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The axes of pictures: round ticks for time and size, their labels, and both ends labelled.
 */
#ifndef WSS_OUT_AXIS_H
#define WSS_OUT_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Where the plot lies in the picture. */
struct wss_axis_box {
	double left, right, top, bottom;
};

#define WSS_TICKS_MAX 64

/* The ticks of an axis. Zeroed but for vertical there are none. */
struct wss_ticks {
	bool vertical;
	size_t n;
	struct wss_tick {
		double at; /* coordinate */
		char text[24];
	} list[WSS_TICKS_MAX];
};

/* Adds a tick, unless its label would touch one that is there. */
void wss_ticks_add(struct wss_ticks *ticks, double at, const char *text);

/* Without zeros behind the point, as "1.5 GiB" for a measured "1.50 GiB". */
void wss_axis_trim(char *text);

/*
 * A size as an axis has it, which is not rounded to three digits as one that was measured: in the
 * largest unit in which two decimals suffice, "1.25 GiB", "1025 GiB". size: at least 24.
 */
void wss_axis_size_label(uint64_t bytes, char *ret_text, size_t size);

/* The shortest round step of which at most that many fit into the length; ns. */
double wss_axis_time_step(double length_ns, unsigned ticks);

/*
 * A time on an axis that has this step and ends at end_ns: "5 s", "1.5 h", "0.25 s". All
 * labels of an axis have the same unit. size: 16.
 */
void wss_axis_time_label(double ns, double step_ns, double end_ns, char *ret_text,
			 size_t size);

/* Ticks of a linear axis of time that goes from from_ns to to_ns, which is later. */
void wss_ticks_time(struct wss_ticks *ticks, const struct wss_axis_box *box, double from_ns,
		    double to_ns);

/*
 * Ticks of a linear axis of size from 0, about six; bytes is what must fit. Returns where the
 * axis ends: at its last tick.
 */
uint64_t wss_ticks_size(struct wss_ticks *ticks, const struct wss_axis_box *box,
			uint64_t bytes);

/*
 * Draws the axis with its ticks and its label: the horizontal one below the box, within
 * WSS_AXIS_BELOW units, the vertical one left of it. grid: with a line across the box for each
 * tick.
 */
#define WSS_AXIS_BELOW 66.0
void wss_axis_draw(FILE *f, const struct wss_axis_box *box, const struct wss_ticks *ticks,
		   const char *label, bool grid);

#endif
