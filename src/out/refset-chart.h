/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pictures of recordings.
 */
#ifndef WSS_OUT_REFSET_CHART_H
#define WSS_OUT_REFSET_CHART_H

#include <stdio.h>

#include "wss/heat.h"
#include "wss/refset.h"

/*
 * The outstanding set and the reference set over the time of a recording that lasted
 * end_ns, with gaps, marks and the viewport. The stream is the caller's, who checks it
 * for errors; so below.
 */
void wss_refset_plot(FILE *f, const struct wss_recording *recording,
		     const struct wss_refset_result *result, uint64_t end_ns);

/* Guest-physical address against time. */
void wss_heatmap_plot(FILE *f, const struct wss_recording *recording,
		      const struct wss_heatmap *map);

#endif
