/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/sweep.h"

#include <math.h>

#define SPANS 4
#define LEVELS 5
#define MARGINS 6
#define DOUBT 0.05
#define BISECTIONS 40

_Static_assert(SPANS * LEVELS * MARGINS == WSS_SWEEP_RULES, "a rule for each combination");

struct wss_learner_rule wss_sweep_rule(size_t i)
{
	static const unsigned spans[SPANS] = {24, 72, 168, 336};
	static const double levels[LEVELS] = {0.9, 0.95, 0.98, 0.99, 1};
	static const double margins[MARGINS] = {0, 0.05, 0.1, 0.15, 0.2, 0.3};

	return (struct wss_learner_rule){
		.hours = spans[i / MARGINS / LEVELS],
		.percentile = levels[i / MARGINS % LEVELS],
		.margin = margins[i % MARGINS],
	};
}

/* Whether a is the better choice. */
static bool choice_is_better(const struct wss_sweep_choice *a, const struct wss_sweep_choice *b)
{
	if (a->met != b->met)
		return a->met;
	if (!a->met && a->violations != b->violations)
		return a->violations < b->violations;
	return a->slack < b->slack;
}

int wss_sweep_choose(const struct wss_backtest_hour *hours, size_t n, time_t until,
		     const struct wss_backtest_options *options, double risk,
		     struct wss_sweep_choice *ret_choice)
{
	struct wss_sweep_choice best = {.hours = 0};

	for (size_t i = 0; i < WSS_SWEEP_RULES; i++) {
		struct wss_sweep_choice choice = {.rule = wss_sweep_rule(i)};
		struct wss_backtest_options mine = *options;
		struct wss_backtest backtest = {0};
		const struct wss_backtest_score *score = &backtest.scores[WSS_BACKTEST_ADVICE];
		int r;

		mine.only = &choice.rule;
		mine.alone = true;
		r = wss_backtest_add(&backtest, hours, n, until, &mine, NULL, NULL);
		choice.hours = score->hours;
		choice.violations = score->violations;
		choice.slack = wss_backtest_slack(score);
		choice.met = (double)score->violations <= risk * (double)score->hours;
		wss_backtest_free(&backtest);
		if (r < 0)
			return -1;
		if (choice.hours && (!best.hours || choice_is_better(&choice, &best)))
			best = choice;
	}
	if (!best.hours)
		return 0;
	best.bound = wss_sweep_bound(best.violations, best.hours);
	*ret_choice = best;
	return 1;
}

/* Returns P(Bin(n, p) <= k), 0 < p < 1. */
static double tail_of(uint64_t k, uint64_t n, double p)
{
	double log_pmf = (double)n * log1p(-p), tail = exp(log_pmf);

	for (uint64_t i = 1; i <= k; i++) {
		log_pmf += log((double)(n - i + 1)) - log((double)i) + log(p) - log1p(-p);
		tail += exp(log_pmf);
	}
	return tail;
}

double wss_sweep_bound(uint64_t k, uint64_t n)
{
	double low = 0, high = 1;

	if (k >= n)
		return 1;
	for (int i = 0; i < BISECTIONS; i++) {
		double middle = (low + high) / 2;

		if (tail_of(k, n, middle) > DOUBT)
			low = middle;
		else
			high = middle;
	}
	return high;
}
