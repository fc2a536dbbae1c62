/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <math.h>

#include "sizing/backtest.h"

#include "../tools/histories.h"

#define MIB (1ULL << 20)
#define HOUR 3600
#define DAY 86400
#define START HISTORIES_START
#define HOURS HISTORIES_HOURS

static const struct wss_backtest_options halves = {
	.train_s = 14 * DAY, .test_s = 14 * DAY, .hold_s = 7 * DAY};

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

static struct wss_backtest judge(const struct wss_backtest_options *options, struct trace *trace)
{
	struct wss_backtest backtest = {0};

	if (trace)
		trace->n = 0;
	assert_int_equal(wss_backtest_add(&backtest, history, HOURS, START + HOURS * HOUR, options,
					  trace ? trace_add : NULL, trace),
			 0);
	return backtest;
}

/* One hour in the second half needs twice as much: the figures of each player are known. */
TEST(test_figures)
{
	struct wss_backtest backtest;
	struct wss_backtest_score *ours = &backtest.scores[WSS_BACKTEST_ADVICE],
				  *vpa = &backtest.scores[WSS_BACKTEST_VPA];

	history_level(100 * MIB);
	history[500].need_bytes = 200 * MIB;
	backtest = judge(&halves, NULL);
	assert_int_equal(backtest.guests, 1);
	assert_int_equal(backtest.hours, 14 * 24);
	assert_int_equal(backtest.early_hours, 0);
	assert_int_equal(ours->violations, 1);
	assert_true(fabs(wss_backtest_above(ours) - (200 / 150.0 - 1)) < 1e-6);
	assert_true(fabs(ours->above_max - (200 / 150.0 - 1)) < 1e-6);
	/* Half a percent of the weight is that of several hours: one does not count. */
	assert_int_equal(ours->changes, 0);
	assert_int_equal(vpa->violations, 1);
	assert_true(fabs(wss_backtest_above(vpa) - (200 / 115.0 - 1)) < 1e-6);
	assert_true(fabs(wss_backtest_slack(&backtest.scores[WSS_BACKTEST_FIXED]) -
			 (335 * 0.75 + 0.5) / 336) < 1e-6);
}

/* An hour that was not measured is no hour in which the size sufficed. */
TEST(test_unmeasured)
{
	static struct trace trace;
	struct wss_backtest backtest;

	history_level(100 * MIB);
	for (int i = 0; i < HOURS; i += 4)
		history[i].need_bytes = 0;
	backtest = judge(&halves, &trace);
	for (int p = 0; p < WSS_BACKTEST_PLAYERS; p++)
		assert_int_equal(backtest.scores[p].hours, 14 * 24 / 4 * 3);
	for (size_t i = 0; i < trace.n; i++)
		assert_int_equal(trace.moments[i].need_bytes, 100 * MIB);
	assert_true(fabs(wss_backtest_slack(&backtest.scores[WSS_BACKTEST_ADVICE]) - 0.5 / 1.5) <
		    1e-6);
}

/* Whatever comes later changes nothing that was recommended before. */
TEST(test_no_foresight)
{
	static struct trace a, b;

	for (int k = 0; k < HISTORIES_KINDS; k++) {
		assert_true(histories_make(5, (enum histories_kind)k, history) > 14 * 24);
		judge(&halves, &a);
		for (int i = 0; i < HOURS; i++)
			if (history[i].start >= START + 20 * DAY)
				history[i].need_bytes = history[i].need_bytes * 5 + MIB;
		judge(&halves, &b);
		assert_int_equal(a.n, b.n);
		for (size_t i = 0; i < a.n && a.moments[i].start <= START + 20 * DAY; i++)
			for (int p = 0; p < WSS_BACKTEST_FIXED; p++)
				assert_int_equal(a.moments[i].sizes[p], b.moments[i].sizes[p]);
	}
}

static struct wss_learned learn_for(size_t n, uint64_t hold_s)
{
	struct wss_learner *learner = wss_learner_new(hold_s);
	struct wss_learned learned;

