/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/axis.h"

#include <math.h>
#include <stdio.h>

#include "out/svg.h"

double wss_axis_time_step(double length_ns, unsigned ticks)
{
	static const double round_seconds[] = {
		1,    2,     5,	    10,	   20,	  30,	  60,	  120,	   300,
		600,  1200,  1800,  3600,  7200,  14400,  21600,  43200,
	};
	double least = length_ns / ticks;

	for (double step = 1e3; step < 1e9; step *= 10)
		for (int i = 0; i < 3; i++)
			if (step * round_seconds[i] >= least)
				return step * round_seconds[i];
	for (size_t i = 0; i < sizeof(round_seconds) / sizeof(round_seconds[0]); i++)
		if (round_seconds[i] * 1e9 >= least)
			return round_seconds[i] * 1e9;
	return ceil(least / 86400e9) * 86400e9;
}

void wss_axis_time_label(double ns, double step_ns, char *ret_text, size_t size)
{
	if (step_ns < 1e6)
		snprintf(ret_text, size, "%g us", ns / 1e3);
	else if (step_ns < 1e9)
		snprintf(ret_text, size, "%g ms", ns / 1e6);
	else if (step_ns < 60e9)
		snprintf(ret_text, size, "%g s", ns / 1e9);
	else if (step_ns < 3600e9)
		snprintf(ret_text, size, "%g min", ns / 60e9);
	else
		snprintf(ret_text, size, "%g h", ns / 3600e9);
}

uint64_t wss_axis_size_step(uint64_t bytes, unsigned ticks)
{
	uint64_t step = 4096;

	while (step < 1ULL << 62 && bytes / step > ticks)
		step *= 2;
	return step;
}

void wss_axis_draw_time(FILE *f, const struct wss_axis_box *box, double end_ns)
{
	double step = wss_axis_time_step(end_ns, 8);
	char text[16];

	for (double t = 0; t <= end_ns * 1.0001; t += step) {
		double x = box->left + (box->right - box->left) * t / end_ns;

		wss_svg_line(f, x, box->bottom, x, box->bottom + 5, "axis");
		wss_axis_time_label(t, step, text, sizeof(text));
		/* The label of a tick at the very end must not leave the picture. */
		wss_svg_text(f, x, box->bottom + 25,
			     x + 4 > box->right ? WSS_ANCHOR_END : WSS_ANCHOR_MIDDLE, "tick", text);
	}
	wss_svg_line(f, box->left, box->bottom, box->right, box->bottom, "axis");
	wss_svg_line(f, box->left, box->top, box->left, box->bottom, "axis");
	wss_svg_text(f, (box->left + box->right) / 2, box->bottom + 48, WSS_ANCHOR_MIDDLE, "label",
		     "time since the recording began");
}
