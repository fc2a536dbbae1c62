/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include <math.h>

#include "measure/curve.h"

#define MS 1000000ULL
#define MIB (1024.0 * 1024)

TEST(test_grid)
{
	struct wss_grid grid;

	wss_grid_init(&grid, MS, 40000 * MS);
	assert_int_equal(grid.points[0].ns, MS);
	assert_int_equal(grid.points[grid.n - 1].ns, 40000 * MS);
	/* At least eight points a decade, evenly. */
	for (size_t i = 1; i < grid.n; i++)
		assert_true((double)grid.points[i].ns / (double)grid.points[i - 1].ns <
			    pow(10, 1.0 / 8) + 1e-6);
	/* Also from the shortest to the longest time that options accept. */
	wss_grid_init(&grid, 1, 86400000 * MS);
	assert_true((double)(grid.n - 1) >= 8 * log10(86400e9));
	wss_grid_init(&grid, MS, MS);
	assert_int_equal(grid.n, 2);
	wss_grid_init(&grid, 1, UINT64_MAX);
	assert_int_equal(grid.n, WSS_GRID_MAX);
}

TEST(test_interpolation)
{
	static const struct wss_curve_point curve[] = {
		{.ns = 10, .bytes = 100}, {.ns = 20, .bytes = 200}, {.ns = 40, .bytes = 200}};
	double bytes;

	assert_false(wss_curve_at(curve, 3, 5, &bytes));
	assert_true(wss_curve_at(curve, 3, 10, &bytes) && bytes == 100);
	assert_true(wss_curve_at(curve, 3, 15, &bytes) && bytes == 150);
	assert_true(wss_curve_at(curve, 3, 30, &bytes) && bytes == 200);
	assert_true(wss_curve_at(curve, 3, 40, &bytes) && bytes == 200);
	assert_false(wss_curve_at(curve, 3, 41, &bytes));
	assert_false(wss_curve_at(curve, 0, 41, &bytes));
}

/*
 * A guest that touches 64 MiB at an even pace within a second, and then only touches those
 * pages again.
 */
static size_t ramp(struct wss_curve_point *curve, size_t n, double scale)
{
	for (size_t i = 0; i < n; i++) {
		double seconds = 0.001 * pow(10, (double)i / 8);

		curve[i].ns = (uint64_t)(seconds * 1e9);
		curve[i].bytes = (uint64_t)(scale * 64 * MIB * (seconds < 1 ? seconds : 1));
	}
	return n;
}

TEST(test_spread_and_knee)
{
	struct wss_curve_point a[40] = {0}, b[40] = {0};
	struct wss_grid grid;

	ramp(a, 40, 1.0);
	ramp(b, 40, 0.5);
	wss_grid_init(&grid, MS, 40000 * MS);
	wss_grid_add(&grid, a, 40, 1);
	wss_grid_add(&grid, b, 40, 1);
	wss_grid_find_knee(&grid);
	assert_int_equal(grid.points[grid.n - 1].n, 2);
	assert_int_equal(grid.points[grid.n - 1].min_bytes, (uint64_t)(32 * MIB));
	assert_int_equal(grid.points[grid.n - 1].max_bytes, (uint64_t)(64 * MIB));
	assert_true(fabs(grid.points[grid.n - 1].mean_bytes - 48 * MIB) < 1);
	assert_true(grid.knee < grid.n);
	assert_in_range(grid.points[grid.knee].ns, 700 * MS, 1500 * MS);
}

TEST(test_no_knee)
{
	struct wss_curve_point curve[40] = {0};
	struct wss_grid grid;

	/* Still growing at the end. */
	for (size_t i = 0; i < 40; i++)
		curve[i] = (struct wss_curve_point){
			.ns = (uint64_t)(1e6 * pow(10, (double)i / 8)),
			.bytes = (uint64_t)(4096 * pow(10, (double)i / 8))};
	wss_grid_init(&grid, MS, 40000 * MS);
	wss_grid_add(&grid, curve, 40, 1);
	wss_grid_find_knee(&grid);
	assert_int_equal(grid.knee, grid.n);
	/* Flat from the start. */
	for (size_t i = 0; i < 40; i++)
		curve[i].bytes = 4096;
	wss_grid_init(&grid, MS, 40000 * MS);
	wss_grid_add(&grid, curve, 40, 1);
	wss_grid_find_knee(&grid);
	assert_int_equal(grid.knee, grid.n);
}

TEST(test_fault_bound)
{
	struct wss_curve_point curve[40] = {0};
	struct wss_grid grid;

	ramp(curve, 40, 1.0);
	wss_grid_init(&grid, MS, 40000 * MS);
	wss_grid_add(&grid, curve, 40, 2);
	/* 64 MiB a second by two vCPUs: at most 2 / 16384 s for each fault. */
	assert_true(fabs(grid.fault_ns - 2e9 / 16384) < 2e9 / 16384 / 100);
	for (size_t i = 0; i < grid.n; i++) {
		const struct wss_grid_point *point = &grid.points[i];

		assert_int_equal(point->high_bytes.known, point->ns < WSS_FAULT_BOUND_NS);
		/* All of its time may have gone into faults, until it stopped growing. */
		if (point->high_bytes.known)
			assert_true(fabs((double)point->high_bytes.value / (64 * MIB) - 1) < 0.02);
	}
}