	assert_non_null(learner);
	for (size_t i = 0; i < n; i++)
		if (history[i].need_bytes)
			wss_learner_add(learner, history[i].start, history[i].need_bytes);
	learned = wss_learner_advise(learner, history[n - 1].start + HOUR);
	wss_learner_free(learner);
	return learned;
}

static struct wss_learned learn(size_t n)
{
	return learn_for(n, 7 * DAY);
}

/*
 * Learns from 300 days before 2026-11-28, the last 91 of them by hours, of a guest that needs 100 MiB, and 1000 MiB for an
 * hour at noon of the days in the list. The hold is that long and begins so many days later.
 */
static struct wss_learned learn_year(const char *const *dates, uint64_t hold_s, int later)
{
	const time_t end = 1795824000;
	struct wss_learner *learner = wss_learner_new(hold_s);
	struct wss_learned learned;

	for (time_t start = end - 300 * DAY; start < end + later * DAY; start += HOUR) {
		char date[WSS_CLOCK_TEXT_MAX];
		uint64_t bytes = 100 * MIB;

		wss_clock_format(start, date);
		for (size_t i = 0; dates[i]; i++)
			if (!strncmp(date, dates[i], 10) && start % DAY == 12 * HOUR)
				bytes = 1000 * MIB;
		if (start < end - 91 * DAY)
			wss_learner_add_day(learner, start - start % DAY, bytes);
		else
			wss_learner_add(learner, start, bytes);
	}
	learned = wss_learner_advise(learner, end + later * DAY);
	wss_learner_free(learner);
	return learned;
}

/* What was needed both times, in the last two months or quarters, is needed again; what was once is remembered. */
TEST(test_recurring_peak)
{
	static const char *const months[] = {"2026-09-30", "2026-10-31", NULL},
				 *const quarters[] = {"2026-05-31", "2026-08-31", NULL},
				 *const once[] = {"2026-05-31", "2026-10-31", NULL};
	struct wss_learned learned = learn_year(months, 7 * DAY, 0);

	assert_int_equal(learned.target_bytes, 1000 * MIB);
	assert_int_equal(learned.recurring_bytes, 1000 * MIB);
	assert_int_equal(learned.recurring_months, 1);
	assert_int_equal(learned.recurring_day, 1793404800);
	/* Nine days later the month is over. */
	assert_int_equal(learn_year(months, 7 * DAY, 9).recurring_bytes, 0);
	learned = learn_year(quarters, 7 * DAY, 0);
	assert_int_equal(learned.target_bytes, 1000 * MIB);
	assert_int_equal(learned.recurring_months, 3);
	assert_int_equal(learned.peak_bytes, 1000 * MIB);
	learned = learn_year(once, 7 * DAY, 0);
	assert_int_equal(learned.recurring_bytes, 0);
	assert_int_equal(learned.target_bytes, 150 * MIB);
	assert_int_equal(learned.old_peak_bytes, 1000 * MIB);
	assert_int_equal(learned.old_peak_day, 1780185600);
	/* No four holds of 28 days can be proved. */
	assert_false(learned.is_unprovable);
	assert_false(learn_year(once, 21 * DAY, 0).is_unprovable);
	assert_true(learn_year(once, 22 * DAY, 0).is_unprovable);
	/* Short holds follow the last day. */
	assert_int_equal(learn_year(months, DAY, 2).recurring_bytes, 0);
}

TEST(test_early)
{
	history_level(100 * MIB);
	assert_false(learn(WSS_LEARNER_HOURS_MIN - 1).known);
	assert_true(learn(WSS_LEARNER_HOURS_MIN).known);
}

/*
 * As docs/sizing.md has it: the smallest need of which hours with 99.5 % of all weight are not above it, an hour's weight
 * halving every 240 hours.
 */
