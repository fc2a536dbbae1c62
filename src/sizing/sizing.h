/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room sizing/: the advice, that is how much memory a guest needs, how much the host could
 * reclaim, and what less memory would cost. Measures and changes nothing.
 *
 *   in    the history (history/history.h) and the operator's policy (measure/policy.h)
 *   out   struct wss_advice (advice.h); advice-text.h says it in sentences
 *
 *   advice.c   reads the history, and asks the others
 *   sizing.h   the size, by all evidence: this file
 *   learner.h  the size that past hours have taught, and how far to trust it
 *   replay.h   what would have been advised at each past hour; backtest.h judges that
 *   host-sum.h, trend.h, publish-profile.h  the guests of a host together; the last 24 hours of a
 *              guest; its profile
 *   config-advice.h  settings that keep memory on the host, or would let more of it come back
 *   *-report.h, backtest-chart.h  rows and pictures
 *
 * It has no thread, and keeps nothing: each advice is made from the history.
 *
 * Begin with this file. New evidence for a size is read in advice.c, and in replay.c from the hours
 * before alone; it is a member of struct wss_sizing_state and a reason in enum wss_sizing_reason,
 * and size_recommend() in sizing.c weighs it.
 */
#pragma once

/* Sizing: how much memory a guest needs according to its windows, and with what confidence. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "history/floor.h"
#include "history/growth.h"
#include "history/summary.h"
#include "measure/policy.h"
#include "sizing/learner.h"
#include "sizing/rounding.h"

/* Fewer windows give no recommendation. */
#define WSS_SIZING_SAMPLES_MIN 10
/* Certainty of a percentile's upper bound. */
#define WSS_SIZING_CERTAINTY 0.95
/* Returns "none", "low", "medium" or "high". */
const char *wss_confidence_name(enum wss_confidence confidence);

/*
 * Returns the rank, among n sorted independent observations, of the smallest one that with
 * WSS_SIZING_CERTAINTY is not below the percentile p of their distribution: the smallest r
 * with P(Bin(n, p) >= r) <= 5 %. This makes no assumption about the distribution (David and
 * Nagaraja, Order Statistics, 3rd ed., ch. 7). Returns 0 if not even the largest is certain
 * enough, which takes 59 observations for p = 0.95 and 299 for p = 0.99.
 */
uint64_t wss_sizing_rank(uint64_t n, double p);

struct wss_sizing_rule {
	double percentile; /* 0 < p < 1 */
	uint64_t headroom_percent;
	uint64_t minimum_bytes;
	bool minimum_is_default;	     /* nobody has asked for it */
	const struct wss_rounding *rounding; /* NULL: whole MiB */
};

/*
 * Overrides values of the rule with those of the operator's policy. A default minimum is at most half of the guest's
 * memory, if that is known: whoever has made a small guest knew that it can be small.
 */
void wss_sizing_apply_policy(struct wss_sizing_rule *rule, const struct wss_policy *policy,
			     struct wss_amount maximum_bytes);

/*
 * Rounds up a size that follows from growth curves, by 1 part in 32 at most, or to whole MiB: it moves with every
 * window, and would otherwise change from hour to hour. In bytes, saturated.
 */
uint64_t wss_sizing_coarse(uint64_t bytes);

/* What binds a recommended size. */
enum wss_sizing_reason {
	WSS_SIZING_PEAK,       /* the largest set, with headroom or a margin */
	WSS_SIZING_PERCENTILE, /* a percentile, likewise */
	WSS_SIZING_RECURRING,  /* what it needed in this part of past months or quarters */
	WSS_SIZING_FILLS,      /* its set fills its memory, so that it may want more */
	WSS_SIZING_BEYOND,     /* growth beyond the end of the windows (history/growth.h) */
	WSS_SIZING_IN_USE,     /* what it cannot give up (history/floor.h) */
	WSS_SIZING_MINIMUM,
	WSS_SIZING_ROUNDING, /* to a flavour or by a step */
	WSS_SIZING_MAXIMUM,  /* the policy's */
	WSS_SIZING_REASONS
};

/*
 * Returns "peak", "percentile", "recurring peak", "full memory", "growth", "memory in use", "minimum",
 * "rounding", "maximum".
 */
const char *wss_sizing_reason_name(enum wss_sizing_reason reason);

struct wss_sizing {
	enum wss_confidence confidence;
	bool from_peak;		  /* too few windows for the percentile, so the largest is used */
	struct wss_growth growth; /* growth at the end of the windows */
	/* Absent while it is too early. */
	struct wss_amount p50_bytes, p95_bytes, p99_bytes, peak_bytes;
	struct wss_amount base_bytes; /* upper bound of the percentile, or the peak */
	/* Base extrapolated along the growth curve; absent if the working set no longer grew. */
	struct wss_amount grown_bytes;
	/*
	 * All its memory, if its set fills that: what it would touch with more is unknown, so that its need is too. Absent: it
	 * does not.
	 */
	struct wss_amount filled_bytes;
	struct wss_amount need_bytes; /* what its working set asks for, with headroom or margin */
	enum wss_sizing_reason need_reason; /* what binds that */
	/* Also at least the floor, rounded, within policy; absent if the floor is unknown. */
	struct wss_amount recommended_bytes;
	/* Before rounding, in whole MiB; absent unless the rule has a rounding. */
	struct wss_amount unrounded_bytes;
	bool outgrows; /* no flavour is that large: the size is not rounded */
	/*
	 * What its balloon would return to the host now: resident memory beyond wss_keep_bytes(), or without statistics of the
	 * guest beyond recommended_bytes; 0 if that is less than wss_keep_least_gain().
	 */
	struct wss_amount reclaimable_bytes;
	enum wss_sizing_reason reason;	/* with recommended_bytes: what binds it */
	struct wss_amount wanted_bytes; /* it without the policy's maximum */
};

