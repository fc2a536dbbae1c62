/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/backtest.h"

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
	static const char *const names[] = {"recommended", "peak + 15%", "p90 24h + 15%",
					    "fixed"};

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

static int ratio_keep(struct wss_backtest_score *score, double ratio)
{
	if (score->n_ratios == score->room) {
		size_t room = score->room ? 2 * score->room : 1024;
		float *ratios = reallocarray(score->ratios, room, sizeof(*ratios));

		if (!ratios)
			return -1;
		score->ratios = ratios;
		score->room = room;
	}
	score->ratios[score->n_ratios++] = (float)ratio;
	return 0;
}

/* Counts an hour; last: the size an hour ago, 0: none. */
static void score_add(struct wss_backtest_score *score, uint64_t need, uint64_t size,
		      uint64_t last)
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
	score->slacks[(size_t)ceil(slack * (WSS_BACKTEST_CLASSES - 1) - 1e-9)]++;
}

/* What the players know of one guest. */
struct replay {
	struct wss_learner *learner;
	struct vpa vpa;
	uint64_t peak;
	bool alone; /* no rivals */
	uint64_t size; /* the recommended one */
	uint64_t last[WSS_BACKTEST_PLAYERS];
};

static int hour_judge(struct wss_backtest *backtest, struct replay *replay,
		      const struct wss_backtest_hour *hour, struct wss_backtest_moment *moment)
{
	double bases[WSS_BACKTEST_PLAYERS] = {
		[WSS_BACKTEST_ADVICE] = (double)replay->size,
		[WSS_BACKTEST_PEAK] = (double)replay->peak,
		[WSS_BACKTEST_VPA] = replay->alone ? 0 : vpa_size(&replay->vpa, hour->start),
		[WSS_BACKTEST_FIXED] = (double)hour->assigned_bytes,
	};

	moment->start = hour->start;
	moment->need_bytes = hour->need_bytes;
	for (int i = 0; i < (replay->alone ? 1 : WSS_BACKTEST_PLAYERS); i++) {
		bool margin = i == WSS_BACKTEST_PEAK || i == WSS_BACKTEST_VPA;
		uint64_t size =
			wss_u64_from_double(bases[i] * (margin ? 1 + RIVAL_MARGIN : 1));

		moment->sizes[i] = size;
		if (!size)
			continue;
		score_add(&backtest->scores[i], hour->need_bytes, size, replay->last[i]);
		if (!replay->alone &&
		    ratio_keep(&backtest->scores[i],
			       (double)hour->need_bytes / fmax(bases[i], 1)) < 0)
			return -1;
		replay->last[i] = size;
	}
	backtest->hours++;
	return 0;
}

static void replay_add(struct replay *replay, const struct wss_backtest_hour *hour)
{
	wss_learner_add(replay->learner, hour->start, hour->need_bytes);
	if (!replay->alone)
		vpa_add(&replay->vpa, hour->start, hour->need_bytes);
	replay->peak = wss_u64_max(replay->peak, hour->need_bytes);
}

/* Returns the recommended size; 0: there is none yet. */
static uint64_t replay_advise(const struct replay *replay, const struct wss_backtest_options *options,
			      struct wss_backtest_moment *moment, time_t start)
{
	moment->advice = wss_learner_advise(replay->learner, start);
	if (!moment->advice.known)
		return 0;
	return options->size_at ? options->size_at(&moment->advice, start, options->opaque)
				: moment->advice.target_bytes;
}

int wss_backtest_add(struct wss_backtest *backtest, const struct wss_backtest_hour *hours,
		     size_t n, time_t until, const struct wss_backtest_options *options,
		     wss_backtest_on_moment on_moment, void *opaque)
{
	time_t test = until - (time_t)options->test_s, train = test - (time_t)options->train_s;
	struct replay replay = {.learner = wss_learner_new(options->only),
				.alone = options->alone};
	uint64_t before = backtest->hours;
	int r = replay.learner ? 0 : -1;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct wss_backtest_moment moment = {.start = 0};

		if (hours[i].start < train || hours[i].start >= until || !hours[i].need_bytes)
			continue;
		if (hours[i].start >= test) {
			replay.size = replay_advise(&replay, options, &moment, hours[i].start);
			if (replay.size)
				r = hour_judge(backtest, &replay, &hours[i], &moment);
			else
				backtest->early_hours++;
		}
		if (on_moment && moment.start)
			on_moment(&moment, opaque);
		replay_add(&replay, &hours[i]);
	}
	backtest->guests += backtest->hours > before;
	wss_learner_free(replay.learner);
	return r;
}

void wss_backtest_free(struct wss_backtest *backtest)
{
	for (int i = 0; i < WSS_BACKTEST_PLAYERS; i++)
		free(backtest->scores[i].ratios);
	*backtest = (struct wss_backtest){0};
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

double wss_backtest_slack_percentile(const struct wss_backtest_score *score, double p)
{
	uint64_t rank = (uint64_t)ceil(p * (double)score->hours), seen = 0;

	for (size_t i = 0; i < WSS_BACKTEST_CLASSES; i++) {
		seen += score->slacks[i];
		if (seen && seen >= rank)
			return (double)i / (WSS_BACKTEST_CLASSES - 1);
	}
	return 0;
}

static int ratios_compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

bool wss_backtest_slack_at(struct wss_backtest_score *score, double violations,
			   double *ret_slack, double *ret_margin)
{
	size_t n = score->n_ratios, above;
	double factor, sum = 0;

	if (!n)
		return false;
	qsort(score->ratios, n, sizeof(*score->ratios), ratios_compare);
	above = (size_t)(violations * (double)n + 1e-9);
	if (above >= n)
		above = n - 1;
	factor = score->ratios[n - 1 - above];
	for (size_t i = 0; i < n - above; i++)
		sum += 1 - score->ratios[i] / factor;
	*ret_slack = sum / (double)n;
	*ret_margin = factor - 1;
	return true;
}
