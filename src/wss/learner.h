/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The learner: finds the size that a guest needs next from the largest working set of each
 * hour, by judging simple rules on the guest's own past.
 *
 * Theory of operation. A rule takes the measured hours of a span, ignores the largest few of
 * them, and adds a margin. Each hour that is added is first held against what each rule would
 * have said before it was known; the rule's cost so far is
 *
 *     mean of  (size - need) / size          where the size sufficed
 *     +  RISK * share of hours               where it did not
 *
 * and the size to recommend is that of the cheapest rule, as in Autopilot's recommender of
 * weighted models (Rzadca et al., Autopilot: workload autoscaling at Google, EuroSys 2020; the
 * weights are ours). A young guest has no past to judge rules on: every
 * rule starts with an imagined past of PRIOR_HOURS, in which it failed as often as a rule of
 * order statistics fails on exchangeable hours, with r of n hours at or below the size
 * (n - r + 1) / (n + 1) of the time (David and Nagaraja, Order Statistics).
 *
 * The size that a rule gives holds until that rule asks for one that is larger by more than
 * half its margin, then rises at once. It falls only after the rule has asked for WSS_LEARNER_PATIENCE_H
 * hours for one that is smaller by more than WSS_LEARNER_STEP. So it seldom changes.
 *
 * Phases are found, not configured. A gap in the hours may be a start of the guest: the first hour
 * after it is remembered, and recommended only while nothing later is known. Where more than a tenth of the
 * hours follow a gap, the guest is measured that seldom, and gaps mean nothing. Growth is a largest
 * hour that has risen from day to day four times in a row: the size then covers another day of it.
 */
#ifndef WSS_WSS_LEARNER_H
#define WSS_WSS_LEARNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Hours that are learnt from; older ones are forgotten. */
#define WSS_LEARNER_HOURS_MAX (28 * 24)
/* Fewer measured hours make no recommendation: a week, so that its quiet days are not all. */
#define WSS_LEARNER_HOURS_MIN (7 * 24)
/* Cost of an hour in which the size did not suffice, in hours of a size that is all slack. */
#define WSS_LEARNER_RISK 9.0
#define WSS_LEARNER_PATIENCE_H 12
#define WSS_LEARNER_STEP 0.05

/* What made the size as large as it is. */
enum wss_learner_reason {
	WSS_LEARNER_PEAK,	/* the largest hour of the rule's span */
	WSS_LEARNER_PERCENTILE, /* the largest but for the hours that the rule ignores */
	WSS_LEARNER_GROWTH,	/* the set grows: what it will be a day later */
	WSS_LEARNER_BOOT,	/* the guest starts: its first hours after earlier gaps */
	WSS_LEARNER_DAY,	/* what the last 24 measured hours needed; never the first reason */
	WSS_LEARNER_HELD,	/* a former size, not too large for long, or a little too small */
};

/* A rule: the percentile of the last measured hours, and a margin on top. */
struct wss_learner_rule {
	unsigned hours;	   /* measured hours of its span, at most */
	double percentile; /* 0 to 1; 1: the largest */
	double margin;	   /* share of that percentile, 0 and above */
};

struct wss_learned {
	bool known; /* enough hours; else nothing below is set */
	/*
	 * Lower: what the last day needed, below which nothing should be taken without cost.
	 * Target: the size to recommend. Upper: a size above it should be lowered.
	 */
	uint64_t lower_bytes, target_bytes, upper_bytes;
	enum wss_learner_reason reason, next;
	uint64_t next_bytes;   /* the size that the next largest reason asks for */
	uint64_t steady_bytes; /* by the rule alone */
	uint64_t boot_bytes;   /* largest first hour after a gap; 0: no gap was seen, or too many */
	double growth;	       /* of the set, as a share a day; 0 if no trend was found */
	struct wss_learner_rule rule;
	/* The rule on the past: mean slack, and share of hours in which it did not suffice. */
	double slack, violations;
	uint64_t hours; /* measured hours that it was judged on */
};

struct wss_learner;

/*
 * only: the one rule to use; NULL: learn it. For wss_learner_free(); NULL: out of memory.
 * percentile is limited to 0.5 to 1, hours to 1 to WSS_LEARNER_HOURS_MAX.
 */
struct wss_learner *wss_learner_new(const struct wss_learner_rule *only);

/* Accepts NULL. */
void wss_learner_free(struct wss_learner *learner);

/*
 * Adds an hour's largest working set, in bytes, at least 1. start: its first second. Hours
 * that do not come later than the last one are ignored.
 */
void wss_learner_add(struct wss_learner *learner, time_t start, uint64_t bytes);

/* Returns what to recommend for the hour that starts at that time, after all that were added.
 */
struct wss_learned wss_learner_advise(const struct wss_learner *learner, time_t start);

#endif
