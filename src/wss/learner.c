/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define HOUR 3600
#define DAY_H 24
/* Weight of the imagined past, in hours. */
#define PRIOR_HOURS 96.0
/* An older verdict on a rule counts less: half after two weeks. */
#define HALF_LIFE_H (14.0 * DAY_H)
/* Slack per unit of margin that the imagined past has. */
#define MARGIN_SCALE 0.05
/* Another rule must be cheaper by this to replace the one in use. */
#define SWITCH_GAIN 0.004
/* A guest that was not measured for so long may have been started again. */
#define GAP_H 2
/* First hours after a gap that belong to the start. */
#define BOOT_H 1
/*
 * If more than one hour in so many follows such a gap, the guest is measured that seldom. Even if each was a start:
 * no rule ignores so many hours, so the size covers them.
 */
#define GAPS_RARE 10
#define SPANS 4
#define LEVELS 4
#define MARGINS 9
#define RULES (SPANS * LEVELS * MARGINS)
/* Growth is looked for in the last days, and extended so far. */
#define TREND_DAYS 7
#define AHEAD_DAYS 1.0

static const unsigned span_hours[SPANS] = {DAY_H, 3 * DAY_H, 7 * DAY_H, 14 * DAY_H};
static const double levels[LEVELS] = {1, 0.99, 0.98, 0.95};
/*
 * The smallest is what a past without any change still leaves open: windows sample some seconds of each
 * hour, and the guest's next version needs more than this one.
 */
static const double margins[MARGINS] = {0.05, 0.06, 0.07, 0.085, 0.1, 0.125, 0.15, 0.2, 0.25};

/* The last measured hours of a span, sorted by size. */
struct window {
	unsigned room, n;
	uint64_t sorted[WSS_LEARNER_HOURS_MAX];
};

struct verdict {
	double hours, slack, violations;
};

struct wss_learner {
	size_t end; /* where the next one goes */
	uint64_t ring[WSS_LEARNER_HOURS_MAX];
	time_t last;
	uint64_t added;
	size_t n_spans, n_levels, n_margins;
	unsigned spans[SPANS];
	double levels[LEVELS], margins[MARGINS];
	double doubts[MARGINS]; /* share of the imagined failures that a margin leaves */
	struct window windows[SPANS];
	struct window day;
	struct verdict verdicts[RULES];
	size_t best;
	uint64_t held;	  /* the size in force; 0: none yet */
	unsigned below_h; /* hours since which a smaller size would have been recommended */
	uint64_t boot, gaps;
	unsigned since_gap_h;
	uint64_t days[TREND_DAYS + 1]; /* largest hour of each of the last days; 0: none */
	int64_t day_number;
};

struct wss_learner *wss_learner_new(const struct wss_learner_rule *only)
{
	struct wss_learner *learner = calloc(1, sizeof(*learner));

	if (!learner)
		return NULL;
	if (only) {
		unsigned hours = only->hours < 1 ? 1 : only->hours;

		learner->n_spans = learner->n_levels = learner->n_margins = 1;
		learner->spans[0] =
			hours > WSS_LEARNER_HOURS_MAX ? WSS_LEARNER_HOURS_MAX : hours;
		learner->levels[0] = fmin(fmax(only->percentile, 0.5), 1);
		learner->margins[0] = only->margin;
	} else {
		learner->n_spans = SPANS;
		learner->n_levels = LEVELS;
		learner->n_margins = MARGINS;
		memcpy(learner->spans, span_hours, sizeof(span_hours));
		memcpy(learner->levels, levels, sizeof(levels));
		memcpy(learner->margins, margins, sizeof(margins));
	}
	for (size_t i = 0; i < learner->n_margins; i++)
		learner->doubts[i] = exp(-learner->margins[i] / MARGIN_SCALE);
	for (size_t i = 0; i < learner->n_spans; i++)
		learner->windows[i].room = learner->spans[i];
	learner->day.room = DAY_H;
	learner->best = learner->n_spans * learner->n_levels * learner->n_margins - 1;
	return learner;
}

void wss_learner_free(struct wss_learner *learner)
{
	free(learner);
}

