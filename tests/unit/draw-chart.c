/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a chart of invented guests to stdout, for tests that look at the picture:
 *
 *	draw-chart N FROM-MS TO-MS [NAME [KIND [text]]]
 *
 * Each guest grows to a size of its own and then stays level. The windows of the second one
 * differ, and the sizes of the third are unknown. Kinds: exact; bounded, by mappings of 2 MiB
 * of which at least 16 pages were touched; late, nothing is known before 300 ms. text: as in a
 * terminal of 80 columns.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/growth-chart.h"

#define MS 1000000.0
#define MIB (1024.0 * 1024)
#define GUESTS_MAX 16
#define POINTS 60

static struct wss_grid grids[GUESTS_MAX];

enum kind { EXACT, BOUNDED, LATE };

static void add_window(struct wss_grid *grid, double full_bytes, double seconds, double to_ms,
		       enum kind kind)
{
	struct wss_curve_point curve[POINTS];
	double first_ms = kind == LATE ? 300 : 0.5;

	for (int i = 0; i < POINTS; i++) {
		double ns = first_ms * MS * pow(to_ms * 1.1 / first_ms, (double)i / (POINTS - 1));
		double part = 1 - exp(-ns / 1e9 / seconds);
		uint64_t bytes = (uint64_t)(full_bytes * part) + 40960;

		curve[i] = (struct wss_curve_point){.ns = (uint64_t)ns, .bytes = bytes};
		if (kind == BOUNDED) {
			curve[i].low_bytes = bytes / 32;
			curve[i].high_bytes = bytes;
		}
	}
	wss_grid_add(grid, curve, POINTS, kind == BOUNDED ? 0 : 2);
}

static struct wss_growth_drawn make_guest(int i, double from_ms, double to_ms, const char *name,
					  enum kind kind)
{
	static const char *const names[] = {"web1", "db & <cache>",
					    "a-domain-with-a-rather-long-name-indeed"};
	double full = 64 * MIB * (i + 1);
	struct wss_growth_drawn guest = {.domain = name ? name : names[i % 3],
					 .method = "mmu",
					 .granularity_bytes = kind == BOUNDED ? 2 << 20 : 4096,
					 .grid = &grids[i]};

	wss_grid_init(&grids[i], (uint64_t)(from_ms * MS), (uint64_t)(to_ms * MS));
	add_window(&grids[i], full, 0.2 * (i + 1), to_ms, kind);
	if (i % 3 == 1)
		add_window(&grids[i], full * 0.7, 0.2 * (i + 1), to_ms, kind);
	wss_grid_find_knee(&grids[i]);
	if (i % 3 != 2) {
		guest.rss_bytes = wss_amount_of((uint64_t)(3 * full));
		guest.balloon_bytes = wss_amount_of((uint64_t)(4 * full));
	}
	return guest;
}

int main(int argc, char **argv)
{
	static const struct wss_chart_source source = {.host = "host1.example",
						       .start = 1795197600,
						       .length_ns = 40000000000,
						       .extra = "mean of 2 windows"};
	enum kind kind = EXACT;
	struct wss_growth_drawn guests[GUESTS_MAX];
	int n = argc >= 4 && argc <= 7 ? atoi(argv[1]) : 0;

	if (argc >= 6 && strcmp(argv[5], "exact") != 0)
		kind = strcmp(argv[5], "late") == 0 ? LATE : BOUNDED;
	if (n < 1 || n > GUESTS_MAX)
		return 2;
	for (int i = 0; i < n; i++)
		guests[i] = make_guest(i, atof(argv[2]), atof(argv[3]),
				       argc >= 5 && *argv[4] ? argv[4] : NULL, kind);
	if (argc < 7)
		wss_growth_plot(stdout, &source, guests, (size_t)n);
	for (int i = 0; i < n && argc == 7; i++)
		wss_growth_print(stdout, &guests[i], 80);
	return ferror(stdout) || fflush(stdout) ? 1 : 0;
}
