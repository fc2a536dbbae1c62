/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/curve.h"

#include <math.h>

#include "base/number.h"

#define PAGE 4096.0

void wss_grid_init(struct wss_grid *grid, uint64_t from_ns, uint64_t to_ns)
{
	double decades = log10((double)to_ns / (double)from_ns);
	size_t steps = (size_t)ceil(decades * WSS_GRID_PER_DECADE);

	if (steps < 1)
		steps = 1;
	if (steps > WSS_GRID_MAX - 1)
		steps = WSS_GRID_MAX - 1;
	*grid = (struct wss_grid){.n = steps + 1, .knee = steps + 1};
	for (size_t i = 0; i <= steps; i++)
		grid->points[i].ns = wss_u64_from_double(
			(double)from_ns * pow(10, decades * (double)i / (double)steps) + 0.5);
	grid->points[0].ns = from_ns;
	grid->points[steps].ns = to_ns;
}

/*
 * Finds the two points around ns, and its relative position between them; false if ns is
 * outside the curve.
 */
static bool find_place(const struct wss_curve_point *curve, size_t n, uint64_t ns,
		       const struct wss_curve_point **ret_a, const struct wss_curve_point **ret_b,
		       double *ret_part)
{
	size_t i = 0;

	while (i < n && curve[i].ns < ns)
		i++;
	if (i == n || (i == 0 && curve[i].ns != ns))
		return false;
	*ret_a = curve[i].ns == ns ? &curve[i] : &curve[i - 1];
	*ret_b = &curve[i];
	*ret_part = *ret_a == *ret_b
			    ? 0
			    : (double)(ns - (*ret_a)->ns) / (double)((*ret_b)->ns - (*ret_a)->ns);
	return true;
}

static double curve_interpolate(uint64_t a, uint64_t b, double part)
{
	return (double)a + part * ((double)b - (double)a);
}

bool wss_curve_at(const struct wss_curve_point *curve, size_t n, uint64_t ns, double *ret_bytes)
{
	const struct wss_curve_point *a, *b;
	double part;

	if (!find_place(curve, n, ns, &a, &b, &part))
		return false;
	*ret_bytes = curve_interpolate(a->bytes, b->bytes, part);
	return true;
}

/* Returns the fastest growth between two points, in bytes per ns; the first point counts from 0. */
static double fastest_growth(const struct wss_curve_point *curve, size_t n)
{
	double fastest = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t since_ns = i ? curve[i - 1].ns : 0, before = i ? curve[i - 1].bytes : 0;
		double rate;

		if (curve[i].ns <= since_ns || curve[i].bytes <= before)
			continue;
		rate = (double)(curve[i].bytes - before) / (double)(curve[i].ns - since_ns);
		if (rate > fastest)
			fastest = rate;
	}
	return fastest;
}

/*
 * Returns the most that can have been touched within ns if the faults had cost no time: see
 * WSS_FAULT_BOUND_NS. F * c / vcpus with c = vcpus / fastest is bytes / fastest: the number of
 * vCPUs cancels out, and the rest of the time never falls.
 */
static bool bytes_without_faults(const struct wss_curve_point *curve, size_t n, uint64_t ns,
				 double fastest, double *ret_bytes)
{
	double before_left = 0, before = 0;

	for (size_t i = 0; i < n; i++) {
		double bytes = (double)curve[i].bytes;
		double left = (double)curve[i].ns - bytes / fastest;

		if (left > (double)ns) {
			double part = ((double)ns - before_left) / (left - before_left);

			*ret_bytes = before + part * (bytes - before);
			return true;
		}
		before_left = left;
		before = bytes;
	}
	return false;
}

