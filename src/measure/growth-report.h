/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The growth curve of a guest from several windows, and its rows in a table. */
#pragma once

#include "measure/growth-chart.h"
#include "show/report.h"

/* Sum over the windows of one guest. Begins with wss_grid_init(), all else zero. */
struct wss_growth {
	struct wss_grid grid;
	struct wss_sample last; /* last window that was measured */
	unsigned windows;
	unsigned degraded; /* number of degraded windows */
};

/*
 * Adds a window that was measured. vcpus is that of wss_grid_add(). Returns false, and leaves the window out, if it is of
 * another method or granularity than those before.
 */
bool wss_growth_add(struct wss_growth *growth, const struct wss_sample *sample, unsigned vcpus);

/* Returns what a picture shows of it; valid as long as growth is. */
struct wss_growth_drawn wss_growth_drawn(const struct wss_growth *growth);

/* A row for each point of a curve. */
extern const struct wss_report_layout wss_growth_layout;

/* Adds the points that are known to an open report. */
void wss_growth_report(const struct wss_growth *growth, struct wss_report *report);
