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

static bool choice_comes_before(const struct wss_sweep_choice *a, const struct wss_sweep_choice *b)
{
	if (a->violations != b->violations)
		return a->violations < b->violations;
	return a->slack < b->slack;
}

/* Inserts a choice in order; of equal ones the first stays first. */
static void choice_insert(struct wss_sweep_choice *list, size_t n, const struct wss_sweep_choice *choice)
{
	for (; n > 0 && choice_comes_before(choice, &list[n - 1]); n--)
		list[n] = list[n - 1];
	list[n] = *choice;
}

/* Drops those that do not keep the risk or have no less slack than one before; the first one stays. */
static size_t choices_prune(struct wss_sweep_choice *list, size_t n)
{
	size_t kept = n ? 1 : 0;

	for (size_t i = 1; i < n; i++)
		if (list[i].met && list[i].slack < list[kept - 1].slack)
			list[kept++] = list[i];
	return kept;
}

int wss_sweep_choose(const struct wss_backtest_hour *hours, size_t n, time_t until,
		     const struct wss_backtest_options *options, double risk,
		     struct wss_sweep_choice ret_choices[WSS_SWEEP_RULES], size_t *ret_n)
{
	size_t found = 0;

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
		if (choice.hours)
			choice_insert(ret_choices, found++, &choice);
	}
	found = choices_prune(ret_choices, found);
	for (size_t i = 0; i < found; i++)
		ret_choices[i].bound =
			wss_sweep_bound(ret_choices[i].violations, ret_choices[i].hours);
	*ret_n = found;
	return 0;
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
