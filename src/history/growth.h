/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the working set still grew at the end of its windows, and how large it would have
 * become.
 *
 * A window shows only memory that was touched within it: a set that takes the guest ten
 * seconds to walk through is cut short by a window of one. Growth curves of real guests often
 * have no end, but rise steadily over the logarithm of time. A curve that still rises is
 * therefore extended along that line, with its steepest slope at the end of the windows, to
 * WSS_GROWTH_HORIZON_S. A curve that slows down, as that of random accesses to a finite set does,
 * is extended by slopes that go on to fall in the same ratio. The result is a bounded estimate,
 * not a measurement; longer windows measure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "history/summary.h"

/*
 * Memory that is not touched for five minutes is cheaper to read again than to keep: Gray and
 * Putzolu, The 5 minute rule for trading memory for disc accesses, SIGMOD 1987.
 */
#define WSS_GROWTH_HORIZON_S 300.0

struct wss_growth {
	bool known;	     /* the windows have a growth curve, and the other members are set */
	double seconds;	     /* last time on the curve */
	double per_doubling; /* growth at the end with each doubling of time, as a share */
	double per_e_bytes;  /* steepest growth there, in bytes for each factor e of time */
	/*
	 * How much of the growth of a step of the curve the next step has, at the end: the larger of
	 * the last two such ratios, at most 1. 1 too if there are too few points.
	 */
	double decay;
	double step_e; /* length of a step, the logarithm of the ratio of its times; 0: no step */
};

/* Returns the growth at the end of the windows of a summary, which was read with its curve. */
struct wss_growth wss_growth_of(const struct wss_summary *summary);

/* Whether the set still grew by more than a knee of the growth curve allows (measure/curve.h). */
bool wss_growth_goes_on(const struct wss_growth *growth);

/*
 * Returns the bytes by which the set would grow from the end of its windows to the horizon; 0
 * if it no longer grew.
 */
uint64_t wss_growth_beyond_bytes(const struct wss_growth *growth);
