/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The miss-rate curve: how often a guest that is limited to c bytes would fault a page in again.
 *
 * By the higher-order theory of locality (Xiang, Ding, Luo, Bao: HOTL, ASPLOS 2013;
 * before it Denning and Schwartz, Properties of the working-set model, CACM
 * 15(3), 1972): with W(t) the working set of a window of length t, averaged over windows,
 * the miss rate of a least-recently-used memory of size c is the slope of W where W reaches
 * c,
 *
 *     m(c) = dW/dt  at the t with  W(t) = c.
 *
 * It holds for LRU, and where the windows are typical of what is to come (reuse-window
 * hypothesis). W is concave (Xiang et al.), which averages of few windows are
 * not quite: the least concave majorant of what was measured is taken for it.
 */
#ifndef WSS_WSS_MISSRATE_H
#define WSS_WSS_MISSRATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wss/summary.h"

/* Fewer windows than this are no average. */
#define WSS_MISSRATE_WINDOWS_MIN 10
/*
 * What one fault costs by default: 100 us, a random read of 4 KiB from an NVMe disk, for which
 * data sheets give 85 to 115 us (Lenovo's product guide of the Intel P4500).
 */
#define WSS_MISSRATE_FAULT_NS 100000

struct wss_missrate {
	size_t n; /* at least 2; the first is (0, 0) */
	struct wss_missrate_point {
		double seconds;
		double bytes;
	} points[WSS_SUMMARY_POINTS + 1]; /* concave: slopes fall */
};

/* From an average W at n rising times; points below the majorant are lifted to it. */
void wss_missrate_init(struct wss_missrate *missrate, const double *seconds, const double *bytes,
		       size_t n);

/*
 * From the growth curves of a series. False where they do not suffice: fewer than
 * WSS_MISSRATE_WINDOWS_MIN windows, or fewer than three times that nearly all windows have reached.
 */
bool wss_missrate_from_summary(struct wss_missrate *missrate, const struct wss_summary *summary);

/* The largest W that was measured: what is known of sizes above it is a bound. */
uint64_t wss_missrate_known_bytes(const struct wss_missrate *missrate);

/*
 * Faults a second, in pages of 4 KiB, of a guest limited to bytes. ret_bound: it is at most
 * that, as the size lies above what was measured, where the slope is not more than at its
 * end.
 */
double wss_missrate_at(const struct wss_missrate *missrate, uint64_t bytes, bool *ret_bound);

/*
 * The share of time that is lost to faults, 0 to 1: with r faults in a second of progress, each of
 * fault_ns, that second takes 1 + r * fault; lost is r * fault of it.
 */
double wss_missrate_loss(double rate, uint64_t fault_ns);

/*
 * The smallest size that is predicted to lose no more than a share. False where no size up
 * to the largest W measured is known to.
 */
bool wss_missrate_size(const struct wss_missrate *missrate, double loss, uint64_t fault_ns,
		       uint64_t *ret_bytes);

/*
 * Where wss_missrate_size() knows none: W taken on with the logarithm of time, its slope falling as
 * 1/t, to where it loses that share, 0 < loss < 1, with faults of fault_ns, at least 1. A guess, for
 * what may not be too small; the largest W measured where that loses no more already.
 */
uint64_t wss_missrate_reach_bytes(const struct wss_missrate *missrate, double loss,
				  uint64_t fault_ns);

#endif
