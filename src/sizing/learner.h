/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The rule: the size to keep for a given time (the hold), from the largest working set of each past hour.
 *
 * Theory of operation. The size is a quantile of the needs of the hours, in which an hour counts half as much as one
 * ten days later, and a margin on top:
 *
 *     holds of two days and more    1.5 * Q(0.995, 10 days)
 *     shorter ones                  1.15 * (0.6 Q(0.99, 10 days) + 0.4 L)
 *
 * where Q(p, h) is the smallest need of which hours with at least the share p of all weight are not above it, an
 * hour's weight halves each h before the newest hour, and L is the largest need of the 24 hours that end with the newest
 * measured one. The constants are those that wasted little on the guests of a
 * public trace (docs/sizing.md has the table). The largest need of the last day lets short holds follow a change at
 * once; a longer hold has no use for it. The margin is what a guest's next days have been above its past ones: without
 * it, three weeks in ten have an hour that needs more than 1.1 times the size, with it fewer than one in ten.
 *
 * In long holds, a peak that comes back with the month or the quarter is no part of that quantile. Days are therefore remembered for a
 * year: what the guest needed both one and two months (or quarters) before the hold, in the same days of the month and one
 * more on either side, it gets again.
 *
 * How far to trust the size is what it has proved: at the start of each past day, or each five hours for shorter holds,
 * the rule is asked for a size, which the hours of the hold from then on keep or break. Four holds over 22 days are longer
 * than the hours that count, so that they are never trusted highly, which is said.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Hours that count, 13 weeks: what is older has less than 0.2 % of the newest hour's weight. */
#define WSS_LEARNER_HOURS_MAX (13 * 7 * 24)
/* Days whose largest need is remembered. */
#define WSS_LEARNER_DAYS_MAX 366
/* Fewer measured hours make no recommendation; the confidence says how little a few days are worth. */
#define WSS_LEARNER_HOURS_MIN 24
/* A need above the size by more than this share breaks a hold. */
#define WSS_LEARNER_BROKEN 0.1
#define WSS_LEARNER_HOLD_MIN_S 3600
#define WSS_LEARNER_HOLD_MAX_S (28 * 86400)

enum wss_confidence {
	WSS_CONFIDENCE_NONE, /* too early for a size */
	WSS_CONFIDENCE_LOW,
	WSS_CONFIDENCE_MEDIUM,
	WSS_CONFIDENCE_HIGH, /* at most one in twenty such sizes is broken in the next hold */
};

struct wss_learned {
	bool known;		 /* enough hours; else nothing below is set */
	uint64_t target_bytes;	 /* the size to keep */
	uint64_t quantile_bytes; /* without the margin */
	uint64_t hours;		 /* measured */
	uint64_t days;		 /* on record, with such an hour or older */
	uint64_t peak_bytes;	 /* the largest need of these hours */
	time_t peak_start;	 /* the hour of it, the last one if there are several */
	/* The largest need of a day before these hours, and when it begins; 0: none is remembered. */
	uint64_t old_peak_bytes;
	time_t old_peak_day;
	/* What it needed in this part of the last two months (months: 1) or quarters (3); 0: no more than target_bytes. */
	uint64_t recurring_bytes;
	unsigned recurring_months;
	time_t recurring_day;	    /* when it did last */
	uint64_t recent_peak_bytes; /* the largest need in the last hold; 0: none was measured */
	/* Past holds of that length, one from each day on (each five hours, if shorter), and of these not broken. */
	uint64_t holds, holds_kept;
	enum wss_confidence confidence;
	bool is_unprovable; /* four holds are longer than the hours that count, so that confidence is never high */
};

struct wss_learner;

/* hold_s: how long a size is kept, WSS_LEARNER_HOLD_MIN_S to _MAX_S. For wss_learner_free(); NULL: out of memory. */
struct wss_learner *wss_learner_new(uint64_t hold_s);

/* Accepts NULL. */
void wss_learner_free(struct wss_learner *learner);

/*
 * Adds an hour's largest working set, in bytes, at least 1. start: its first second. Hours
 * that do not come later than the last one are ignored.
 */
void wss_learner_add(struct wss_learner *learner, time_t start, uint64_t bytes);

/* Adds the largest need of a day that begins before all hours; ascending. */
void wss_learner_add_day(struct wss_learner *learner, time_t start, uint64_t bytes);

/* Returns how many of the hours that count needed more than that. */
uint64_t wss_learner_above(const struct wss_learner *learner, uint64_t bytes);

/* Returns what to recommend for a hold that begins at that time, after all that were added. */
struct wss_learned wss_learner_advise(struct wss_learner *learner, time_t start);
