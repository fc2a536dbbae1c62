/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define HOUR_S 3600
#define DAY_S 86400
/* Holds from this length on have a size by the past weeks alone. */
#define LONG_HOLD_S (2 * DAY_S)
#define HALF_LIFE_S (10.0 * DAY_S)
#define LONG_LEVEL 0.995
#define LONG_MARGIN 0.5
#define SHORT_LEVEL 0.99
#define SHORT_MARGIN 0.15
/* The part of a short hold's size that is the largest need of the newest 24 hours. */
#define DAY_PART 0.4
/* A past hold is only judged if the size at its start was based on so many measured hours. */
#define JUDGED_HOURS_MIN 72
/* Past holds begin this far apart; short ones, so that each hour of the day has its turn. */
#define LONG_STEP_S DAY_S
#define SHORT_STEP_S (5 * HOUR_S)
#define HOLDS_MAX (WSS_LEARNER_HOURS_MAX * HOUR_S / SHORT_STEP_S)

struct hour {
	time_t start;
	uint64_t bytes;
};

/* A past hold. */
struct hold {
	time_t start;
	uint64_t size_bytes;
	uint64_t hours; /* measured in it */
	bool broken;
};

struct wss_learner {
	uint64_t hold_s;
	time_t step_s; /* between two past holds */
	size_t n;      /* hours, ascending by start */
	struct hour hours[WSS_LEARNER_HOURS_MAX], by_size[WSS_LEARNER_HOURS_MAX];
	size_t n_days;
	struct hour days[WSS_LEARNER_DAYS_MAX]; /* ascending */
	size_t n_holds;
	struct hold holds[HOLDS_MAX];
};

struct wss_learner *wss_learner_new(uint64_t hold_s)
{
	struct wss_learner *learner = calloc(1, sizeof(*learner));

	if (!learner)
		return NULL;
	learner->hold_s =
		wss_u64_max(WSS_LEARNER_HOLD_MIN_S, wss_u64_min(hold_s, WSS_LEARNER_HOLD_MAX_S));
	learner->step_s = learner->hold_s < LONG_STEP_S ? SHORT_STEP_S : LONG_STEP_S;
	return learner;
}

