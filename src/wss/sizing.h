/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sizing: how much memory a guest needs according to its windows, and with what confidence. */
#ifndef WSS_WSS_SIZING_H
#define WSS_WSS_SIZING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "wss/growth.h"
#include "wss/learner.h"
#include "wss/policy.h"
#include "wss/pressure.h"
#include "wss/rounding.h"
#include "wss/summary.h"

/* Fewer windows give no recommendation. */
#define WSS_SIZING_SAMPLES_MIN 10
/* Certainty of a percentile's upper bound. */
#define WSS_SIZING_CERTAINTY 0.95
/*
 * Shortest span of windows that counts as a week. It is half a day shorter, because the
 * windows found within the last week seldom begin exactly a week ago.
 */
#define WSS_SIZING_WEEK_S ((7 * 24 - 12) * 3600)

enum wss_confidence {
	WSS_CONFIDENCE_NONE, /* too early: fewer than WSS_SIZING_SAMPLES_MIN windows */
	/*
	 * Too few windows for the percentile, or too many degraded ones; or the working set
	 * still grew at the end of the windows, or no growth curve shows whether it did.
	 */
	WSS_CONFIDENCE_LOW,
	WSS_CONFIDENCE_MEDIUM, /* enough windows, but over less than a week */
	WSS_CONFIDENCE_HIGH,
};

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
	bool minimum_is_default; /* nobody has asked for it */
	const struct wss_rounding *rounding; /* NULL: whole MiB */
};

/*
 * Overrides values of the rule with those of the operator's policy. A default minimum is at most half of the guest's
 * memory, if that is known: whoever has made a small guest knew that it can be small.
 */
void wss_sizing_heed(struct wss_sizing_rule *rule, const struct wss_policy *policy,
		     struct wss_amount maximum_bytes);

/*
 * Rounds up a size that follows from growth curves, by 1 part in 32 at most, or to whole MiB: it moves with every
 * window, and would otherwise change from hour to hour. In bytes, saturated.
 */
uint64_t wss_sizing_coarse(uint64_t bytes);

/* What binds a recommended size. */
enum wss_sizing_reason {
	WSS_SIZING_PEAK,	/* the largest set, with headroom or a margin */
	WSS_SIZING_PERCENTILE,	/* a percentile, likewise */
	WSS_SIZING_TREND,	/* the set grows from day to day (wss/learner.h) */
	WSS_SIZING_BOOT,	/* the guest may just have been started */
	WSS_SIZING_HELD,	/* a former size: it has not been too large for long */
	WSS_SIZING_DAY,		/* what the last 24 measured hours needed; only as the next reason */
	WSS_SIZING_CURVE,	/* the miss-rate curve */
	WSS_SIZING_BEYOND,	/* growth beyond the end of the windows (wss/growth.h) */
	WSS_SIZING_COLDNESS,	/* memory used in the last 24 hours, whose cost no curve shows */
	WSS_SIZING_PRESSURE,	/* the guest has had too little (wss/pressure.h) */
	WSS_SIZING_MINIMUM,
	WSS_SIZING_ROUNDING,	/* to a flavour or by a step */
	WSS_SIZING_MAXIMUM,	/* the policy's */
	WSS_SIZING_REASONS
};

/*
 * Returns "peak", "percentile", "trend", "boot", "held", "last 24 hours", "miss-rate curve",
 * "growth", "coldness", "pressure", "minimum", "rounding", "maximum".
 */
const char *wss_sizing_reason_name(enum wss_sizing_reason reason);

struct wss_sizing {
	enum wss_confidence confidence;
	bool from_peak; /* too few windows for the percentile, so the largest is used */
	struct wss_growth growth; /* growth at the end of the windows */
	/* Absent while it is too early. */
	struct wss_amount p50_bytes, p95_bytes, p99_bytes, peak_bytes;
	struct wss_amount base_bytes;	     /* upper bound of the percentile, or the peak */
	/*
	 * Base extrapolated along the growth curve; absent if the working set no longer grew.
	 */
	struct wss_amount grown_bytes;
	/* With headroom, rounded, within policy. */
	struct wss_amount recommended_bytes;
	/* Before rounding, in whole MiB; absent unless the rule has a rounding. */
	struct wss_amount unrounded_bytes;
	bool outgrows; /* no flavour is that large: the size is not rounded */
	struct wss_amount reclaimable_bytes; /* resident memory beyond recommended_bytes */
	struct wss_amount pressure_bytes;    /* that signs of pressure ask for; absent: none does */
	struct wss_pressure_event pressed;   /* with pressure_bytes: the event that asks for it */
	/* With recommended_bytes: what binds it, and the next largest size with its reason. */
	enum wss_sizing_reason reason, next_reason;
	struct wss_amount next_bytes; /* not above recommended_bytes, unless the maximum binds */
};

/* State of the guest apart from its windows. */
struct wss_sizing_state {
	struct wss_amount held_bytes;	 /* guest memory on the host now */
	struct wss_amount balloon_bytes; /* memory that it may use now */
	struct wss_amount maximum_bytes; /* limit of any extrapolation */
	/*
	 * The size below which the miss-rate curve is too steep; an extrapolation if it is too
	 * steep at all measured sizes.
	 */
	struct wss_amount curve_bytes;
	bool curve_is_beyond;
	/* Memory that was certainly used in the last 24 hours (wss/coldness.h). */
	struct wss_amount used_bytes;
	/* Signs of pressure until now; NULL: they do not count. */
	const struct wss_pressure *pressure;
	time_t now;
	/*
	 * Takes the place of the base with headroom, with a quarter of the headroom if the windows have no
	 * growth curves; NULL, or not known: none was learned.
	 */
	const struct wss_learned *learned;
};

/*
 * Sizes a guest: the learned size, or the percentile's upper bound with headroom, but at least the size that the
 * miss-rate curve asks for, and, if the working set still grew at the end of its windows, the size
 * that it would have grown to (wss/growth.h). Where no curve shows what less would cost, the size is at least
 * the memory that was used in the last 24 hours. The summary must have been read with its growth
 * curve. Figures of windows coarser than 4 KiB are upper bounds, which is the safe side.
 */
void wss_sizing_compute(const struct wss_summary *summary, const struct wss_sizing_rule *rule,
			const struct wss_policy *policy, const struct wss_sizing_state *state,
			struct wss_sizing *ret_sizing);

/* Returns the headroom on a learned size, in percent: a quarter of the rule's if the windows have no growth curves. */
uint64_t wss_sizing_learned_headroom(const struct wss_sizing_rule *rule, const struct wss_sizing *sizing);

/*
 * Sizes the guest anew from the figures that wss_sizing_compute() has found in its windows, with another
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
	} *hours;
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
	uint64_t hours;	      /* hours with any window */
	bool from_peak;	      /* too few hours for the percentile */
	struct wss_amount bytes; /* not exceeded with this probability; absent without hours */
};

/* Returns 0, or -1 when out of memory. */
int wss_fit_result(const struct wss_fit *fit, double probability, struct wss_fit_result *ret_result);

#endif
