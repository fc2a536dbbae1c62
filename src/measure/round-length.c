/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/clock.h"
#include "measure/round.h"

/* Intended longest round, if its windows allow that. */
#define ROUND_NS (55 * WSS_NS_PER_S)

static uint64_t min_ns(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t wss_round_stagger_ns(const struct wss_measure_options *measure, size_t n)
{
	uint64_t window_ns = measure->window.track.window_ns, spread_ns = window_ns / 2;
	uint64_t stagger_ns;

	if (window_ns < ROUND_NS)
		spread_ns = max_ns(spread_ns, ROUND_NS - window_ns);
	stagger_ns = spread_ns / (n > 1 ? n - 1 : 1);
	/* No further apart than the windows of a series. */
	if (measure->count > 1 && !measure->cumulative && n)
		stagger_ns = min_ns(stagger_ns, measure->interval_ns / n);
	return min_ns(stagger_ns, WSS_ROUND_STAGGER_NS);
}

/* At most; some methods cannot measure some guests. */
static uint64_t windows_of_sample(const struct wss_measure_options *measure)
{
	size_t n = measure->both ? 2 : 1;

	for (size_t i = 0; measure->methods && measure->methods[i]; i++)
		n++;
	return n;
}

uint64_t wss_round_length_ns(const struct wss_round_options *options, size_t n)
{
	const struct wss_measure_options *measure = &options->measure;
	uint64_t stagger_ns = wss_round_stagger_ns(measure, n), jobs = options->jobs;
	uint64_t one_ns = measure->window.track.window_ns * windows_of_sample(measure);
	uint64_t count = measure->cumulative ? 1 : measure->count;
	uint64_t all_ns, series_ns, armings_ns;

	if (!n)
		return 0;
	/* All windows, `jobs` at a time; */
	all_ns = (count * n + jobs - 1) / jobs * one_ns + (n - 1) % jobs * stagger_ns;
	/* the last series to begin in the first batch; */
	series_ns =
		(min_ns(n, jobs) - 1) * stagger_ns + one_ns + (count - 1) * measure->interval_ns;
	/* the last guest, if only armings keep it waiting. */
	armings_ns = (n - 1) * stagger_ns + one_ns;
	return max_ns(all_ns, max_ns(series_ns, armings_ns));
}
