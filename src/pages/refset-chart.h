/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Pictures of recordings. */
#pragma once

#include <stdio.h>

#include "pages/heat.h"
#include "pages/refset.h"

/*
 * Draws the memory that the guest touched in each window and the memory that it has touched ever,
 * over the viewport of result, with gaps and marks. The recording ends at end_ns. The caller checks
 * the stream for errors, here and below.
 */
void wss_refset_plot(FILE *f, const struct wss_recording *recording,
		     const struct wss_refset_result *result, uint64_t end_ns);

/*
 * Draws guest-physical addresses against time, with the marks of the recording, and with its NUMA
 * nodes and memory devices if it has more than one node, or devices.
 */
void wss_heatmap_plot(FILE *f, const struct wss_recording *recording, const struct wss_heatmap *map,
		      const struct wss_marks *marks);
