/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a chart of invented guests to stdout, for tests that look at the picture:
 * draw-chart N FROM-MS TO-MS [NAME]. Each guest grows to a size of its own and then no more; the
 * second one's windows are spread, the third one's sizes are not known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "out/growth-chart.h"

#define MS 1000000.0
#define MIB (1024.0 * 1024)
#define GUESTS_MAX 16
#define POINTS 60

static struct wss_grid grids[GUESTS_MAX];

static void add_window(struct wss_grid *grid, double full_bytes, double seconds, double to_ms)
{
	struct wss_curve_point curve[POINTS];

	for (int i = 0; i < POINTS; i++) {
		double ns = 0.5 * MS * pow(to_ms * 2.2, (double)i / (POINTS - 1));
		double part = 1 - exp(-ns / 1e9 / seconds);

		curve[i] = (struct wss_curve_point){ .ns = (uint64_t)ns,
						     .bytes = (uint64_t)(full_bytes * part) + 40960 };
	}
	wss_grid_add(grid, curve, POINTS, 2);
}

static struct wss_growth make_guest(int i, double from_ms, double to_ms, const char *name)
{
	static const char *const names[] = { "web1", "db & <cache>", "a-domain-with-a-rather-long-name-indeed" };
	double full = 64 * MIB * (i + 1);
	struct wss_growth guest = { .domain = name ? name : names[i % 3], .method = "mmu",
				    .granularity_bytes = 4096, .grid = &grids[i] };

	wss_grid_init(&grids[i], (uint64_t)(from_ms * MS), (uint64_t)(to_ms * MS));
	add_window(&grids[i], full, 0.2 * (i + 1), to_ms);
	if (i % 3 == 1)
		add_window(&grids[i], full * 0.7, 0.2 * (i + 1), to_ms);
	wss_grid_find_knee(&grids[i]);
	if (i % 3 != 2) {
		guest.rss_bytes = wss_amount_of((uint64_t)(3 * full));
		guest.balloon_bytes = wss_amount_of((uint64_t)(4 * full));
	}
	return guest;
}

int main(int argc, char **argv)
{
	struct wss_growth guests[GUESTS_MAX];
	int n = argc == 4 || argc == 5 ? atoi(argv[1]) : 0;

	if (n < 1 || n > GUESTS_MAX)
		return 2;
	for (int i = 0; i < n; i++)
		guests[i] = make_guest(i, atof(argv[2]), atof(argv[3]), argc == 5 ? argv[4] : NULL);
	wss_growth_plot(stdout, guests, (size_t)n);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