static void add_high(struct wss_grid_point *point, const struct wss_curve_point *curve, size_t n,
		     double fastest)
{
	double bytes;
	uint64_t high;

	/* A bound that only some windows have does not hold for all of them. */
	if (fastest <= 0 || (point->n > 1 && !point->high_bytes.known) ||
	    !bytes_without_faults(curve, n, point->ns, fastest, &bytes)) {
		point->high_bytes.known = false;
		return;
	}
	high = wss_u64_from_double(bytes + 0.5);
	if (!point->high_bytes.known || high > point->high_bytes.value)
		point->high_bytes = wss_amount_of(high);
}

static uint64_t low_of(const struct wss_curve_point *point)
{
	return point->high_bytes ? point->low_bytes : point->bytes;
}

static uint64_t high_of(const struct wss_curve_point *point)
{
	return point->high_bytes ? point->high_bytes : point->bytes;
}

/* Adds a window's bounds; an exact figure counts as both of its bounds. */
static void add_bounds(struct wss_grid_point *point, const struct wss_curve_point *curve, size_t n)
{
	const struct wss_curve_point *a, *b;
	uint64_t low, high;
	double part;

	if (!find_place(curve, n, point->ns, &a, &b, &part))
		return;
	low = wss_u64_from_double(curve_interpolate(low_of(a), low_of(b), part));
	high = wss_u64_from_double(curve_interpolate(high_of(a), high_of(b), part) + 0.5);
	if (low + 1 < high || point->bound_high_bytes.known) {
		low = low < point->min_bytes ? low : point->min_bytes;
		high = high > point->max_bytes ? high : point->max_bytes;
		if (!point->bound_high_bytes.known || low < point->bound_low_bytes.value)
			point->bound_low_bytes = wss_amount_of(low);
		if (!point->bound_high_bytes.known || high > point->bound_high_bytes.value)
			point->bound_high_bytes = wss_amount_of(high);
	}
}

static void grid_add_point(struct wss_grid_point *point, const struct wss_curve_point *curve,
			   size_t n, double fastest)
{
	uint64_t rounded;
	double bytes;

	if (!wss_curve_at(curve, n, point->ns, &bytes))
		return;
	rounded = wss_u64_from_double(bytes + 0.5);
	if (!point->n || rounded < point->min_bytes)
		point->min_bytes = rounded;
	if (!point->n || rounded > point->max_bytes)
		point->max_bytes = rounded;
	point->mean_bytes += (bytes - point->mean_bytes) / ++point->n;
	add_bounds(point, curve, n);
	if (point->ns < WSS_FAULT_BOUND_NS)
		add_high(point, curve, n, fastest);
}

void wss_grid_add(struct wss_grid *grid, const struct wss_curve_point *curve, size_t n,
		  unsigned vcpus)
{
	double fastest = vcpus ? fastest_growth(curve, n) : 0;

	if (fastest > 0) {
		double fault_ns = (double)vcpus * PAGE / fastest;

		if (!grid->fault_ns || fault_ns < grid->fault_ns)
			grid->fault_ns = fault_ns;
	}
	for (size_t i = 0; i < grid->n; i++)
		grid_add_point(&grid->points[i], curve, n, fastest);
}

/* Returns the growth from one point to the next as a share, for each doubling of time. */
static double point_growth(const struct wss_grid_point *a, const struct wss_grid_point *b)
{
	double doublings = log2((double)b->ns / (double)a->ns);

	return a->mean_bytes > 0 ? (b->mean_bytes / a->mean_bytes - 1) / doublings : INFINITY;
}

void wss_grid_find_knee(struct wss_grid *grid)
{
	size_t last = grid->n, first;

	grid->knee = grid->n;
	while (last > 0 && !grid->points[last - 1].n)
		last--;
	if (last < 3)
		return;
	first = last - 1;
	while (first > 0 && grid->points[first - 1].n &&
	       point_growth(&grid->points[first - 1], &grid->points[first]) < WSS_KNEE_GROWTH)
		first--;
	/* A knee requires growth before it and a flat part of some length after it. */
	if (first > 0 && grid->points[first - 1].n && first + 2 < last)
		grid->knee = first;
}
