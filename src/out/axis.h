/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Round ticks for linear axes of time and size, and their labels; the axis of time that all
 * pictures of a recording have.
 */
#ifndef WSS_OUT_AXIS_H
#define WSS_OUT_AXIS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The shortest round step of which at most so many fit into the length; ns. */
double wss_axis_time_step(double length_ns, unsigned ticks);

/* A time that is a multiple of the step, in the step's unit: "5 s", "1.5 h". size: 16. */
void wss_axis_time_label(double ns, double step_ns, char *ret_text, size_t size);

/* The smallest power of two of which at most so many fit, bytes; at least a page. */
uint64_t wss_axis_size_step(uint64_t bytes, unsigned ticks);

/* Where the plot lies in the picture. */
struct wss_axis_box {
	double left, right, top, bottom;
};

/*
 * Draws the axis of a recording's time, from 0 to end_ns (more than 0), below the box with its
 * ticks and its label, and the line of the other axis. It takes 54 units below the box.
 */
void wss_axis_draw_time(FILE *f, const struct wss_axis_box *box, double end_ns);

#endif
