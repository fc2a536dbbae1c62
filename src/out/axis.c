/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/axis.h"

#include <math.h>
#include <stdio.h>

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