void wss_learner_free(struct wss_learner *learner)
{
	free(learner);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct hour *x = a, *y = b;

	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Returns Q(level, 10 days) of the hours in by_size. */
static double quantile(const struct wss_learner *learner, double level)
{
	time_t newest = learner->hours[learner->n - 1].start;
	double weights[WSS_LEARNER_HOURS_MAX], all = 0, below = 0;
	size_t i;

	for (i = 0; i < learner->n; i++)
		all += weights[i] =
			exp2((double)(learner->by_size[i].start - newest) / HALF_LIFE_S);
	for (i = 0; i < learner->n - 1; i++) {
		below += weights[i];
		if (below >= level * all)
			break;
	}
	return (double)learner->by_size[i].bytes;
}

/* Returns the largest need of the 24 hours that end with the newest one. */
static double largest_of_day(const struct wss_learner *learner)
{
	time_t newest = learner->hours[learner->n - 1].start;
	uint64_t largest = 0;

	for (size_t i = learner->n; i-- > 0 && newest - learner->hours[i].start < DAY_S;)
		largest = wss_u64_max(largest, learner->hours[i].bytes);
	return (double)largest;
}

static uint64_t with_margin(uint64_t bytes, double margin)
{
	return wss_u64_from_double((double)bytes * (1 + margin));
}

void wss_learner_add_day(struct wss_learner *learner, time_t start, uint64_t bytes)
{
	struct hour *last = learner->n_days ? &learner->days[learner->n_days - 1] : NULL;

	start -= start % DAY_S;
	if (last && start <= last->start) {
		last->bytes = wss_u64_max(last->bytes, bytes);
		return;
	}
	if (learner->n_days == WSS_LEARNER_DAYS_MAX)
		memmove(&learner->days[0], &learner->days[1],
			--learner->n_days * sizeof(learner->days[0]));
	learner->days[learner->n_days++] = (struct hour){start, bytes};
}

/* Returns the same time of day so many months earlier, on the last day of the month if that has no such day. */
static time_t months_before(time_t when, int months)
{
	struct tm date;
	int day;

	gmtime_r(&when, &date);
	day = date.tm_mday;
	date.tm_mon -= months;
	date.tm_mday = 1;
	for (when = timegm(&date); date.tm_mday < day; date.tm_mday++) {
		struct tm next = date;

		next.tm_mday++;
		if (timegm(&next), next.tm_mday == 1)
			break;
	}
	return timegm(&date);
}

/* Returns the largest need of the days in which that hold was so many months ago, and one more on either side. */
static struct hour largest_before(const struct wss_learner *learner, time_t start, int months)
{
	time_t from = months_before(start, months) - DAY_S,
	       end = months_before(start + (time_t)learner->hold_s, months) + DAY_S;
	struct hour largest = {0};

	for (size_t i = learner->n_days; i-- > 0 && learner->days[i].start > from - DAY_S;)
		if (learner->days[i].start < end && learner->days[i].bytes > largest.bytes)
			largest = learner->days[i];
	return largest;
}

/* Raises the size to what comes back each month or quarter. */
static void learned_take_calendar(const struct wss_learner *learner, time_t start,
				  struct wss_learned *learned)
{
	for (int months = 1; months <= 3; months += 2) {
		struct hour last = largest_before(learner, start, months),
			    before = largest_before(learner, start, 2 * months);
		uint64_t both = wss_u64_min(last.bytes, before.bytes);

		if (both <= learned->target_bytes)
			continue;
		learned->target_bytes = learned->recurring_bytes = both;
		learned->recurring_months = (unsigned)months;
		learned->recurring_day = last.start;
	}
}

/* Returns the size for a hold from start on by all hours that were added, of which there is one at least. */
static struct wss_learned size_of(struct wss_learner *learner, time_t start)
{
	struct wss_learned learned = {.known = true};
	bool is_long = learner->hold_s >= LONG_HOLD_S;
	double bytes;

	memcpy(learner->by_size, learner->hours, learner->n * sizeof(learner->hours[0]));
	qsort(learner->by_size, learner->n, sizeof(learner->by_size[0]), compare_sizes);
	bytes = is_long ? quantile(learner, LONG_LEVEL)
			: (1 - DAY_PART) * quantile(learner, SHORT_LEVEL) +
				  DAY_PART * largest_of_day(learner);
	learned.quantile_bytes = wss_u64_from_double(bytes);
	learned.target_bytes =
		with_margin(learned.quantile_bytes, is_long ? LONG_MARGIN : SHORT_MARGIN);
	if (is_long)
		learned_take_calendar(learner, start, &learned);
	return learned;
}

/* Begins a hold if the hour is the first one of its step. */
static void hold_begin(struct wss_learner *learner, time_t start)
{
	struct wss_learned learned;

	if (learner->n < JUDGED_HOURS_MIN ||
	    start / learner->step_s == learner->hours[learner->n - 1].start / learner->step_s)
		return;
	if (learner->n_holds == HOLDS_MAX)
		memmove(&learner->holds[0], &learner->holds[1],
			--learner->n_holds * sizeof(learner->holds[0]));
	learned = size_of(learner, start);
	learner->holds[learner->n_holds++] =
		(struct hold){.start = start, .size_bytes = learned.target_bytes};
}

void wss_learner_add(struct wss_learner *learner, time_t start, uint64_t bytes)
{
	if (learner->n && start <= learner->hours[learner->n - 1].start)
		return;
	hold_begin(learner, start);
	for (size_t i = learner->n_holds; i-- > 0;) {
		struct hold *hold = &learner->holds[i];

		if ((uint64_t)(start - hold->start) >= learner->hold_s)
			break;
		hold->hours++;
		hold->broken |= bytes > with_margin(hold->size_bytes, WSS_LEARNER_BROKEN);
	}
	if (learner->n == WSS_LEARNER_HOURS_MAX)
		memmove(&learner->hours[0], &learner->hours[1],
			--learner->n * sizeof(learner->hours[0]));
	learner->hours[learner->n++] = (struct hour){start, bytes};
	wss_learner_add_day(learner, start, bytes);
}

uint64_t wss_learner_above(const struct wss_learner *learner, uint64_t bytes)
{
	uint64_t n = 0;

	for (size_t i = 0; i < learner->n; i++)
		n += learner->hours[i].bytes > bytes;
	return n;
}

static void find_peaks(const struct wss_learner *learner, time_t start, struct wss_learned *learned)
{
	for (size_t i = 0; i < learner->n; i++) {
		const struct hour *hour = &learner->hours[i];

		if (hour->bytes >= learned->peak_bytes) {
			learned->peak_bytes = hour->bytes;
			learned->peak_start = hour->start;
		}
		if ((uint64_t)(start - hour->start) <= learner->hold_s)
			learned->recent_peak_bytes =
				wss_u64_max(learned->recent_peak_bytes, hour->bytes);
	}
	for (size_t i = 0;
	     i < learner->n_days && learner->days[i].start + DAY_S <= learner->hours[0].start; i++)
		if (learner->days[i].bytes >= learned->old_peak_bytes) {
			learned->old_peak_bytes = learner->days[i].bytes;
			learned->old_peak_day = learner->days[i].start;
		}
}

/*
 * High: the holds that were judged are four at least, also if those that overlap count once; at most one in 25 of them
 * was broken, and nothing on record would break a long one. Medium: at most one in ten was broken.
 */
static enum wss_confidence confidence_of(const struct wss_learner *learner,
					 const struct wss_learned *learned)
{
	uint64_t broken = learned->holds - learned->holds_kept;
	uint64_t span_s = learned->holds * (uint64_t)learner->step_s;
	bool is_enough =
		learned->holds >= 4 && span_s >= 3 * learner->hold_s + (uint64_t)learner->step_s;
	bool is_exceeded =
		learner->hold_s >= LONG_HOLD_S &&
		learned->peak_bytes > with_margin(learned->target_bytes, WSS_LEARNER_BROKEN);

	if (!learned->holds || 10 * broken > learned->holds)
		return WSS_CONFIDENCE_LOW;
	return is_enough && 25 * broken <= learned->holds && !is_exceeded ? WSS_CONFIDENCE_HIGH
									  : WSS_CONFIDENCE_MEDIUM;
}

struct wss_learned wss_learner_advise(struct wss_learner *learner, time_t start)
{
	struct wss_learned learned = {.known = false};

	if (learner->n >= WSS_LEARNER_HOURS_MIN)
		learned = size_of(learner, start);
	learned.hours = learner->n;
	learned.days = learner->n_days;
	if (!learned.known)
		return learned;
	find_peaks(learner, start, &learned);
	for (size_t i = 0; i < learner->n_holds; i++) {
		const struct hold *hold = &learner->holds[i];

		if ((uint64_t)(start - hold->start) < learner->hold_s)
			break;
		/* One that was hardly measured has proved nothing. */
		if (2 * hold->hours * HOUR_S < learner->hold_s)
			continue;
		learned.holds++;
		learned.holds_kept += !hold->broken;
	}
	learned.confidence = confidence_of(learner, &learned);
	learned.is_unprovable = 4 * learner->hold_s + (uint64_t)learner->step_s >
				(uint64_t)(WSS_LEARNER_HOURS_MAX - JUDGED_HOURS_MIN) * HOUR_S;
	return learned;
}