/* What a guest is left with if its balloon takes the rest now, as it can be given back at any time. */
struct wss_keep {
	uint64_t minimum_bytes, headroom_percent; /* by the rule */
	uint64_t need_bytes;			  /* struct wss_sizing's; 0: unknown */
	struct wss_amount wss_bytes;		  /* newest window */
	/* That the guest cannot give up, by its newest statistics. */
	struct wss_amount in_use_bytes;
	uint64_t reserve_bytes; /* that its kernel keeps, likewise */
};

/* Returns that size, in bytes, saturated. */
uint64_t wss_keep_bytes(const struct wss_keep *keep);

/*
 * Returns the bytes that the host would get back from a guest that is left with to_bytes: its resident memory beyond
 * that. The guest may also give up other memory, but perhaps only pages that were never touched. Unknown if the size or the
 * resident memory is.
 */
struct wss_amount wss_keep_gain(struct wss_amount actual_bytes, struct wss_amount rss_bytes,
				uint64_t to_bytes);

/*
 * Returns the smallest gain that is worth shrinking a guest of this size: a twentieth, and at most 64 MiB. The memory of
 * a QEMU process varies by as much for other reasons, so a smaller gain could not be observed, and shrinking a guest for
 * no gain would be a pointless risk.
 */
uint64_t wss_keep_least_gain(uint64_t actual_bytes);

/* State of the guest apart from its windows. */
struct wss_sizing_state {
	struct wss_amount held_bytes;	 /* guest memory on the host now */
	struct wss_amount balloon_bytes; /* memory that it may use now */
	struct wss_amount maximum_bytes; /* limit of any extrapolation */
	/* By its newest sample, see struct wss_keep. */
	struct wss_amount wss_bytes, in_use_bytes, reserve_bytes;
	struct wss_floor floor; /* what the guest cannot give up */
	/* Takes the place of the base with headroom; NULL, or not known: none was learned. */
	const struct wss_learned *learned;
};

/*
 * Sizes a guest: the learned size, or the percentile's upper bound with headroom, but, if the
 * working set still grew at the end of its windows, at least the size that it would have grown to (history/growth.h). What the guest cannot give up is added to none of them, but is the
 * least; if that is unknown, there is a need but no size. The summary must have been read with its growth
 * curve. Figures of windows coarser than 4 KiB are upper bounds, which is the safe side.
 */
void wss_sizing_compute(const struct wss_summary *summary, const struct wss_sizing_rule *rule,
			const struct wss_policy *policy, const struct wss_sizing_state *state,
			struct wss_sizing *ret_sizing);

/*
 * Sizes the guest again from the figures that wss_sizing_compute() has found in its windows, with another
 * rule, policy or state. Without effect while it is too early.
 */
void wss_sizing_recommend(struct wss_sizing *sizing, const struct wss_sizing_rule *rule,
			  const struct wss_policy *policy, const struct wss_sizing_state *state);

/*
 * Combined need of a host's guests. Peaks of different guests seldom coincide, so the sum is
 * taken hour by hour, over each guest's largest window in that hour. A guest without a window
 * in an hour counts with its peak, one that was never measured with all its memory.
 */
struct wss_fit {
	time_t from;
	size_t n_hours;
	struct wss_fit_hour {
		uint64_t bytes;
		bool seen; /* in the guest being added */
		bool any;  /* by any guest */
	} * hours;
};

/*
 * Starts a sum over the hours between two times, at most 366 days apart. Returns 0, or -1 when
 * out of memory.
 */
int wss_fit_init(struct wss_fit *fit, time_t from, time_t to);
void wss_fit_free(struct wss_fit *fit);

/* Adds an hour of the current guest; hours outside the span are ignored. Sums saturate. */
void wss_fit_hour(struct wss_fit *fit, time_t start, uint64_t bytes);

/* Ends a guest, and adds otherwise_bytes to the hours in which it was not measured. */
void wss_fit_guest(struct wss_fit *fit, uint64_t otherwise_bytes);

struct wss_fit_result {
	uint64_t hours;		 /* hours with any window */
	bool from_peak;		 /* too few hours for the percentile */
	struct wss_amount bytes; /* not exceeded with this probability; absent without hours */
};

/* Returns 0, or -1 when out of memory. */
int wss_fit_result(const struct wss_fit *fit, double probability,
		   struct wss_fit_result *ret_result);
