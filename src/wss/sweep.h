/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sweep: rules for sizes that are tried on the same hours, and the choice among them. */
#ifndef WSS_WSS_SWEEP_H
#define WSS_WSS_SWEEP_H

#include <stddef.h>

#include "wss/backtest.h"

#define WSS_SWEEP_RULES 120

/* Returns one of the rules, 0 <= i < WSS_SWEEP_RULES: spans of 1 to 14 days, percentiles of 90 to 100, headrooms of
 * 0 to 30 %. */
struct wss_learner_rule wss_sweep_rule(size_t i);

/* What a rule was worth on hours that it did not know. */
struct wss_sweep_choice {
	struct wss_learner_rule rule;
	uint64_t hours, violations;
	double slack; /* mean, a share of the size */
	bool met;     /* no more than the risk of the hours needed more */
	/* With 95 % certainty no more than this share of hours needs more, if they are independent. */
	double bound;
};

/*
 * Chooses, among all rules, those that keep a risk at the least slack: ascending by the number of hours that needed
 * more, which is at most the share risk of the hours, and falling by slack. The last one is the cheapest. What is
 * chosen for a risk is also chosen for each larger one. If no rule keeps the risk, there is one choice, the
 * cheapest with the fewest such hours. options: only and alone do not count. Sets *ret_n to 0 if no hour could be
 * judged. Returns 0, or -1 when out of memory.
 */
int wss_sweep_choose(const struct wss_backtest_hour *hours, size_t n, time_t until,
		     const struct wss_backtest_options *options, double risk,
		     struct wss_sweep_choice ret_choices[WSS_SWEEP_RULES], size_t *ret_n);

/*
 * Returns the share p of which at most k of n independent hours are seen with a probability of 5 %: a 95 % upper
 * bound of a share of which k of n were seen (Clopper and Pearson, Biometrika 26, 1934).
 */
double wss_sweep_bound(uint64_t k, uint64_t n);

#endif
