/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Miss-rate curve: how often a guest that is limited to c bytes would fault a page in again.
 *
 * By the higher-order theory of locality (Xiang, Ding, Luo, Bao: HOTL, ASPLOS 2013; before it
 * Denning and Schwartz, Properties of the working-set model, CACM 15(3), 1972): with W(t) the
 * working set of a window of length t, averaged over windows, the miss rate of a
 * least-recently-used memory of size c is the slope of W where W reaches c,
 *
 *     m(c) = dW/dt  at the t with  W(t) = c.
 *
 * It holds for LRU, provided that the windows are typical of the future (reuse-window
 * hypothesis). W is concave (Xiang et al.), which averages of few windows are not quite: their
 * least concave majorant takes their place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history/summary.h"

/* Fewer windows than this do not make an average. */
#define WSS_MISSRATE_WINDOWS_MIN 10
/*
 * Default cost of a fault: 100 us, a random read of 4 KiB from an NVMe disk, for which data
 * sheets give 85 to 115 us (Lenovo's product guide of the Intel P4500).
 */
#define WSS_MISSRATE_FAULT_NS 100000

struct wss_missrate {
	size_t n; /* number of points, at least 2; the first is (0, 0) */
	struct wss_missrate_point {
		double seconds;
		double bytes;
	} points[WSS_SUMMARY_POINTS + 1]; /* concave: the slopes decrease */
};

/*
 * Builds the curve from an average W at n ascending times; points below the majorant are
 * lifted to it.
 */
void wss_missrate_init(struct wss_missrate *missrate, const double *seconds, const double *bytes,
		       size_t n);

/*
 * Builds the curve from the growth curves of a series. Returns false if they do not suffice:
 * fewer than WSS_MISSRATE_WINDOWS_MIN windows, or fewer than three times that nearly all
 * windows have reached.
 */
bool wss_missrate_from_summary(struct wss_missrate *missrate, const struct wss_summary *summary);

/* Returns the largest measured W: figures for larger sizes are only bounds. */
uint64_t wss_missrate_known_bytes(const struct wss_missrate *missrate);

/*
 * Returns the faults per second, in pages of 4 KiB, of a guest limited to bytes. ret_bound:
 * the rate is an upper bound, because the size is above the largest measured W, where the
 * slope cannot exceed that at the end.
 */
double wss_missrate_at(const struct wss_missrate *missrate, uint64_t bytes, bool *ret_bound);

/*
 * Returns the share of time that is lost to faults, 0 to 1: with r faults of fault_ns per
 * second of progress, that second takes 1 + r * fault, of which r * fault is lost.
 */
double wss_missrate_loss(double rate, uint64_t fault_ns);

/*
 * Finds the smallest size that is predicted to lose no more than a share. Returns false if
 * there is none up to the largest measured W.
 */
bool wss_missrate_size(const struct wss_missrate *missrate, double loss, uint64_t fault_ns,
		       uint64_t *ret_bytes);

/*
 * Estimates that size where wss_missrate_size() finds none: extends W with the logarithm of
 * time, its slope falling as 1/t, until it loses that share, 0 < loss < 1, with faults of
 * fault_ns, at least 1. For uses where a size may not be too small; returns the largest
 * measured W if that already loses no more.
 */
uint64_t wss_missrate_reach_bytes(const struct wss_missrate *missrate, double loss,
				  uint64_t fault_ns);
