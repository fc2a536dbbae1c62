/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <math.h>

#include "wss/sweep.h"

#include "../tools/histories.h"

#define MIB (1ULL << 20)
#define HOUR 3600
#define DAY 86400
#define START HISTORIES_START
#define HOURS HISTORIES_HOURS

static const struct wss_backtest_options halves = {.train_s = 14 * DAY, .test_s = 14 * DAY};

static struct wss_backtest_hour history[HOURS];

/* Every hour of 28 days needs as much. */
static void history_level(uint64_t bytes)
{
	for (int i = 0; i < HOURS; i++)
		history[i] = (struct wss_backtest_hour){.start = START + i * HOUR,
							.need_bytes = bytes,
							.assigned_bytes = 4 * bytes};
}

struct trace {
	size_t n;
	struct wss_backtest_moment moments[HOURS];
};

static void trace_add(const struct wss_backtest_moment *moment, void *opaque)
{
	struct trace *trace = opaque;

	trace->moments[trace->n++] = *moment;
}

static struct wss_backtest judge(const struct wss_backtest_options *options,
				 struct trace *trace)
{
	struct wss_backtest backtest = {0};

	if (trace)
		trace->n = 0;
	assert_int_equal(wss_backtest_add(&backtest, history, HOURS, START + HOURS * HOUR,
					  options, trace ? trace_add : NULL, trace),
			 0);
	return backtest;
}

/* One hour in the second half needs twice as much: the figures of each player are known. */
static void test_figures(void **unused)
{
	const struct wss_learner_rule rule = {.hours = 24, .percentile = 1, .margin = 0.25};
	struct wss_backtest_options options = halves;
	struct wss_backtest backtest;
	struct wss_backtest_score *ours = &backtest.scores[WSS_BACKTEST_ADVICE],
				  *vpa = &backtest.scores[WSS_BACKTEST_VPA];
	double slack, margin;

	(void)unused;
	options.only = &rule;
	history_level(100 * MIB);
	history[500].need_bytes = 200 * MIB;
	backtest = judge(&options, NULL);
	assert_int_equal(backtest.guests, 1);
	assert_int_equal(backtest.hours, 14 * 24);
	assert_int_equal(backtest.early_hours, 0);
	assert_int_equal(ours->violations, 1);
	assert_true(fabs(wss_backtest_above(ours) - 0.6) < 1e-6);
	assert_true(fabs(ours->above_max - 0.6) < 1e-6);
	/* Up at once, down when the peak has left the last 24 hours and patience is over. */
	assert_int_equal(ours->changes, 2);
	assert_true(fabs(wss_backtest_changes_per_week(ours) - 1) < 1e-9);
	assert_int_equal(vpa->violations, 1);
	assert_true(fabs(wss_backtest_above(vpa) - (200 / 115.0 - 1)) < 1e-6);
	assert_true(fabs(wss_backtest_slack_percentile(vpa, 0.95) - 0.131) < 1e-9);
	assert_true(fabs(wss_backtest_slack(&backtest.scores[WSS_BACKTEST_FIXED]) -
			 (335 * 0.75 + 0.5) / 336) < 1e-6);
	/* With one violation in 336 hours the rival needs no margin. */
	assert_true(wss_backtest_slack_at(vpa, 1 / 336.0, &slack, &margin));
	assert_true(fabs(margin) < 1e-6 && fabs(slack) < 1e-6);
	assert_true(wss_backtest_slack_at(vpa, 0, &slack, &margin));
	assert_true(fabs(margin - 1) < 1e-6 && fabs(slack - 335 * 0.5 / 336) < 1e-6);
	wss_backtest_free(&backtest);
}

/* An hour that was not measured is no hour in which the size sufficed. */
static void test_unmeasured(void **unused)
{
	static struct trace trace;
	struct wss_backtest backtest;

	(void)unused;
	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i += 4)
		history[i].need_bytes = 0;
	backtest = judge(&halves, &trace);
	for (int p = 0; p < WSS_BACKTEST_PLAYERS; p++)
		assert_int_equal(backtest.scores[p].hours, 14 * 24 / 4 * 3);
	for (size_t i = 0; i < trace.n; i++)
		assert_int_equal(trace.moments[i].need_bytes, 100 * MIB);
	assert_true(wss_backtest_slack(&backtest.scores[WSS_BACKTEST_ADVICE]) < 0.06);
	wss_backtest_free(&backtest);
}

