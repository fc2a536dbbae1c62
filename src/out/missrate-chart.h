/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The miss-rate curve as a picture.
 */
#ifndef WSS_OUT_MISSRATE_CHART_H
#define WSS_OUT_MISSRATE_CHART_H

#include <stddef.h>
#include <stdio.h>

#include "wss/missrate.h"

struct wss_missrate_guest {
	const char *domain;
	struct wss_missrate missrate;
	struct wss_amount recommended_bytes;
};

/*
 * An SVG: the share of time lost over the size, a line a guest, a dot where the recommended size
 * lies on it, the target as a dashed line. The stream is the caller's, who checks it for errors.
 */
void wss_missrate_plot(FILE *f, const struct wss_missrate_guest *guests, size_t n,
		       uint64_t fault_ns, double target);

#endif
