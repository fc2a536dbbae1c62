/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Growth curve W(t): the memory touched within the time t after arming, on a logarithmic grid of
 * times, from one or more windows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "measure/sample.h"

/* A curve that grows by less than this share with each doubling of time has stopped growing. */
#define WSS_KNEE_GROWTH 0.1
/* Number of grid points in a decade of time. */
#define WSS_GRID_PER_DECADE 8
/* Enough grid points for 1 ns to a day. */
#define WSS_GRID_MAX 128

struct wss_grid_point {
	uint64_t ns;
	unsigned n; /* windows that reached this point; 0: the point is unknown */
	double mean_bytes;
	uint64_t min_bytes, max_bytes; /* spread over the windows */
	/*
	 * The most that the guest might have touched by now if faults cost no time; known
	 * below WSS_FAULT_BOUND_NS if the curve of every window is long enough.
	 */
	struct wss_amount high_bytes;
	/*
	 * Smallest low bound and largest high bound of the windows, if the method only has
	 * bounds; max_bytes lies between them.
	 */
	struct wss_amount bound_low_bytes, bound_high_bytes;
};

struct wss_grid {
	size_t n;
	struct wss_grid_point points[WSS_GRID_MAX];
	/* Index of the point where growth stops; n if there is none. */
	size_t knee;
	/* Upper bound of the time of one fault, ns; 0 if unknown. */
	double fault_ns;
};

/*
 * Below this time, in ns, faults make a curve read low, and an upper bound is stated. Arming
 * makes each page cost the guest one fault. A vCPU that does nothing but fault has 1/c faults
 * a second, where c is the time of a fault, so the fastest growth seen gives an upper bound
 *
 *         c <= vcpus / max(dF/dt)
 *
 * Of a time T at most F(T) * c / vcpus went into faults, where F(T) is their number, if they
 * were spread over the vCPUs as they were then. Whatever the guest touched in a time t of its
 * own it had touched by the last T with T - F(T) * c / vcpus <= t, so W(T) is the upper bound.
 * It is unknown if no measured T is larger: a guest that always grows at one rate may have
 * spent all of its time in faults. Beyond WSS_FAULT_BOUND_NS the difference is within the
 * spread of windows, and no bound is stated.
 */
#define WSS_FAULT_BOUND_NS 100000000ULL

/*
 * Makes a grid of times from from_ns to to_ns, inclusive, with WSS_GRID_PER_DECADE or a little more
 * points per decade.
 */
void wss_grid_init(struct wss_grid *grid, uint64_t from_ns, uint64_t to_ns);

/*
 * Adds the curve of a window. A grid point gets the value interpolated, linearly in time, between
 * the measured points around it; before the first and after the last measured point nothing is
 * known. vcpus is at least 1, or 0 if a first touch costs the guest no fault.
 */
void wss_grid_add(struct wss_grid *grid, const struct wss_curve_point *curve, size_t n,
		  unsigned vcpus);

/*
 * Finds the knee: the first point from which on the curve grows by less than WSS_KNEE_GROWTH for
 * each doubling of time, if it grew faster before. Call once all windows are added.
 */
void wss_grid_find_knee(struct wss_grid *grid);

/* Reads a measured curve at ns, interpolated; false if the value is unknown. */
bool wss_curve_at(const struct wss_curve_point *curve, size_t n, uint64_t ns, double *ret_bytes);
