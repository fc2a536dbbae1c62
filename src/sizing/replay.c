/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation. The figures of an hour come from the summary of the span before it, as in recommend.
 * Such a summary is the sum of a week's hours, so the sums of whole days are made once. What does not
 * depend on what was learned is kept for each hour.
 */
#include "sizing/replay.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"

struct replay_hour {
	struct wss_summary summary;
	struct wss_amount maximum_bytes; /* of the guest's memory, by the newest sample so far */
	/* Of the span before the hour, once known. */
	bool known;
	struct wss_sizing sizing;
};

/* The hours of a day, at indexes first to end - 1. */
struct replay_day {
	size_t first, end;
	struct wss_summary summary;
};

struct wss_replay {
	const struct wss_advice_options *options;
	const struct wss_policy *policy;
	size_t n, room;
	struct replay_hour *list;
	struct wss_backtest_hour *hours; /* n of them */
	size_t n_old_days;
	struct old_day {
		time_t start;
		uint64_t bytes;
	} old_days[WSS_LEARNER_DAYS_MAX]; /* the last ones that begin before all hours */
	size_t n_days, days_room;
	struct replay_day *days;
};

/* Returns the index of the first hour that does not start before that time. */
static size_t replay_find(const struct wss_replay *replay, time_t start)
{
	size_t low = 0, high = replay->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (replay->hours[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* --- reading --- */

static int replay_add_to_day(struct wss_replay *replay, const struct wss_summary *summary)
{
	size_t at = replay->n, last = replay->n_days - 1;
	time_t day = replay->hours[at].start / WSS_HISTORY_DAY;

	if (!replay->n_days ||
	    replay->hours[replay->days[last].first].start / WSS_HISTORY_DAY != day) {
		if (replay->n_days == replay->days_room) {
			size_t room = replay->days_room ? 2 * replay->days_room : 64;
			struct replay_day *days = reallocarray(replay->days, room, sizeof(*days));

			if (!days)
				return -1;
			replay->days = days;
			replay->days_room = room;
		}
		last = replay->n_days++;
		replay->days[last] = (struct replay_day){.first = at};
	}
	replay->days[last].end = at + 1;
	return wss_summary_merge(&replay->days[last].summary, summary);
}

static int replay_on_summary(time_t start, const struct wss_summary *summary, void *opaque)
{
	struct wss_replay *replay = opaque;

	if (replay->n == replay->room) {
		size_t room = replay->room ? 2 * replay->room : 1024;
		struct replay_hour *list = reallocarray(replay->list, room, sizeof(*list));
		struct wss_backtest_hour *hours;

		if (!list)
			return -1;
		replay->list = list;
		hours = reallocarray(replay->hours, room, sizeof(*hours));
		if (!hours)
			return -1;
		replay->hours = hours;
		replay->room = room;
	}
	replay->hours[replay->n] = (struct wss_backtest_hour){
		.start = start,
		/* Degraded windows alone do not show what the guest needed. */
		.need_bytes = summary->samples ? wss_u64_max(summary->max_bytes, 1) : 0,
	};
	replay->list[replay->n] = (struct replay_hour){.known = false};
	if (wss_summary_merge(&replay->list[replay->n].summary, summary) < 0 ||
	    replay_add_to_day(replay, summary) < 0) {
		wss_summary_free(&replay->list[replay->n].summary);
		return -1;
	}
	replay->n++;
	return 0;
}

static void replay_on_sample(const struct wss_sample *sample, void *opaque)
{
	struct wss_replay *replay = opaque;
	struct wss_amount maximum = sample->memory.maximum_bytes;
	time_t start = sample->wall - sample->wall % WSS_HISTORY_HOUR;
	size_t at = replay_find(replay, start);

	if (!maximum.known || at == replay->n || replay->hours[at].start != start)
		return;
	replay->hours[at].assigned_bytes =
		wss_u64_max(replay->hours[at].assigned_bytes, maximum.value);
	replay->list[at].maximum_bytes = maximum;
}

static void replay_on_day(time_t start, uint64_t max_bytes, void *opaque)
{
	struct wss_replay *replay = opaque;

	if (!max_bytes || (replay->n && start >= replay->hours[0].start))
		return;
	if (replay->n_old_days == WSS_LEARNER_DAYS_MAX)
		memmove(&replay->old_days[0], &replay->old_days[1],
			--replay->n_old_days * sizeof(replay->old_days[0]));
	replay->old_days[replay->n_old_days++] = (struct old_day){start, max_bytes};
}

void wss_replay_begin(struct wss_learner *learner, time_t start, void *opaque)
{
	const struct wss_replay *replay = opaque;

	for (size_t i = 0; i < replay->n_old_days && replay->old_days[i].start < start; i++)
		wss_learner_add_day(learner, replay->old_days[i].start, replay->old_days[i].bytes);
}

/*
 * Finds how much memory the guest had in each hour. Samples are kept for less time than hours: those before the
 * first sample had what it had then.
 */
static int replay_read_maxima(struct wss_replay *replay, struct wss_history *history,
			      const char *uuid, struct wss_amount newest, struct wss_error *err)
{
	struct wss_amount maximum = newest;

	if (wss_history_samples(history, uuid, 0, wss_clock_wall_seconds(), replay_on_sample,
				replay, err) < 0)
		return -1;
	for (size_t i = replay->n; i > 0; i--)
		if (replay->list[i - 1].maximum_bytes.known)
			maximum = replay->list[i - 1].maximum_bytes;
	for (size_t i = 0; i < replay->n; i++) {
		if (replay->list[i].maximum_bytes.known)
			maximum = replay->list[i].maximum_bytes;
		replay->list[i].maximum_bytes = maximum;
		replay->hours[i].assigned_bytes =
			wss_u64_max(replay->hours[i].assigned_bytes, maximum.value);
	}
	return 0;
}

int wss_replay_read(struct wss_history *history, const char *uuid,
		    const struct wss_advice_options *options, const struct wss_policy *policy,
		    struct wss_replay **ret_replay, struct wss_error *err)
{
	struct wss_history_series series;
	struct wss_replay *replay;
	int r = wss_history_series(history, uuid, 0, 0, &series, err);

	if (r <= 0)
		return r;
	wss_summary_free(&series.summary);
	if (series.observes == WSS_OBSERVES_WRITES)
		return 0;
	replay = calloc(1, sizeof(*replay));
	if (!replay)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	replay->options = options;
	replay->policy = policy;
	if (wss_history_hour_summaries(history, uuid, replay_on_summary, replay, err) < 0 ||
	    wss_history_days(history, &series, 0, replay_on_day, replay, err) < 0 ||
	    replay_read_maxima(replay, history, uuid, series.maximum_bytes, err) < 0) {
		wss_replay_free(replay);
		return -1;
	}
	*ret_replay = replay;
	return 1;
}

void wss_replay_free(struct wss_replay *replay)
{
	if (!replay)
		return;
	for (size_t i = 0; i < replay->n; i++)
		wss_summary_free(&replay->list[i].summary);
	for (size_t i = 0; i < replay->n_days; i++)
		wss_summary_free(&replay->days[i].summary);
	free(replay->list);
	free(replay->hours);
	free(replay->days);
	free(replay);
}

const struct wss_backtest_hour *wss_replay_hours(const struct wss_replay *replay, size_t *ret_n)
{
	*ret_n = replay->n;
	return replay->hours;
}

time_t wss_replay_end(const struct wss_replay *replay)
{
	return replay->n ? replay->hours[replay->n - 1].start + WSS_HISTORY_HOUR : 0;
}

/* --- the size at an hour --- */

/* Adds up the hours at indexes first to end - 1. */
static int replay_sum(const struct wss_replay *replay, size_t first, size_t end,
		      struct wss_summary *sum)
{
	int r = 0;

	for (size_t d = 0; r == 0 && d < replay->n_days; d++) {
		const struct replay_day *day = &replay->days[d];

		if (day->first >= first && day->end <= end) {
			r = wss_summary_merge(sum, &day->summary);
			continue;
		}
		for (size_t i = day->first; r == 0 && i < day->end; i++)
			if (i >= first && i < end)
				r = wss_summary_merge(sum, &replay->list[i].summary);
	}
	return r;
}

/* Returns the guest's memory as it was known at the start of the hour. */
static struct wss_amount replay_had_bytes(const struct wss_replay *replay, size_t at)
{
	return replay->list[at ? at - 1 : 0].maximum_bytes;
}

static int replay_compute(const struct wss_replay *replay, size_t at, struct replay_hour *hour)
{
	const struct wss_advice_options *options = replay->options;
	time_t since = wss_advice_since(options, replay->hours[at].start);
	struct wss_sizing_state state = {.maximum_bytes = replay_had_bytes(replay, at)};
	struct wss_summary sum = {0};
	int r = replay_sum(replay, replay_find(replay, since), at, &sum);

	if (r == 0) {
		wss_sizing_compute(&sum, &options->rule, replay->policy, &state, &hour->sizing);
		hour->known = true;
	}
	wss_summary_free(&sum);
	return r;
}

uint64_t wss_replay_size(const struct wss_learned *learned, time_t start, void *opaque)
{
	struct wss_replay *replay = opaque;
	struct wss_sizing_rule rule = replay->options->rule;
	size_t at = replay_find(replay, start);
	struct replay_hour *hour = &replay->list[at];
	struct wss_sizing_state state = {.learned = learned};
	struct wss_sizing sizing;

	if (at == replay->n || (!hour->known && replay_compute(replay, at, hour) < 0))
		return 0;
	wss_sizing_apply_policy(&rule, replay->policy, replay_had_bytes(replay, at));
	if (!replay->options->learn || replay->policy->headroom_percent.known)
		state.learned = NULL;
	sizing = hour->sizing;
	wss_sizing_recommend(&sizing, &rule, replay->policy, &state);
	return sizing.recommended_bytes.known ? sizing.recommended_bytes.value : 0;
}
