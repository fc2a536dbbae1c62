/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sizing: how much memory a guest needs, from what its windows have shown, and how sure that is.
 */
#ifndef WSS_WSS_SIZING_H
#define WSS_WSS_SIZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "wss/growth.h"
#include "wss/policy.h"
#include "wss/summary.h"

/* Fewer windows than this say nothing at all. */
#define WSS_SIZING_SAMPLES_MIN 10
/* How sure a percentile's upper bound is to be. */
#define WSS_SIZING_CERTAINTY 0.95
/*
 * A guest that was not seen for a week has not shown its week. Half a day of it may be missing:
 * who looks back a week finds no window that is older, and the first may come hours later.
 */
#define WSS_SIZING_WEEK_S ((7 * 24 - 12) * 3600)

enum wss_confidence {
	WSS_CONFIDENCE_NONE,   /* too early: fewer than WSS_SIZING_SAMPLES_MIN windows */
	/*
	 * Too few for the percentile, or too many that are doubtful; or the set still grew at the
	 * end of the windows, or they have no growth curve that would tell.
	 */
	WSS_CONFIDENCE_LOW,
	WSS_CONFIDENCE_MEDIUM, /* enough windows, but of less than a week */
	WSS_CONFIDENCE_HIGH,
};

/* "none", "low", "medium", "high". */
const char *wss_confidence_name(enum wss_confidence confidence);

/*
 * The rank, of n independent observations in order, that is not below the percentile p of
 * what they were drawn from with WSS_SIZING_CERTAINTY: the smallest r with P(Bin(n, p) >=
 * r) <= 5 %. It needs no assumption about the distribution (David and Nagaraja, Order
 * Statistics, 3rd ed., ch. 7). 0 where not even the largest is sure enough, which for p =
 * 0.95 takes 59, for 0.99 299.
 */
uint64_t wss_sizing_rank(uint64_t n, double p);

struct wss_sizing_rule {
	double percentile; /* 0 < p < 1 */
	uint64_t headroom_percent;
	uint64_t minimum_bytes;
};

/* What the operator's policy says goes before the rule. */
void wss_sizing_heed(struct wss_sizing_rule *rule, const struct wss_policy *policy);

struct wss_sizing {
	enum wss_confidence confidence;
	bool from_peak; /* too few windows for the percentile: the largest took its place */
	struct wss_growth growth; /* at the end of the windows */
	/* Absent when it is too early. */
	struct wss_amount p50_bytes, p95_bytes, p99_bytes, peak_bytes;
	struct wss_amount base_bytes;	     /* the percentile's upper bound, or the peak */
	/* Base taken on along the growth curve; absent where the set grew no more. */
	struct wss_amount grown_bytes;
	struct wss_amount recommended_bytes; /* with headroom, within policy, in whole MiB */
	struct wss_amount reclaimable_bytes; /* of what the guest holds now */
};

/* What is known of the guest beside its windows. */
struct wss_sizing_state {
	struct wss_amount held_bytes;	 /* of its memory on the host now */
	struct wss_amount balloon_bytes; /* what it may use now */
	struct wss_amount maximum_bytes; /* no set grows beyond it */
	/*
	 * The size below which the miss-rate curve is too steep; where it is so for all sizes that
	 * were measured (beyond), where it is taken to end.
	 */
	struct wss_amount curve_bytes;
	bool curve_is_beyond;
};

/*
 * Sizes a guest: the percentile's upper bound with headroom, and no less than the miss-rate curve
 * asks for, nor, where the set still grew at the end of its windows, than what it would have grown
 * to (wss/growth.h). The summary must have been read with its growth curve. Figures of windows
 * coarser than 4 KiB are upper bounds, which is the safe side.
 */
void wss_sizing_compute(const struct wss_summary *summary, const struct wss_sizing_rule *rule,
			const struct wss_policy *policy, const struct wss_sizing_state *state,
			struct wss_sizing *ret_sizing);

/*
 * What the guests of a host need together. Peaks of different guests seldom meet, so the
 * sum is taken hour by hour, of each guest the largest window of the hour; a guest that has
 * none in an hour counts with its peak, one that was never measured with all it was given.
 */
struct wss_fit {
	time_t from;
	size_t n_hours;
	struct wss_fit_hour {
		uint64_t bytes;
		bool seen; /* by the guest that is being added */
		bool any;  /* by any guest at all */
	} *hours;
};

/* Hours from one time to another, at most 366 days. 0, or -1 when memory is short. */
int wss_fit_init(struct wss_fit *fit, time_t from, time_t to);
void wss_fit_free(struct wss_fit *fit);

/* One hour of the guest that is being added; hours outside are left out. Sums saturate. */
void wss_fit_hour(struct wss_fit *fit, time_t start, uint64_t bytes);

/* Ends a guest: hours in which it was not seen get this. */
void wss_fit_guest(struct wss_fit *fit, uint64_t otherwise_bytes);

struct wss_fit_result {
	uint64_t hours;	      /* that were seen at all */
	bool from_peak;	      /* too few for the percentile */
	struct wss_amount bytes; /* not exceeded with this probability; absent without any hour */
};

/* 0, or -1 when memory is short. */
int wss_fit_result(const struct wss_fit *fit, double probability, struct wss_fit_result *ret_result);

#endif
