/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest by each method that can measure it, one window after the other, and why their figures differ. The first
 * method has a second window at the end: what its two figures differ by is the guest's own change, or the method's
 * spread, and says nothing about the others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "measure/measure-private.h"

struct turn {
	struct wss_sample *samples;
	size_t n;
};

static void turn_keep(const struct wss_sample *sample, bool last, void *opaque)
{
	struct turn *turn = opaque;

	(void)last;
	wss_sample_copy(&turn->samples[turn->n++], sample);
}

static uint64_t differ_by(const struct wss_sample *a, const struct wss_sample *b)
{
	return a->wss_bytes.value > b->wss_bytes.value ? a->wss_bytes.value - b->wss_bytes.value
						       : b->wss_bytes.value - a->wss_bytes.value;
}

static bool bounds_meet(const struct wss_sample *a, const struct wss_sample *b)
{
	return a->low_bytes.value <= b->high_bytes.value &&
	       b->low_bytes.value <= a->high_bytes.value;
}

/* Notes in ret_sample how another method's figure compares with the first one's, and why it differs. */
static void compare_note(const struct wss_sample *first, const struct wss_sample *again,
			 const struct wss_sample *other, struct wss_sample *ret_sample)
{
	uint64_t apart_bytes = differ_by(first, other);
	char figures[2][16], pages[2][16];

	wss_size_format(other->wss_bytes.value, figures[0], sizeof(figures[0]));
	wss_size_format(first->wss_bytes.value, figures[1], sizeof(figures[1]));
	wss_size_format(other->granularity_bytes.value, pages[0], sizeof(pages[0]));
	wss_size_format(first->granularity_bytes.value, pages[1], sizeof(pages[1]));
	if (bounds_meet(first, other)) {
		wss_sample_note(ret_sample, "%s and %s agree within their bounds: %s and %s",
				other->method, first->method, figures[0], figures[1]);
	} else if (wss_sample_measured(again) && apart_bytes <= differ_by(first, again)) {
		wss_sample_note(
			ret_sample,
			"%s found %s and %s %s: no further apart than the two windows of %s, between which the guest changed",
			other->method, figures[0], first->method, figures[1], first->method);
	} else if (other->granularity_bytes.value != first->granularity_bytes.value) {
		wss_sample_note(
			ret_sample,
			"%s found %s and %s %s: the former counts pages of %s, the latter of %s",
			other->method, figures[0], first->method, figures[1], pages[0], pages[1]);
	} else {
		wss_sample_note(ret_sample, "%s found %s and %s %s%s", other->method, figures[0],
				first->method, figures[1],
				other->n_notes ? ", for these reasons:"
					       : ", and nothing known explains it");
		for (size_t i = 0; i < other->n_notes; i++)
			wss_sample_note(ret_sample, "%s: %s", other->method, other->notes[i]);
	}
}

/* Puts the comparisons before the last sample's own notes. */
static void turn_compare(struct turn *turn)
{
	const struct wss_sample *first = &turn->samples[0];
	struct wss_sample *last = &turn->samples[turn->n - 1];
	wss_auto_free struct wss_sample *own = malloc(sizeof(*own));

	if (!own || turn->n < 3 || !wss_sample_measured(first) || !wss_sample_measured(last))
		return;
	wss_sample_copy(own, last);
	last->n_notes = 0;
	for (size_t i = 1; i + 1 < turn->n; i++) {
		const struct wss_sample *other = &turn->samples[i];

		if (wss_sample_measured(other))
			compare_note(first, own, other, last);
		else
			wss_sample_note(last, "%s: %s", other->method, other->error.text);
	}
	for (size_t i = 0; i < own->n_notes; i++)
		wss_sample_note(last, "%s", own->notes[i]);
}

static void measure_by(struct wss_target *target, const struct wss_measure_options *options,
		       const struct wss_tracker_ops *method, const struct wss_measure_place *place,
		       struct turn *turn)
{
	struct wss_measure_options one = *options;

	if (wss_cancel_requested(&target->cancel) ||
	    (turn->n && turn->samples[turn->n - 1].error.code == WSS_ERR_GONE))
		return;
	one.methods = NULL;
	one.method = method;
	one.count = 1;
	if (turn->n)
		wss_deadline_renew(&target->deadline);
	wss_measure_run(target, &one, place, turn_keep, turn);
}

/* Takes a window by each method that can. Without any, the samples are one that says why. */
static void turn_take(struct wss_target *target, const struct wss_measure_options *options,
		      const struct wss_measure_place *place, struct turn *turn)
{
	const struct wss_host *host = wss_hypervisor_host(target->hypervisor);
	const struct wss_tracker_ops *first = NULL;
	struct wss_error error = WSS_ERROR_INIT;
	bool is_ready;

	wss_deadline_run(&target->deadline, 0);
	is_ready = wss_guest_check_ready(target->guest, &error) == 0 &&
		   wss_guest_attach(target->guest, host, &error) == 0;
	wss_deadline_pause(&target->deadline);
	for (size_t i = 0; is_ready && options->methods[i]; i++) {
		wss_error_clear(&error);
		if (wss_tracker_check(options->methods[i], host, target->guest,
				      &options->window.track, &error) < 0)
			continue;
		if (!first)
			first = options->methods[i];
		measure_by(target, options, options->methods[i], place, turn);
	}
	if (!first || turn->n > 1)
		measure_by(target, options, first, place, turn);
}

int wss_measure_by_each(struct wss_target *target, const struct wss_measure_options *options,
			const struct wss_measure_place *place, wss_measure_emit emit, void *opaque,
			struct wss_error *err)
{
	wss_auto_free struct wss_sample *samples = NULL;
	uint64_t next_ns = wss_clock_now_ns();
	size_t n = 0;

	while (options->methods[n])
		n++;
	samples = calloc(n + 1, sizeof(*samples));
	if (!samples)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (unsigned left = options->count; left; left--) {
		struct turn turn = {.samples = samples};
		bool ends;

		if (wss_cancel_sleep_until_ns(&target->cancel, next_ns) < 0)
			break;
		next_ns = wss_u64_max(next_ns + options->interval_ns, wss_clock_now_ns());
		turn_take(target, options, place, &turn);
		if (wss_cancel_requested(&target->cancel) || !turn.n)
			break;
		turn_compare(&turn);
		ends = left == 1 || wss_measure_ends_series(&samples[turn.n - 1].error);
		for (size_t i = 0; i < turn.n; i++)
			emit(&samples[i], ends && i + 1 == turn.n, opaque);
		if (ends)
			break;
	}
	return 0;
}
