/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Picture of the miss-rate curve. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "history/missrate.h"
#include "show/chart.h"

struct wss_missrate_guest {
	const char *domain;
	/* Series of windows that the curve is based on. */
	const char *method;
	uint64_t granularity_bytes, window_ns, windows;
	time_t first, last;
	struct wss_missrate missrate;
	struct wss_amount recommended_bytes;
};

/* Sizes and losses to mark on the curves. */
struct wss_missrate_question {
	uint64_t fault_ns;
	double target; /* share of time that may be lost, 0 to 1 */
	struct wss_amount what_if_bytes;
};

/*
 * Draws an SVG of the share of time lost over the size: a line for each guest, dashed where it is
 * an upper bound, with a dot at the recommended size, and lines for the target and the size that
 * was asked about. host is the host of the guests, NULL if unknown. The caller checks the stream
 * for errors.
 */
void wss_missrate_plot(FILE *f, const char *host, const struct wss_missrate_guest *guests, size_t n,
		       const struct wss_missrate_question *question);