/* Whatever comes later changes nothing that was recommended before. */
static void test_no_foresight(void **unused)
{
	static struct trace a, b;
	struct wss_backtest backtest;

	(void)unused;
	for (int k = 0; k < HISTORIES_KINDS; k++) {
		assert_true(histories_make(5, (enum histories_kind)k, history) > 14 * 24);
		backtest = judge(&halves, &a);
		wss_backtest_free(&backtest);
		for (int i = 0; i < HOURS; i++)
			if (history[i].start >= START + 20 * DAY)
				history[i].need_bytes = history[i].need_bytes * 5 + MIB;
		backtest = judge(&halves, &b);
		wss_backtest_free(&backtest);
		assert_int_equal(a.n, b.n);
		for (size_t i = 0; i < a.n && a.moments[i].start <= START + 20 * DAY; i++)
			for (int p = 0; p < WSS_BACKTEST_FIXED; p++)
				assert_int_equal(a.moments[i].sizes[p], b.moments[i].sizes[p]);
	}
}

static struct wss_learned learn(size_t n)
{
	struct wss_learner *learner = wss_learner_new(NULL);
	struct wss_learned learned;

	assert_non_null(learner);
	for (size_t i = 0; i < n; i++)
		wss_learner_add(learner, history[i].start, history[i].need_bytes);
	learned = wss_learner_advise(learner, history[n - 1].start + HOUR);
	wss_learner_free(learner);
	return learned;
}

static void test_early(void **unused)
{
	(void)unused;
	history_level(100 * MIB);
	assert_false(learn(WSS_LEARNER_HOURS_MIN - 1).known);
	assert_true(learn(WSS_LEARNER_HOURS_MIN).known);
}

/* A guest without any change needs no margin; the band contains what it needs. */
static void test_steady(void **unused)
{
	struct wss_learned learned;

	(void)unused;
	history_level(100 * MIB);
	learned = learn(14 * 24);
	assert_true(learned.target_bytes >= 100 * MIB && learned.target_bytes <= 105 * MIB);
	assert_int_equal(learned.lower_bytes, 100 * MIB);
	assert_true(learned.upper_bytes > learned.target_bytes);
	assert_true(learned.violations == 0);
}

/* Every fourth day has an hour that needs four times as much: the size leaves it out. */
static void test_percentile(void **unused)
{
	struct wss_learned learned;

	(void)unused;
	history_level(100 * MIB);
	for (int i = 50; i < HOURS; i += 160)
		history[i].need_bytes = 400 * MIB;
	learned = learn(HOURS - 30);
	assert_int_equal(learned.reason, WSS_LEARNER_PERCENTILE);
	assert_true(learned.target_bytes < 150 * MIB);
}

static void test_growth(void **unused)
{
	struct wss_learned learned;

	(void)unused;
	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i++)
		history[i].need_bytes += history[i].need_bytes / 1000 * (uint64_t)i * 4;
	learned = learn(14 * 24);
	assert_true(learned.growth > 0.02 && learned.growth < 0.1);
	assert_true(learned.target_bytes > history[14 * 24 - 1].need_bytes);
	assert_true(learned.target_bytes < history[14 * 24 - 1].need_bytes * 11 / 10);
}

/* The largest hours rise into each of the last whole days, and the day that has just begun is not one of them. */
static double growth_after_rises(int rises)
{
	const int days = 14;

	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i++)
		if (i / 24 >= days - rises)
			history[i].need_bytes += (uint64_t)(i / 24 - (days - rises) + 1) * 5 * MIB;
	return learn((size_t)days * 24 + 1).growth;
}

static void test_growth_needs_four_rises(void **unused)
{
	(void)unused;
	assert_true(growth_after_rises(3) == 0);
	assert_true(growth_after_rises(4) > 0.04);
	assert_true(growth_after_rises(5) > 0.03);
}

/* After each pause the first hour needs more: that is expected after the next pause, not else.
 */
static void test_boot(void **unused)
{
	struct wss_learner *learner = wss_learner_new(NULL);
	struct wss_learned running, started;
	time_t last = 0;

	(void)unused;
	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i++) {
		if (i % 150 > 140)
			continue;
		last = history[i].start;
		wss_learner_add(learner, last, i && i % 150 == 0 ? 300 * MIB : 100 * MIB);
	}
	running = wss_learner_advise(learner, last + HOUR);
	started = wss_learner_advise(learner, last + 12 * HOUR);
	assert_int_equal(running.boot_bytes, 300 * MIB);
	assert_true(running.target_bytes < 150 * MIB);
	assert_int_equal(started.reason, WSS_LEARNER_BOOT);
	assert_int_equal(started.target_bytes, 300 * MIB);
	assert_int_equal(started.next_bytes, running.target_bytes);
	wss_learner_free(learner);
}