static size_t window_find(const struct window *window, uint64_t bytes)
{
	size_t low = 0, high = window->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (window->sorted[middle] < bytes)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Adds the newest hour; the one that leaves the span is read from the ring before that. */
static void window_add(const struct wss_learner *learner, struct window *window,
		       uint64_t bytes)
{
	size_t at;

	if (window->n == window->room) {
		size_t from = (learner->end + WSS_LEARNER_HOURS_MAX - window->room) %
			      WSS_LEARNER_HOURS_MAX;

		at = window_find(window, learner->ring[from]);
		window->n--;
		memmove(&window->sorted[at], &window->sorted[at + 1],
			(window->n - at) * sizeof(window->sorted[0]));
	}
	at = window_find(window, bytes);
	memmove(&window->sorted[at + 1], &window->sorted[at],
		(window->n - at) * sizeof(window->sorted[0]));
	window->sorted[at] = bytes;
	window->n++;
}

/* Returns the index of the nearest-rank percentile of n values. */
static size_t rank_of(size_t n, double level)
{
	size_t rank = (size_t)ceil(level * (double)n - 1e-9);

	return rank ? rank - 1 : 0;
}

static uint64_t window_size(const struct window *window, double level)
{
	return window->n ? window->sorted[rank_of(window->n, level)] : 0;
}

static uint64_t with_margin(uint64_t bytes, double margin)
{
	return wss_u64_from_double((double)bytes * (1 + margin));
}

/* Returns the cost of a rule, the imagined past included: n hours of that are as many as the rule's window has room for. */
static double rule_cost(const struct wss_learner *learner, size_t rule)
{
	const struct verdict *verdict = &learner->verdicts[rule];
	size_t m = rule % learner->n_margins,
	       l = rule / learner->n_margins % learner->n_levels;
	const struct window *window =
		&learner->windows[rule / learner->n_margins / learner->n_levels];
	double margin = learner->margins[m];
	size_t beyond = window->room - rank_of(window->room, learner->levels[l]);
	double failed = (double)beyond / ((double)window->room + 1) * learner->doubts[m];
	double slack = margin / (1 + margin);

	return (verdict->slack + PRIOR_HOURS * slack +
		WSS_LEARNER_RISK * (verdict->violations + PRIOR_HOURS * failed)) /
	       (verdict->hours + PRIOR_HOURS);
}

/* Holds an hour against what each rule says without it. */
static void rules_judge(struct wss_learner *learner, uint64_t need)
{
	double keep = exp2(-1 / HALF_LIFE_H);
	size_t rule = 0;

	for (size_t s = 0; s < learner->n_spans; s++)
		for (size_t l = 0; l < learner->n_levels; l++) {
			uint64_t base = window_size(&learner->windows[s], learner->levels[l]);

			for (size_t m = 0; m < learner->n_margins; m++, rule++) {
				struct verdict *verdict = &learner->verdicts[rule];
				double size = (double)base * (1 + learner->margins[m]);

				verdict->hours = verdict->hours * keep + 1;
				verdict->slack *= keep;
				verdict->violations *= keep;
				if (size < (double)need)
					verdict->violations++;
				else
					verdict->slack += (size - (double)need) / size;
			}
		}
}

static void rule_choose(struct wss_learner *learner)
{
	size_t n = learner->n_spans * learner->n_levels * learner->n_margins;
	double now = rule_cost(learner, learner->best) - SWITCH_GAIN;

	for (size_t i = 0; i < n; i++) {
		double cost = rule_cost(learner, i);

		if (cost < now) {
			now = cost;
			learner->best = i;
		}
	}
}

static void days_add(struct wss_learner *learner, time_t start, uint64_t bytes)
{
	int64_t number = (int64_t)start / (DAY_H * HOUR);
	int64_t ahead = number - learner->day_number;

	if (!learner->added || ahead > TREND_DAYS)
		memset(learner->days, 0, sizeof(learner->days));
	else if (ahead > 0) {
		memmove(&learner->days[0], &learner->days[ahead],
			((size_t)TREND_DAYS + 1 - (size_t)ahead) * sizeof(learner->days[0]));
		memset(&learner->days[TREND_DAYS + 1 - ahead], 0,
		       (size_t)ahead * sizeof(learner->days[0]));
	}
	learner->day_number = number;
	learner->days[TREND_DAYS] = wss_u64_max(learner->days[TREND_DAYS], bytes);
}

/*
 * Returns the growth of the set as a share a day: if each of the last four whole days' largest sets was larger than
 * the day's before, which takes five days, the smallest of those four steps, which noise rarely imitates.
 */
static double growth_find(const struct wss_learner *learner)
{
	double least = INFINITY;

	for (size_t i = TREND_DAYS - 4; i < TREND_DAYS; i++) {
		double before = (double)learner->days[i - 1], after = (double)learner->days[i];

		if (before <= 0 || after <= before)
			return 0;
		least = fmin(least, after / before - 1);
	}
	return least;
}

/* Returns the size by the rule, growth included. */
static uint64_t rule_size(const struct wss_learner *learner, struct wss_learned *learned)
{
	size_t m = learner->best % learner->n_margins,
	       l = learner->best / learner->n_margins % learner->n_levels,
	       s = learner->best / learner->n_margins / learner->n_levels;
	const struct window *window = &learner->windows[s];
	uint64_t base = window_size(window, learner->levels[l]), grown;
	const struct verdict *verdict = &learner->verdicts[learner->best];

	learned->rule = (struct wss_learner_rule){learner->spans[s], learner->levels[l],
						  learner->margins[m]};
	learned->slack = verdict->slack / fmax(verdict->hours, 1);
	learned->violations = verdict->violations / fmax(verdict->hours, 1);
	learned->hours = learner->added;
	learned->growth = growth_find(learner);
	learned->steady_bytes = with_margin(base, learner->margins[m]);
	learned->reason = learner->levels[l] < 1 ? WSS_LEARNER_PERCENTILE : WSS_LEARNER_PEAK;
	grown = with_margin(window_size(&learner->day, 1),
			    learned->growth > 0 ? learned->growth * AHEAD_DAYS : 0);
	learned->next = learned->growth > 0 ? WSS_LEARNER_GROWTH : WSS_LEARNER_DAY;
	learned->next_bytes = grown;
	if (learned->growth > 0 && grown > learned->steady_bytes) {
		learned->next = learned->reason;
		learned->next_bytes = learned->steady_bytes;
		learned->reason = WSS_LEARNER_GROWTH;
		return grown;
	}
	return learned->steady_bytes;
}

static void learner_hold(struct wss_learner *learner)
{
	struct wss_learned learned = {0};
	uint64_t size = rule_size(learner, &learned);
	/* Half of what was added for the unknown may be used up before it is added again. */
	double spare = fmax(learned.rule.margin, learned.growth) / 2;

	if ((double)size > (double)learner->held * (1 + spare)) {
		learner->held = size;
		learner->below_h = 0;
	} else if ((double)size * (1 + WSS_LEARNER_STEP) < (double)learner->held) {
		if (++learner->below_h >= WSS_LEARNER_PATIENCE_H) {
			learner->held = size;
			learner->below_h = 0;
		}
	} else {
		learner->below_h = 0;
	}
}

void wss_learner_add(struct wss_learner *learner, time_t start, uint64_t bytes)
{
	if (learner->added && start <= learner->last)
		return;
	if (learner->added && start - learner->last > GAP_H * HOUR) {
		learner->since_gap_h = 1;
		learner->gaps++;
	} else if (learner->since_gap_h) {
		learner->since_gap_h++;
	}
	if (learner->since_gap_h && learner->since_gap_h <= BOOT_H)
		learner->boot = wss_u64_max(learner->boot, bytes);
	if (learner->added)
		rules_judge(learner, bytes);
	for (size_t i = 0; i < learner->n_spans; i++)
		window_add(learner, &learner->windows[i], bytes);
	window_add(learner, &learner->day, bytes);
	days_add(learner, start, bytes);
	learner->ring[learner->end] = bytes;
	learner->end = (learner->end + 1) % WSS_LEARNER_HOURS_MAX;
	learner->last = start;
	learner->added++;
	rule_choose(learner);
	learner_hold(learner);
}

struct wss_learned wss_learner_advise(const struct wss_learner *learner, time_t start)
{
	struct wss_learned learned = {.known = learner->added >= WSS_LEARNER_HOURS_MIN};
	uint64_t size;

	if (!learned.known)
		return (struct wss_learned){0};
	size = rule_size(learner, &learned);
	learned.boot_bytes = learner->gaps * GAPS_RARE <= learner->added ? learner->boot : 0;
	learned.target_bytes = learner->held;
	if (learner->held > size) {
		learned.next = learned.reason;
		learned.next_bytes = size;
		learned.reason = WSS_LEARNER_HELD;
	} else if ((double)size > (double)learner->held * (1 + WSS_LEARNER_STEP)) {
		learned.reason = WSS_LEARNER_HELD;
	}
	if (start - learner->last > GAP_H * HOUR && learned.boot_bytes > learned.target_bytes) {
		learned.next = learned.reason;
		learned.next_bytes = learned.target_bytes;
		learned.reason = WSS_LEARNER_BOOT;
		learned.target_bytes = learned.boot_bytes;
	}
	learned.lower_bytes = wss_u64_min(window_size(&learner->day, 1), learned.target_bytes);
	learned.upper_bytes =
		with_margin(wss_u64_max(learned.target_bytes, size), WSS_LEARNER_STEP);
	return learned;
}
