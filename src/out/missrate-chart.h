/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The miss-rate curve as a picture.
 */
#ifndef WSS_OUT_MISSRATE_CHART_H
#define WSS_OUT_MISSRATE_CHART_H

#include <stddef.h>
#include <stdio.h>

#include "out/chart.h"
#include "wss/missrate.h"

struct wss_missrate_guest {
	const char *domain;
	/* The series of windows that the curve is from. */
	const char *method;
	uint64_t granularity_bytes, window_ns, windows;
	time_t first, last;
	struct wss_missrate missrate;
	struct wss_amount recommended_bytes;
};

/* What is asked of the curves. */
struct wss_missrate_question {
	uint64_t fault_ns;
	double target; /* share of time that may be lost, 0 to 1 */
	struct wss_amount what_if_bytes;
};

/*
 * An SVG: the share of time lost over the size, a line a guest, dashed where it is an upper
 * bound, a dot where the recommended size lies on it, and lines for the target and the size that
 * was asked for. host is where the guests are, NULL if not known. The stream is the caller's, who
 * checks it for errors.
 */
void wss_missrate_plot(FILE *f, const char *host, const struct wss_missrate_guest *guests, size_t n,
		       const struct wss_missrate_question *question);

#endif