/* A guest that is measured every three hours does not start every three hours. */
static void test_seldom(void **unused)
{
	struct wss_learner *learner = wss_learner_new(NULL);
	struct wss_learned learned;

	(void)unused;
	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i += 3)
		wss_learner_add(learner, history[i].start, i == 30 ? 300 * MIB : 100 * MIB);
	learned = wss_learner_advise(learner, START + HOURS * HOUR);
	assert_true(learned.known);
	assert_int_equal(learned.boot_bytes, 0);
	assert_int_not_equal(learned.reason, WSS_LEARNER_BOOT);
	assert_true(learned.target_bytes < 150 * MIB);
	wss_learner_free(learner);
}

/* Returns the number of choices for a risk, and in *ret_choice the cheapest. */
static size_t choose(size_t n, double risk, struct wss_sweep_choice *ret_choice)
{
	struct wss_sweep_choice choices[WSS_SWEEP_RULES];
	size_t found;

	assert_int_equal(wss_sweep_choose(history, n, START + HOURS * HOUR, &halves, risk, choices,
					  &found), 0);
	for (size_t i = 1; i < found; i++) {
		assert_true(choices[i].met && choices[i].violations > choices[i - 1].violations);
		assert_true(choices[i].slack < choices[i - 1].slack);
	}
	if (found)
		*ret_choice = choices[found - 1];
	return found;
}

/* A risk chooses the cheapest rule that keeps it, or the safest if none does. */
static void test_risk(void **unused)
{
	struct wss_sweep_choice choice;

	(void)unused;
	history_level(100 * MIB);
	assert_int_equal(choose(HOURS, 0.001, &choice), 1);
	assert_true(choice.met && choice.violations == 0 && choice.hours == 336);
	assert_true(choice.rule.margin == 0 && choice.slack < 1e-9);
	assert_true(choice.bound > 0.008 && choice.bound < 0.01);
	/* An hour each day needs half more: a percentile leaves it out if the risk allows. */
	for (int i = 7; i < HOURS; i += 24)
		history[i].need_bytes = 150 * MIB;
	assert_int_equal(choose(HOURS, 0.1, &choice), 2);
	assert_true(choice.met && choice.violations == 14 && choice.slack < 0.01);
	assert_int_equal(choose(HOURS, 0.001, &choice), 1);
	assert_true(choice.met && choice.violations == 0 && choice.slack > 0.3);
	/* It doubles every third day: no rule keeps up. */
	for (int i = 0; i < HOURS; i++)
		history[i].need_bytes = MIB << (i / 72);
	assert_int_equal(choose(HOURS, 0.001, &choice), 1);
	assert_true(!choice.met && choice.violations > 0);
	assert_int_equal(choose(100, 0.001, &choice), 0);
}

static void test_bound(void **unused)
{
	(void)unused;
	/* 1 - 0.05^(1/n), and the table of Clopper and Pearson. */
	assert_true(fabs(wss_sweep_bound(0, 299) - (1 - pow(0.05, 1 / 299.0))) < 1e-9);
	assert_true(fabs(wss_sweep_bound(1, 10) - 0.39416) < 1e-4);
	assert_true(fabs(wss_sweep_bound(5, 10) - 0.77756) < 1e-4);
	assert_true(wss_sweep_bound(10, 10) == 1);
	assert_true(wss_sweep_bound(0, 0) == 1);
}

/* The target of all kinds of guests together, on seeds of their own. */
static void test_target(void **unused)
{
	struct wss_backtest backtest = {0};
	const struct wss_backtest_score *scores = backtest.scores;

	(void)unused;
	for (uint64_t i = 0; i < 60; i++) {
		size_t n = histories_make(977 + i, (enum histories_kind)(i % HISTORIES_KINDS),
					  history);

		assert_int_equal(wss_backtest_add(&backtest, history, n, START + HOURS * HOUR,
						  &halves, NULL, NULL),
				 0);
	}
	assert_true(wss_backtest_violations(&scores[WSS_BACKTEST_ADVICE]) <= 0.01);
	assert_true(wss_backtest_slack(&scores[WSS_BACKTEST_ADVICE]) <= 0.23);
	for (int p = WSS_BACKTEST_PEAK; p < WSS_BACKTEST_PLAYERS; p++)
		assert_true(wss_backtest_slack(&scores[WSS_BACKTEST_ADVICE]) <
			    wss_backtest_slack(&scores[p]));
	wss_backtest_free(&backtest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),	   cmocka_unit_test(test_no_foresight),
		cmocka_unit_test(test_early),	   cmocka_unit_test(test_steady),
		cmocka_unit_test(test_percentile), cmocka_unit_test(test_growth),
		cmocka_unit_test(test_growth_needs_four_rises),
		cmocka_unit_test(test_risk),	   cmocka_unit_test(test_unmeasured),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_boot),	   cmocka_unit_test(test_seldom),
		cmocka_unit_test(test_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
