/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A series of windows of one guest, and the handling of windows that fail. */
#include "measure/measure-private.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "measure/window-sample.h"

struct measure_series {
	struct wss_target *target;
	const struct wss_measure_options *options;
	const struct wss_measure_place *place;
	struct wss_measure *measure;	   /* NULL: not open */
	const struct wss_tracker_ops *ops; /* the method; NULL until it has been chosen */
	unsigned left;			   /* number of windows */
	uint64_t start_ns;		   /* actual or planned start of the window */
	bool goes_on;			   /* the window continues after its sample */
	wss_measure_emit emit;
	void *opaque;
};

static void describe_target(const struct measure_series *series, struct wss_sample *ret_sample)
{
	const struct wss_target *target = series->target;

	if (target->guest) {
		wss_window_describe(target->guest, series->ops, &series->options->window,
				    ret_sample);
		return;
	}
	*ret_sample = (struct wss_sample){.wall = wss_clock_wall_seconds()};
	ret_sample->requested_window_ns = series->options->window.track.window_ns;
	wss_text_fit(target->name, ret_sample->domain, sizeof(ret_sample->domain));
	snprintf(ret_sample->uuid, sizeof(ret_sample->uuid), "%s",
		 target->uuid ? target->uuid : "");
}

static void emit_failure(const struct measure_series *series, const struct wss_error *error,
			 bool last)
{
	struct wss_sample sample;

	describe_target(series, &sample);
	wss_sample_fail(&sample, error);
	series->emit(&sample, last, series->opaque);
}

/* Reports a window that has failed. Returns true if no other window follows. */
static bool series_fail(struct measure_series *series, const struct wss_error *error)
{
	struct wss_deadline *deadline = &series->target->deadline;
	bool last;

	wss_deadline_pause(deadline);
	if (error->code == WSS_ERR_INTERRUPTED)
		return true;
	series->left--;
	last = wss_measure_ends_series(error) || !series->left || series->options->cumulative ||
	       series->options->observer.until_ns || wss_deadline_spent(deadline);
	/* Between two windows nothing stays attached. */
	if (!last)
		wss_measure_rest(series->measure);
	emit_failure(series, error, last);
	return last;
}

/* Returns the first future time that lies a multiple of step_ns after last_ns. */
static uint64_t next_moment(uint64_t last_ns, uint64_t step_ns)
{
	uint64_t now_ns = wss_clock_now_ns(), steps = 1;

	if (now_ns > last_ns && step_ns)
		steps = wss_u64_max((now_ns - last_ns + step_ns - 1) / step_ns, 1);
	return last_ns + steps * step_ns;
}

/*
 * Polls until the report is due. If the window begins again meanwhile, the report moves to the
 * same offset in the new window.
 */
static int wait_for_report(struct measure_series *series, uint64_t *report_ns,
			   struct wss_error *err)
{
	struct wss_window *window = wss_measure_window(series->measure);
	int r;

	while ((r = wss_measure_poll(series->measure, *report_ns, err)) == 1) {
		series->start_ns = wss_window_start_ns(window);
		*report_ns = wss_u64_min(series->start_ns + series->options->interval_ns,
					 wss_window_end_ns(window));
	}
	return r;
}

/*
 * If reading takes longer than the interval, the reports that were due meanwhile are skipped:
 * the window ends in time, and no figure is repeated.
 */
static int report_growth(struct measure_series *series, struct wss_error *err)
{
	struct wss_window *window = wss_measure_window(series->measure);
	uint64_t step_ns = series->options->interval_ns;
	uint64_t report_ns = wss_u64_min(series->start_ns + step_ns, wss_window_end_ns(window));
	struct wss_sample sample;

	for (;;) {
		if (wait_for_report(series, &report_ns, err) < 0)
			return -1;
		if (report_ns >= wss_window_end_ns(window))
			return 0;
		if (wss_measure_read(series->measure, &sample, err) < 0)
			return -1;
		series->emit(&sample, false, series->opaque);
		report_ns = wss_u64_min(next_moment(report_ns, step_ns), wss_window_end_ns(window));
	}
}

/* Takes one window and its sample. Returns -1 with err set. */
static int take_window(struct measure_series *series, struct wss_sample *ret_sample,
		       struct wss_error *err)
{
	struct wss_window *window = wss_measure_window(series->measure);
	uint64_t end_ns = UINT64_MAX;

	if (wss_measure_arm(series->measure, UINT64_MAX, err) < 0)
		return -1;
	series->start_ns = wss_window_start_ns(window);
	if (series->options->cumulative && report_growth(series, err) < 0)
		return -1;
	if (wait_for_report(series, &end_ns, err) < 0 ||
	    wss_measure_read(series->measure, ret_sample, err) < 0)
		return -1;
	series->goes_on = wss_measure_may_go_on(series->measure);
	if (!series->goes_on)
		wss_measure_settle(series->measure, ret_sample);
	return 0;
}

