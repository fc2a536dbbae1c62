/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/advice.h"

#include "base/number.h"

/* Hours from a Monday, 00:00 UTC, to the epoch, a Thursday. */
#define EPOCH_HOUR_OF_WEEK 72

const char *wss_advice_status_name(enum wss_advice_status status)
{
	static const char *const names[] = {"failed",	 "unknown", "too early",
					    "opted out", "no size", "ok"};

	return names[status];
}

const char *wss_advice_cold_status_name(enum wss_advice_cold_status status)
{
	static const char *const names[] = {
		[WSS_ADVICE_COLD_UNWATCHED] = "unwatched",
		[WSS_ADVICE_COLD_STALE] = "stale",
		[WSS_ADVICE_COLD_YOUNG] = "too early",
		[WSS_ADVICE_COLD_GAPS] = "gaps",
		[WSS_ADVICE_COLD_OK] = "ok",
	};

	return names[status];
}

time_t wss_advice_since(const struct wss_advice_options *options, time_t now)
{
	return now - (time_t)(options->span_ns / WSS_NS_PER_S);
}

static void advice_ask_what_if(struct wss_advice *advice, const struct wss_advice_options *options)
{
	const struct wss_summary *summary = &advice->series.summary;
	uint64_t bytes = options->what_if_bytes.value;

	advice->what_if.bytes = options->what_if_bytes;
	if (!options->what_if_bytes.known)
		return;
	advice->what_if.floor_bytes = wss_floor_bytes(&advice->floor, 0, 0);
	if (bytes < advice->what_if.floor_bytes)
		advice->what_if.exceeded = 1;
	else if (summary->samples)
		advice->what_if.exceeded = (double)wss_histogram_above(&summary->sizes, bytes) /
					   (double)summary->samples;
}

/* What the hours go to. */
struct advice_hours {
	struct wss_advice *advice;
	time_t now;
	struct wss_learner *learner; /* NULL: nothing is to be learned */
};

static void advice_on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	struct advice_hours *hours = opaque;
	uint64_t *of_week;

	/* An hour from the future was stored before the clock was set back. */
	if (start < 0 || start > hours->now || !max_bytes)
		return;
	of_week = &hours->advice
			   ->week_bytes[((uint64_t)start / WSS_HISTORY_HOUR + EPOCH_HOUR_OF_WEEK) %
					WSS_ADVICE_WEEK_HOURS];
	if (hours->now - start <= WSS_ADVICE_WEEK_SPAN_S)
		*of_week = wss_u64_max(*of_week, max_bytes);
	if (hours->learner)
		wss_learner_add(hours->learner, start, max_bytes);
}

static void advice_on_day(time_t start, uint64_t max_bytes, void *opaque)
{
	const struct advice_hours *hours = opaque;

	if (start < hours->now - (time_t)WSS_LEARNER_HOURS_MAX * WSS_HISTORY_HOUR && max_bytes)
		wss_learner_add_day(hours->learner, start, max_bytes);
}

/* Sizes a guest from the series in its advice, and from what was learned. */
static void advice_size(struct wss_advice *advice, const struct wss_advice_guest *guest)
{
	struct wss_sizing_state state = {.learned = &advice->learned};

	wss_sizing_apply_policy(&advice->rule, guest->policy, advice->series.maximum_bytes);
	if (guest->active) {
		advice->held_bytes = state.held_bytes = advice->series.rss_bytes;
		state.balloon_bytes = advice->series.balloon_bytes;
	}
	advice->assigned_bytes = state.maximum_bytes = advice->series.maximum_bytes;
	state.wss_bytes = advice->series.wss_bytes;
	state.in_use_bytes = advice->series.unreclaimable_bytes;
	state.reserve_bytes = advice->series.reserve_bytes;
	state.floor = advice->floor;
	wss_sizing_compute(&advice->series.summary, &advice->rule, guest->policy, &state,
			   &advice->sizing);
}

/* Makes the advice from a series, once all else was read. */
static void advice_finish(struct wss_advice *advice, const struct wss_advice_guest *guest,
			  const struct wss_advice_options *options)
{
	advice_size(advice, guest);
	advice->status = advice->sizing.confidence == WSS_CONFIDENCE_NONE ? WSS_ADVICE_TOO_EARLY
			 : advice->sizing.recommended_bytes.known	  ? WSS_ADVICE_OK
									  : WSS_ADVICE_NO_SIZE;
	advice_ask_what_if(advice, options);
}

static enum wss_advice_cold_status cold_status(const struct wss_history_coldness *newest)
{
	if (wss_clock_wall_seconds() - newest->time > WSS_ADVICE_COLD_MAX_S)
		return WSS_ADVICE_COLD_STALE;
	if (newest->report.as_of_ns - newest->report.since_ns < WSS_HISTORY_DAY * WSS_NS_PER_S)
		return WSS_ADVICE_COLD_YOUNG;
	return newest->report.ages[WSS_COLD_24H].whole ? WSS_ADVICE_COLD_OK : WSS_ADVICE_COLD_GAPS;
}

