/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/backtest.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"

#define HOUR 3600
#define RIVAL_MARGIN 0.15
#define VPA_LEVEL 0.9
#define VPA_HALF_LIFE_S (24.0 * HOUR)
/* Hours whose weight is below a thousandth of the newest's count for nothing. */
#define VPA_HOURS 240
#define WEEK_H 168.0

const char *wss_backtest_player_name(enum wss_backtest_player player)
{
	static const char *const names[] = {"recommended", "peak + 15%", "p90 24h + 15%", "fixed"};

	return names[player];
}

/* The newest hours, sorted by size. */
struct vpa {
	size_t n;
	struct vpa_hour {
		uint64_t bytes;
		time_t start;
	} sorted[VPA_HOURS];
};

static void vpa_add(struct vpa *vpa, time_t start, uint64_t bytes)
{
	size_t at, oldest = 0;

	if (vpa->n == VPA_HOURS) {
		for (size_t i = 1; i < vpa->n; i++)
			if (vpa->sorted[i].start < vpa->sorted[oldest].start)
				oldest = i;
		vpa->n--;
		for (size_t i = oldest; i < vpa->n; i++)
			vpa->sorted[i] = vpa->sorted[i + 1];
	}
	for (at = vpa->n; at > 0 && vpa->sorted[at - 1].bytes > bytes; at--)
		vpa->sorted[at] = vpa->sorted[at - 1];
	vpa->sorted[at] = (struct vpa_hour){bytes, start};
	vpa->n++;
}

static double vpa_size(const struct vpa *vpa, time_t now)
{
	double weights[VPA_HOURS], total = 0, below = 0;

	for (size_t i = 0; i < vpa->n; i++) {
		weights[i] = exp2(-(double)(now - vpa->sorted[i].start) / VPA_HALF_LIFE_S);
		total += weights[i];
	}
	for (size_t i = 0; i < vpa->n; i++) {
		below += weights[i];
		if (below >= VPA_LEVEL * total)
			return (double)vpa->sorted[i].bytes;
	}
	return vpa->n ? (double)vpa->sorted[vpa->n - 1].bytes : 0;
}

/* Counts an hour; last: the size an hour ago, 0: none. */
static void score_add(struct wss_backtest_score *score, uint64_t need, uint64_t size, uint64_t last)
{
	double slack = 0, above;

	score->hours++;
	score->changes += last && size != last;
	if (need > size) {
		above = size ? (double)(need - size) / (double)size : 1;
		score->violations++;
		score->above_sum += above;
		score->above_max = fmax(score->above_max, above);
	} else {
		slack = (double)(size - need) / (double)size;
	}
	score->slack_sum += slack;
}

/* What the players know of one guest. */
struct replay {
	struct wss_learner *learner;
	struct vpa vpa;
	uint64_t peak;
	uint64_t size;		    /* the recommended one */
	time_t until;		    /* it is kept so long */
	struct wss_learned learned; /* that it is from */
	uint64_t last[WSS_BACKTEST_PLAYERS];
};

static void hour_judge(struct wss_backtest *backtest, struct replay *replay,
		       const struct wss_backtest_hour *hour, struct wss_backtest_moment *moment)
{
	double bases[WSS_BACKTEST_PLAYERS] = {
		[WSS_BACKTEST_ADVICE] = (double)replay->size,
		[WSS_BACKTEST_PEAK] = (double)replay->peak,
		[WSS_BACKTEST_VPA] = vpa_size(&replay->vpa, hour->start),
		[WSS_BACKTEST_FIXED] = (double)hour->assigned_bytes,
	};

	moment->start = hour->start;
	moment->need_bytes = hour->need_bytes;
	for (int i = 0; i < WSS_BACKTEST_PLAYERS; i++) {
		bool margin = i == WSS_BACKTEST_PEAK || i == WSS_BACKTEST_VPA;
		uint64_t size = wss_u64_from_double(bases[i] * (margin ? 1 + RIVAL_MARGIN : 1));

		moment->sizes[i] = size;
		if (!size)
			continue;
		score_add(&backtest->scores[i], hour->need_bytes, size, replay->last[i]);
		replay->last[i] = size;
	}
	backtest->hours++;
}

/* Chooses the recommended size for the next hold if the last one is over; 0: there is none yet. */
static void replay_advise(struct replay *replay, const struct wss_backtest_options *options,
			  time_t start)
{
	if (replay->size && start < replay->until)
		return;
	replay->learned = wss_learner_advise(replay->learner, start);
	replay->until = start + (time_t)options->hold_s;
	replay->size = !replay->learned.known ? 0
		       : options->size_at
			       ? options->size_at(&replay->learned, start, options->opaque)
			       : replay->learned.target_bytes;
}

int wss_backtest_add(struct wss_backtest *backtest, const struct wss_backtest_hour *hours, size_t n,
		     time_t until, const struct wss_backtest_options *options,
		     wss_backtest_on_moment on_moment, void *opaque)
{
	time_t test = until - (time_t)options->test_s, train = test - (time_t)options->train_s;
	struct replay replay = {.learner = wss_learner_new(options->hold_s)};
	uint64_t before = backtest->hours;
	bool begun = false;

	if (!replay.learner)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct wss_backtest_moment moment = {.start = 0};

		if (hours[i].start < train || hours[i].start >= until || !hours[i].need_bytes)
			continue;
		if (options->begin && !begun)
			options->begin(replay.learner, hours[i].start, options->opaque);
		begun = true;
		if (hours[i].start >= test) {
			replay_advise(&replay, options, hours[i].start);
			moment.advice = replay.learned;
			if (replay.size)
				hour_judge(backtest, &replay, &hours[i], &moment);
			else
				backtest->early_hours++;
		}
		if (on_moment && moment.start)
			on_moment(&moment, opaque);
		wss_learner_add(replay.learner, hours[i].start, hours[i].need_bytes);
		vpa_add(&replay.vpa, hours[i].start, hours[i].need_bytes);
		replay.peak = wss_u64_max(replay.peak, hours[i].need_bytes);
	}
	backtest->guests += backtest->hours > before;
	wss_learner_free(replay.learner);
	return 0;
}

double wss_backtest_slack(const struct wss_backtest_score *score)
{
	return score->hours ? score->slack_sum / (double)score->hours : 0;
}

double wss_backtest_violations(const struct wss_backtest_score *score)
{
	return score->hours ? (double)score->violations / (double)score->hours : 0;
}

double wss_backtest_above(const struct wss_backtest_score *score)
{
	return score->violations ? score->above_sum / (double)score->violations : 0;
}

double wss_backtest_changes_per_week(const struct wss_backtest_score *score)
{
	return score->hours ? (double)score->changes / (double)score->hours * WEEK_H : 0;
}