/* Takes one window of the series. Returns true if no other window follows. */
static bool series_window(struct measure_series *series)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_sample sample;

	if (take_window(series, &sample, &error) < 0) {
		/* The interval runs from start to start, after a failed window as well. */
		wss_gate_leave(series->place ? series->place->gate : NULL,
			       series->place ? series->place->ticket : NULL);
		return series_fail(series, &error);
	}
	series->left--;
	if (series->options->observer.until_ns && !series->goes_on)
		series->left = 0;
	series->emit(&sample, !series->left, series->opaque);
	return !series->left;
}

/* Waits for the next window while this one goes on. Returns true if there is none. */
static bool series_go_on(struct measure_series *series)
{
	struct wss_error error = WSS_ERROR_INIT;
	int r = wss_measure_go_on(series->measure, &error);

	return r < 0 ? series_fail(series, &error) : r > 0;
}

static void series_run(struct measure_series *series)
{
	const struct wss_cancel *cancel = &series->target->cancel;
	struct wss_error error = WSS_ERROR_INIT;
	uint64_t next_ns = wss_clock_now_ns();

	if (wss_measure_open(series->target, series->options, series->place, &series->measure,
			     &series->ops, &error) < 0) {
		if (error.code != WSS_ERR_INTERRUPTED)
			emit_failure(series, &error, true);
		return;
	}
	do {
		series->start_ns = next_ns;
		if (wss_cancel_sleep_until_ns(cancel, next_ns) < 0 || series_window(series))
			break;
		if (series->goes_on) {
			if (series_go_on(series))
				break;
			next_ns = wss_clock_now_ns();
			continue;
		}
		/*
		 * A late window delays the following ones; they never move closer together to
		 * catch up.
		 */
		next_ns = wss_u64_max(series->start_ns + series->options->interval_ns,
				      wss_clock_now_ns());
	} while (!wss_cancel_requested(cancel));
	wss_measure_close(series->measure);
}

/* --- windows of two granularities --- */

struct pair {
	struct wss_sample native, fine;
	wss_measure_emit emit;
	void *opaque;
};

static void keep_native(const struct wss_sample *sample, bool last, void *opaque)
{
	(void)last;
	((struct pair *)opaque)->native = *sample;
}

static void keep_fine(const struct wss_sample *sample, bool last, void *opaque)
{
	(void)last;
	((struct pair *)opaque)->fine = *sample;
}

/* Emits the sample of the 4 KiB window, with the figures of the native one added. */
static void pair_join(struct pair *pair)
{
	if (wss_sample_measured(&pair->fine) && wss_sample_measured(&pair->native))
		wss_sample_set_native(&pair->fine, &pair->native);
	else if (wss_sample_measured(&pair->fine))
		wss_sample_degrade(&pair->fine, "native granularity is absent: %s",
				   pair->native.error.text);
}

static void measure_one(struct wss_target *target, const struct wss_measure_options *options,
			enum wss_granularity granularity, const struct wss_measure_place *place,
			wss_measure_emit emit, void *opaque)
{
	struct wss_measure_options one = *options;
	struct measure_series series = {.target = target,
					.options = &one,
					.place = place,
					.left = 1,
					.emit = emit,
					.opaque = opaque};

	one.window.track.granularity = granularity;
	series_run(&series);
}

/*
 * The native window comes first, because the dirty log stays on for a moment after the other
 * one.
 */
static void run_pairs(struct wss_target *target, const struct wss_measure_options *options,
		      const struct wss_measure_place *place, wss_measure_emit emit, void *opaque)
{
	uint64_t next_ns = wss_clock_now_ns();
	struct pair pair;

	for (unsigned left = options->count; left; left--) {
		bool last;

		if (wss_cancel_sleep_until_ns(&target->cancel, next_ns) < 0)
			return;
		next_ns = wss_u64_max(next_ns + options->interval_ns, wss_clock_now_ns());
		measure_one(target, options, WSS_GRANULARITY_NATIVE, place, keep_native, &pair);
		if (!wss_cancel_requested(&target->cancel))
			measure_one(target, options, WSS_GRANULARITY_4K, place, keep_fine, &pair);
		if (wss_cancel_requested(&target->cancel))
			return;
		pair_join(&pair);
		last = left == 1 || wss_measure_ends_series(&pair.fine.error);
		emit(&pair.fine, last, opaque);
		if (last)
			return;
	}
}

void wss_measure_run(struct wss_target *target, const struct wss_measure_options *options,
		     const struct wss_measure_place *place, wss_measure_emit emit, void *opaque)
{
	struct measure_series series = {.target = target,
					.options = options,
					.place = place,
					.left = options->count,
					.emit = emit,
					.opaque = opaque};
	struct wss_error error = WSS_ERROR_INIT;

	if (!target->guest) {
		emit_failure(&series, &target->error, true);
	} else if (options->methods) {
		if (wss_measure_by_each(target, options, place, emit, opaque, &error) < 0)
			emit_failure(&series, &error, true);
	} else if (options->both) {
		run_pairs(target, options, place, emit, opaque);
	} else {
		series_run(&series);
	}
}