/* A guest that does not run has no memory that could be idle. */
static int advice_read_cold(struct wss_history *history, const struct wss_advice_guest *guest,
			    struct wss_advice_cold *cold, struct wss_error *err)
{
	const struct wss_cold_class *day = &cold->newest.report.ages[WSS_COLD_24H];
	int r;

	if (!guest->active)
		return 0;
	r = wss_history_coldness(history, guest->uuid, &cold->newest, err);
	if (r <= 0)
		return r;
	cold->status = cold_status(&cold->newest);
	if (cold->status == WSS_ADVICE_COLD_OK)
		cold->low_bytes = wss_amount_of(day->low_bytes);
	if (cold->status < WSS_ADVICE_COLD_YOUNG)
		return 0;
	cold->high_bytes = wss_amount_of(day->high_bytes);
	return 0;
}

/* Reads the hours of the series in the advice, and makes the advice. */
static int advice_read_hours(struct wss_history *history, const struct wss_advice_guest *guest,
			     const struct wss_advice_options *options, struct wss_advice *advice,
			     struct wss_error *err)
{
	time_t now = wss_clock_wall_seconds(),
	       from = now - (time_t)WSS_LEARNER_HOURS_MAX * WSS_HISTORY_HOUR;
	bool learn = options->learn && !guest->policy->headroom_percent.known;
	struct advice_hours hours = {.advice = advice, .now = now};
	int r = 0;

	if (learn) {
		hours.learner = wss_learner_new(options->hold_ns / WSS_NS_PER_S);
		if (!hours.learner)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		r = wss_history_days(history, &advice->series,
				     now - (time_t)WSS_LEARNER_DAYS_MAX * WSS_HISTORY_DAY,
				     advice_on_day, &hours, err);
	}
	if (r == 0)
		r = wss_history_hours(history, &advice->series, from, advice_on_hour, &hours, err);
	if (r == 0 && learn)
		advice->learned = wss_learner_advise(hours.learner, now - now % WSS_HISTORY_HOUR);
	if (r == 0)
		advice_finish(advice, guest, options);
	if (r == 0 && learn)
		advice->hours_above = wss_learner_above(
			hours.learner, advice->sizing.recommended_bytes.known
					       ? advice->sizing.recommended_bytes.value
					       : advice->sizing.need_bytes.value);
	wss_learner_free(hours.learner);
	return r;
}

/* Reads all that the history knows, but the series. */
static int advice_read_more(struct wss_history *history, const struct wss_advice_guest *guest,
			    time_t since, const struct wss_advice_options *options,
			    struct wss_advice *advice, struct wss_error *err)
{
	if (advice_read_cold(history, guest, &advice->cold, err) < 0)
		return -1;
	if (!advice->has_series)
		return 0;
	if (wss_history_overhead(history, guest->uuid, since, &advice->overhead, err) < 0 ||
	    wss_history_floor(history, guest->uuid, since, guest->reports_free, &advice->floor,
			      err) < 0)
		return -1;
	return advice_read_hours(history, guest, options, advice, err);
}

int wss_advice_read(struct wss_history *history, const struct wss_advice_guest *guest, time_t since,
		    const struct wss_advice_options *options, struct wss_advice *ret_advice,
		    struct wss_error *err)
{
	struct wss_advice advice = {
		.status = WSS_ADVICE_UNKNOWN, .rule = options->rule, .hold_ns = options->hold_ns};
	bool is_stored = history && guest->uuid && *guest->uuid;
	int r = 0;

	if (is_stored)
		r = wss_history_series(history, guest->uuid, since, WSS_HISTORY_CURVE,
				       &advice.series, err);
	if (r < 0)
		return -1;
	/* Windows that see only writes cannot show how much memory the guest needs for reading. */
	advice.only_writes = r == 1 && advice.series.observes == WSS_OBSERVES_WRITES;
	advice.has_series = r == 1 && !advice.only_writes;
	if (is_stored && advice_read_more(history, guest, since, options, &advice, err) < 0) {
		wss_advice_free(&advice);
		return -1;
	}
	if (!advice.has_series)
		wss_sizing_apply_policy(&advice.rule, guest->policy, (struct wss_amount){0});
	if (guest->policy->opt_out) {
		advice.status = WSS_ADVICE_OPTED_OUT;
		wss_advice_block(&advice);
	}
	*ret_advice = advice;
	return 0;
}

bool wss_advice_is_sized(const struct wss_advice *advice)
{
	return advice->sizing.recommended_bytes.known;
}

uint64_t wss_advice_floor_bytes(const struct wss_advice *advice)
{
	return wss_floor_bytes(&advice->floor, advice->sizing.base_bytes.value,
			       advice->rule.headroom_percent);
}

uint64_t wss_advice_beyond_bytes(const struct wss_advice *advice)
{
	const struct wss_sizing *sizing = &advice->sizing;

	return sizing->grown_bytes.known ? sizing->grown_bytes.value - sizing->base_bytes.value : 0;
}

void wss_advice_block(struct wss_advice *advice)
{
	advice->sizing.reclaimable_bytes.value = 0;
}

void wss_advice_free(struct wss_advice *advice)
{
	wss_summary_free(&advice->series.summary);
}