/* A guest that grows at the same rate to the end: its growth without faults is unknowable. */
TEST(test_no_fault_bound)
{
	struct wss_curve_point curve[10] = {0};
	struct wss_grid grid;

	for (size_t i = 0; i < 10; i++)
		curve[i] =
			(struct wss_curve_point){.ns = (i + 1) * 10 * MS, .bytes = (i + 1) * 4096};
	wss_grid_init(&grid, 10 * MS, 90 * MS);
	wss_grid_add(&grid, curve, 10, 1);
	for (size_t i = 0; i < grid.n; i++)
		assert_false(grid.points[i].high_bytes.known);
	/* Nor is there a bound without faults. */
	curve[9].bytes = curve[8].bytes = curve[7].bytes = curve[6].bytes;
	wss_grid_init(&grid, 10 * MS, 90 * MS);
	wss_grid_add(&grid, curve, 10, 0);
	for (size_t i = 0; i < grid.n; i++)
		assert_false(grid.points[i].high_bytes.known);
	/* Only one of the two windows has a bound. */
	for (size_t i = 0; i < 10; i++)
		curve[i].bytes = (i + 1) * 4096;
	wss_grid_init(&grid, 10 * MS, 90 * MS);
	wss_grid_add(&grid, curve, 10, 1);
	curve[9].bytes = curve[8].bytes = curve[7].bytes = curve[6].bytes;
	wss_grid_add(&grid, curve, 10, 1);
	for (size_t i = 0; i < grid.n; i++)
		assert_false(grid.points[i].high_bytes.known);
}

/*
 * A guest that touches a random page every THINK_NS, and waits FAULT_NS for each new one.
 * Without faults it would have touched more, but not more than the bound.
 */
TEST(test_fault_bound_holds)
{
	enum { PAGES = 16384, THINK_NS = 2000, FAULT_NS = 5000 };
	static bool touched[PAGES];
	struct wss_curve_point curve[64] = {0};
	uint64_t ns = 0, pages = 0, next_ns = MS / 2, seed = 1;
	struct wss_grid grid;
	size_t n = 0;

	while (n < 64 && ns < 1000 * MS) {
		for (; n < 64 && ns >= next_ns; next_ns += next_ns / 7)
			curve[n++] = (struct wss_curve_point){.ns = next_ns, .bytes = pages * 4096};
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		ns += THINK_NS;
		if (touched[seed >> 50])
			continue;
		touched[seed >> 50] = true;
		pages++;
		ns += FAULT_NS;
	}
	wss_grid_init(&grid, MS, 500 * MS);
	wss_grid_add(&grid, curve, n, 1);
	for (size_t i = 0; grid.points[i].ns < WSS_FAULT_BOUND_NS; i++) {
		const struct wss_grid_point *point = &grid.points[i];
		double free =
			4096.0 * PAGES * (1 - pow(1 - 1.0 / PAGES, (double)point->ns / THINK_NS));

		assert_true(point->high_bytes.known);
		assert_true(point->mean_bytes < free);
		assert_true((double)point->high_bytes.value > free);
	}
}

TEST(test_late_start)
{
	struct wss_curve_point curve[] = {{.ns = 20 * MS, .bytes = 4096},
					  {.ns = 40 * MS, .bytes = 8192}};
	struct wss_grid grid;

	wss_grid_init(&grid, MS, 100 * MS);
	wss_grid_add(&grid, curve, 2, 1);
	wss_grid_find_knee(&grid);
	/* Times that were not measured are unknown, not 0. */
	assert_int_equal(grid.points[0].n, 0);
	assert_int_equal(grid.points[grid.n - 1].n, 0);
}

/* Bounds of a method are kept, from the lowest to the highest of the windows. */
TEST(test_bounds)
{
	const struct wss_curve_point exact[] = {{.ns = MS, .bytes = 100},
						{.ns = 1000 * MS, .bytes = 400}};
	const struct wss_curve_point bounded[] = {
		{.ns = MS, .bytes = 500, .low_bytes = 50, .high_bytes = 600},
		{.ns = 1000 * MS, .bytes = 700, .low_bytes = 80, .high_bytes = 900},
	};
	struct wss_grid grid;
	const struct wss_grid_point *first = &grid.points[0], *last;

	wss_grid_init(&grid, MS, 1000 * MS);
	last = &grid.points[grid.n - 1];
	wss_grid_add(&grid, exact, 2, 0);
	assert_false(first->bound_low_bytes.known);
	assert_false(last->bound_high_bytes.known);
	wss_grid_add(&grid, bounded, 2, 0);
	assert_int_equal(first->bound_low_bytes.value, 50);
	assert_int_equal(first->bound_high_bytes.value, 600);
	assert_int_equal(last->bound_low_bytes.value, 80);
	assert_int_equal(last->bound_high_bytes.value, 900);
	wss_grid_add(&grid, exact, 2, 0);
	assert_int_equal(last->bound_low_bytes.value, 80);
	/* An exact window, below the bounds of the others. */
	wss_grid_init(&grid, MS, 1000 * MS);
	wss_grid_add(&grid, bounded, 2, 0);
	wss_grid_add(
		&grid,
		(struct wss_curve_point[]){{.ns = MS, .bytes = 10}, {.ns = 1000 * MS, .bytes = 20}},
		2, 0);
	assert_int_equal(first->bound_low_bytes.value, 10);
	assert_int_equal(last->bound_low_bytes.value, 20);
	assert_int_equal(last->bound_high_bytes.value, 900);
	/* Between two points they are interpolated like the figure. */
	assert_in_range(grid.points[grid.n / 2].bound_high_bytes.value, 601, 899);
	for (size_t i = 0; i < grid.n; i++)
		assert_true(grid.points[i].bound_low_bytes.value <= grid.points[i].min_bytes &&
			    grid.points[i].bound_high_bytes.value >= grid.points[i].max_bytes);
}

int main(void)
{
	return tests_run();
}
