/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Backtest: replays a guest's measured hours, and holds what would have been recommended at
 * each of them, from earlier hours only, against what the guest then needed.
 *
 * Need of an hour: its largest measured working set, which is what the guest would have
 * missed memory for. Figures of a size L against a need u:
 *
 *     slack      (L - u) / L where L >= u, else 0: a share of the size, as Autopilot's
 *                relative slack (Rzadca et al., EuroSys 2020, section 4.1), but hour by hour:
 *                the low hours of a daily rhythm count as slack
 *     violation  an hour with u > L; (u - L) / L is how far above
 *     change     an hour whose size differs from that of the measured hour before
 * A recommended size is kept for the hold; the rivals change theirs each hour.
 *
 * The same figures are computed for rivals that see the same hours:
 *
 *     peak   the largest hour since the start of training, plus 15 %
 *     vpa    the 90th percentile of the hours, weighted with a half-life of 24 hours, plus
 *            15 %: the memory estimator of Kubernetes' Vertical Pod Autoscaler (its
 *            recommender's --target-memory-percentile, --memory-histogram-decay-half-life and
 *            --recommendation-margin-fraction), which counts the peak of each day instead of each hour
 *     fixed  the memory that the guest had in that hour
 *
 * Hours before which too little was measured for a recommendation count for none of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "sizing/learner.h"

struct wss_backtest_hour {
	time_t start;
	uint64_t need_bytes;	 /* 0: not measured, as if there were no such hour */
	uint64_t assigned_bytes; /* memory that the guest had; 0: unknown */
};

enum wss_backtest_player {
	WSS_BACKTEST_ADVICE,
	WSS_BACKTEST_PEAK,
	WSS_BACKTEST_VPA,
	WSS_BACKTEST_FIXED,
	WSS_BACKTEST_PLAYERS
};

/* Returns "recommended", "peak + 15%", "p90 24h + 15%", "fixed". */
const char *wss_backtest_player_name(enum wss_backtest_player player);

/* The figures of one player over any number of guests. All zero is empty. */
struct wss_backtest_score {
	uint64_t hours, violations, changes;
	double slack_sum, above_sum, above_max; /* sums and maximum of shares */
};

struct wss_backtest {
	uint64_t guests;      /* that had hours to be judged */
	uint64_t hours;	      /* judged */
	uint64_t early_hours; /* too early for a recommendation */
	struct wss_backtest_score scores[WSS_BACKTEST_PLAYERS];
};

struct wss_backtest_options {
	uint64_t train_s, test_s; /* at the end of the history; test_s at least an hour */
	uint64_t hold_s;	  /* how long each size is kept */
	/*
	 * Returns the size that is recommended for the hour that starts at that time where this was
	 * learned; 0: there is none yet. NULL: the learned size itself.
	 */
	uint64_t (*size_at)(const struct wss_learned *learned, time_t start, void *opaque);
	/* Adds to a guest's learner what is known of the days before its first hour, which starts then. NULL: nothing. */
	void (*begin)(struct wss_learner *learner, time_t start, void *opaque);
	void *opaque; /* of both */
};

/* A judged hour, for a picture. */
struct wss_backtest_moment {
	time_t start;
	uint64_t need_bytes;
	struct wss_learned advice;
	uint64_t sizes[WSS_BACKTEST_PLAYERS]; /* 0: unknown */
};

typedef void (*wss_backtest_on_moment)(const struct wss_backtest_moment *moment, void *opaque);

/*
 * Adds a guest: n hours, ascending. until: the end of the test, in seconds since 1970; hours
 * that do not start before it are ignored. on_moment may be NULL. Returns 0, or -1 when out of
 * memory.
 */
int wss_backtest_add(struct wss_backtest *backtest, const struct wss_backtest_hour *hours, size_t n,
		     time_t until, const struct wss_backtest_options *options,
		     wss_backtest_on_moment on_moment, void *opaque);

/* Means over the judged hours; 0 without hours. */
double wss_backtest_slack(const struct wss_backtest_score *score);
double wss_backtest_violations(const struct wss_backtest_score *score);
double wss_backtest_above(const struct wss_backtest_score *score);
/* Changes of one guest in 168 judged hours. */
double wss_backtest_changes_per_week(const struct wss_backtest_score *score);