static double expected_quantile(size_t n, double level, double half_life_h)
{
	double best = INFINITY;

	for (size_t k = 0; k < n; k++) {
		double all = 0, not_above = 0;

		for (size_t i = 0; i < n; i++) {
			double weight = exp2(-(double)(n - 1 - i) / half_life_h);

			all += weight;
			not_above += history[i].need_bytes <= history[k].need_bytes ? weight : 0;
		}
		if (not_above >= level * all && (double)history[k].need_bytes < best)
			best = (double)history[k].need_bytes;
	}
	return best;
}

static uint64_t largest_of_day(size_t n)
{
	uint64_t largest = 0;

	for (size_t i = n - 24; i < n; i++)
		largest = largest > history[i].need_bytes ? largest : history[i].need_bytes;
	return largest;
}

TEST(test_rule)
{
	struct wss_learned learned;
	double size;

	for (int k = 0; k < HISTORIES_KINDS; k++) {
		if (histories_make(11, (enum histories_kind)k, history) < HOURS)
			continue;
		for (size_t n = 30; n < HOURS; n += 200) {
			learned = learn(n);
			size = expected_quantile(n, 0.995, 240);
			assert_true(fabs((double)learned.quantile_bytes - size) < 2);
			assert_true(fabs((double)learned.target_bytes - 1.5 * size) < 4);
			learned = learn_for(n, DAY);
			size = 0.6 * expected_quantile(n, 0.99, 240) +
			       0.4 * (double)largest_of_day(n);
			assert_true(fabs((double)learned.target_bytes - 1.15 * size) < 4);
		}
	}
}

/* What is on record, and when. */
TEST(test_record)
{
	struct wss_learned learned;

	history_level(100 * MIB);
	history[300].need_bytes = history[400].need_bytes = 500 * MIB;
	history[HOURS - 10].need_bytes = 140 * MIB;
	learned = learn(HOURS);
	assert_int_equal(learned.hours, HOURS);
	/* These three have more than half a percent of the weight: the smallest of them, and a margin, is the size. */
	assert_int_equal(learned.quantile_bytes, 140 * MIB);
	assert_int_equal(learned.peak_bytes, 500 * MIB);
	assert_int_equal(learned.peak_start, START + 400 * HOUR);
	assert_int_equal(learned.recent_peak_bytes, 140 * MIB);
	/* Holds from day 3 on, of which the last one began a week ago. */
	assert_int_equal(learned.holds, 28 - 3 - 7 + 1);
	/* Those with one of the two hours in them, on days 12 and 16, began on days 6 to 16. */
	assert_int_equal(learned.holds_kept, learned.holds - 11);
	assert_int_equal(learned.confidence, WSS_CONFIDENCE_LOW);
}

TEST(test_confidence)
{
	history_level(100 * MIB);
	assert_int_equal(learn(5 * 24).confidence, WSS_CONFIDENCE_LOW);
	assert_int_equal(learn(20 * 24).confidence, WSS_CONFIDENCE_MEDIUM);
	assert_int_equal(learn(HOURS).confidence, WSS_CONFIDENCE_MEDIUM);
	assert_int_equal(learn_for(HOURS, DAY).confidence, WSS_CONFIDENCE_HIGH);
	assert_int_equal(learn_for(HOURS, 4 * DAY).confidence, WSS_CONFIDENCE_HIGH);
	/* Before it was ever asked for a size it needed more than 1.1 times of it. */
	history[20].need_bytes = 200 * MIB;
	assert_int_equal(learn_for(HOURS, 4 * DAY).confidence, WSS_CONFIDENCE_MEDIUM);
}

/* Hours in which it was not measured do not count, and neither keep nor break a hold. */
TEST(test_gaps)
{
	struct wss_learned learned;

	history_level(100 * MIB);
	for (int i = 200; i < 400; i++)
		history[i].need_bytes = 0;
	learned = learn(HOURS);
	assert_int_equal(learned.hours, HOURS - 200);
	assert_int_equal(learned.holds_kept, learned.holds);
	assert_true(learned.holds < 19);
}

int main(void)
{
	return tests_run();
}
