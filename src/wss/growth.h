/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the working set still grew at the end of its windows, and where it would have come
 * to.
 *
 * A window shows what was touched within it and no more: a set that is gone through in ten
 * seconds is cut short by a window of one. Growth curves of real guests often have no end at
 * all, but rise steadily over the logarithm of time. So a curve that still rises is taken on
 * along that line, by its steepest slope at the end of the windows, to WSS_GROWTH_HORIZON_S.
 * That is a bounded guess, no measurement: longer windows measure.
 */
#ifndef WSS_WSS_GROWTH_H
#define WSS_WSS_GROWTH_H

#include <stdbool.h>
#include <stdint.h>

#include "wss/summary.h"

/*
 * What is not touched within five minutes is cheaper to read again than to keep: Gray and
 * Putzolu, The 5 minute rule for trading memory for disc accesses, SIGMOD 1987.
 */
#define WSS_GROWTH_HORIZON_S 300.0

struct wss_growth {
	bool known;	     /* the windows have a growth curve: the rest is set */
	double seconds;	     /* the last time on the curve */
	double per_doubling; /* growth at the end with each doubling of time, as a share */
	double per_e_bytes; /* the steepest growth there, in bytes for each factor e of time */
};

/* The growth at the end of the windows that a summary, read with its curve, has counted. */
struct wss_growth wss_growth_of(const struct wss_summary *summary);

/* Whether the set still grew, by more than a knee of the growth curve allows (wss/curve.h). */
bool wss_growth_goes_on(const struct wss_growth *growth);

/* What the set would grow by from the end of its windows to the horizon; 0 where it grew no
 * more. */
uint64_t wss_growth_beyond_bytes(const struct wss_growth *growth);

#endif
