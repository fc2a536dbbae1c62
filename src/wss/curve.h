/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The growth curve W(t): how much has been touched within t of one invalidation, on a
 * logarithmic grid of times, from one or several windows.
 */
#ifndef WSS_WSS_CURVE_H
#define WSS_WSS_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wss/sample.h"

/* A curve that grows by less than this share with each doubling of time has stopped growing. */
#define WSS_KNEE_GROWTH 0.1
/* Grid points a decade of time. */
#define WSS_GRID_PER_DECADE 8
/* From 1 ns to a day. */
#define WSS_GRID_MAX 128

struct wss_grid_point {
	uint64_t ns;
	unsigned n; /* windows that reached this point; 0: nothing is known of it */
	double mean_bytes;
	uint64_t min_bytes, max_bytes; /* over the windows: the spread */
	/*
	 * What the guest might have touched by now had the faults cost it no time; known below
	 * WSS_FAULT_BOUND_NS where every window's curve goes on for long enough to tell.
	 */
	struct wss_amount high_bytes;
	/*
	 * From the smallest low bound of the windows to the largest high one, where the method only
	 * bounds what was touched by now; max_bytes lies between them.
	 */
	struct wss_amount bound_low_bytes, bound_high_bytes;
};

struct wss_grid {
	size_t n;
	struct wss_grid_point points[WSS_GRID_MAX];
	/* Where growth stops, index into points; n where there is no such place. */
	size_t knee;
	/* At most so long one fault keeps a vCPU, ns; 0 where it is not known. */
	double fault_ns;
};

/*
 * Every page costs the guest one fault after the zap, so short times read low. A vCPU that
 * faults without a break faults 1/c times a second, c being the cost of a fault; so
 * the fastest growth seen gives an upper bound
 *
 *     c <= vcpus / max(dF/dt)
 *
 * and of a time T at most F(T) * c / vcpus went into faults, F(T) being their number, if they
 * spread over the vCPUs as they did then. So what the guest touched in t of its own time it
 * had touched by the last T with T - F(T) * c / vcpus <= t, and W(T) is the upper bound.
 * None is known where no measured T is larger: a guest that grows at one rate all the time
 * may have spent all of it in faults.
 * Beyond this time the difference is within the spread of windows, and is not stated.
 */
#define WSS_FAULT_BOUND_NS 100000000ULL

/* Times from from_ns to to_ns, both included, WSS_GRID_PER_DECADE or a little more a decade. */
void wss_grid_init(struct wss_grid *grid, uint64_t from_ns, uint64_t to_ns);

/*
 * Adds one window's curve. A grid point gets the value interpolated between the measured
 * points around it, linearly in time; before the first and after the last
 * measured point nothing is known. vcpus: at least 1; 0: a first touch costs the guest no fault.
 */
void wss_grid_add(struct wss_grid *grid, const struct wss_curve_point *curve, size_t n,
		  unsigned vcpus);

/*
 * Looks for the knee: the first point from which on the curve grows, to its end, by less than a
 * tenth of itself for each doubling of time, when it grew faster before. Call when all
 * windows are in.
 */
void wss_grid_find_knee(struct wss_grid *grid);

/* Value of a measured curve at ns, interpolated; false where it is not known. */
bool wss_curve_at(const struct wss_curve_point *curve, size_t n, uint64_t ns, double *ret_bytes);

#endif
