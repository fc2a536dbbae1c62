/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/tender.h"

#include "base/clock.h"
#include "base/log.h"
#include "service/measure.h"

/* Pause after each window, two looks long, so that a waiting step can begin. */
#define FREE_NS (2 * LOOK_NS)

/*
 * Makes this window the newest one, even if another series in the history has more windows.
 * The caller holds the lock.
 */
static void note_window(struct tender *tender, const struct wss_sample *sample)
{
	tender->need.wss_bytes = sample->wss_bytes;
	tender->need.qemu_bytes = sample->memory.qemu_bytes;
	tender->need.time_s = tender->measured_s;
}

int wss_tender_read_need(struct tender *tender, const struct wss_policy *policy,
			 const struct wss_sample *newest, struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct wss_need need;
	int r;

	wss_shared_history_lock(&tending->history, NULL);
	r = wss_need_read(&tending->options.advice, tending->history.history, tender->uuid,
			  policy, &need, err);
	wss_shared_history_unlock(&tending->history);
	if (r < 0)
		return -1;
	tending_lock(tending);
	tender->need = need;
	tender->policy = *policy;
	if (newest)
		note_window(tender, newest);
	tending_unlock(tending);
	return 0;
}

static void set_measuring(struct tender *tender, bool measuring)
{
	tending_lock(tender->tending);
	tender->measuring = measuring;
	tending_unlock(tender->tending);
}

/*
 * Ends the window, once, before its sample is written, so that a step need not wait for the
 * write.
 */
static void end_window(struct tender *tender)
{
	if (!tender->measuring)
		return;
	wss_debug("%s: the window is over", tender->name);
	set_measuring(tender, false);
}

/* Data of one guest's window. */
struct measuring {
	struct tender *tender;
	struct wss_target *target;
};

static void keep_sample(const struct wss_sample *sample, bool last, void *opaque)
{
	struct tender *tender = ((struct measuring *)opaque)->tender;
	const struct wss_target *target = ((struct measuring *)opaque)->target;
	struct tending *tending = tender->tending;
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	(void)last;
	if (!wss_sample_measured(sample)) {
		if (!wss_stop_requested())
			wss_log_guest(WSS_LOG_WARNING, sample->domain, tender->uuid, "%s", sample->error.text);
		return;
	}
	/* Before writing to the history, which may take some time. */
	tender->measured_s = wss_clock_now_seconds();
	tending_lock(tending);
	note_window(tender, sample);
	tending_unlock(tending);
	end_window(tender);
	wss_shared_history_lock(&tending->history, NULL);
	r = wss_history_add(tending->history.history, sample, &err);
	wss_shared_history_unlock(&tending->history);
	if (r < 0)
		wss_log_guest(WSS_LOG_WARNING, target->name, tender->uuid, "%s", err.text);
	wss_error_clear(&err);
	/* Even if the sample could not be stored, because the policy may have changed. */
	if (wss_tender_read_need(tender, &target->policy, sample, &err) < 0)
		wss_log_guest(WSS_LOG_WARNING, target->name, tender->uuid, "%s", err.text);
}

/* Uses a guest object of its own, because the looking thread goes on using the other. */
static void tender_measure_guest(struct tender *tender)
{
	struct tending *tending = tender->tending;
	const struct wss_balloon_options *options = &tending->options;
	const struct wss_domain_ref ref = {tender->name, tender->uuid};
	struct wss_measure_options measure;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_target *target = wss_target_new(tending->targets.hypervisor, &ref,
						   WSS_TARGET_DEADLINE_NS, NULL, &err);

	if (!target) {
		wss_log_guest(WSS_LOG_WARNING, tender->name, tender->uuid, "%s", err.text);
		return;
	}
	wss_measure_options_init(&measure, options->window_ns);
	measure.window.track.max_stall_ns = options->max_stall_ns;
	/* Native windows would show a guest on huge pages at its limit long before it is. */
	measure.window.track.granularity = WSS_GRANULARITY_AUTO;
	wss_target_open(target);
	if (target->guest) {
		wss_measure_run(target, &measure, NULL, keep_sample,
				&(struct measuring){tender, target});
	} else {
		wss_log_guest(WSS_LOG_WARNING, tender->name, tender->uuid, "%s", target->error.text);
		tending_lock(tending);
		tender->opted_out = target->policy.opt_out;
		tending_unlock(tending);
	}
	wss_target_free(target);
}

static bool is_moving(struct tender *tender)
{
	bool moving;

	tending_lock(tender->tending);
	moving = tender->moving;
	tending_unlock(tender->tending);
	return moving;
}

/*
 * Measures while no step is under way. The looking thread ends a step that makes no progress.
 */
static void measure_at_rest(struct tender *tender)
{
	set_measuring(tender, true);
	while (is_moving(tender) && !tender->over && !tending_is_ending(tender->tending))
		wss_stop_wait_ns(LOOK_NS / 4);
	if (!tender->over && !tending_is_ending(tender->tending)) {
		wss_debug("%s: a window begins", tender->name);
		tender_measure_guest(tender);
	}
	end_window(tender);
}

void wss_tender_measure(void *opaque)
{
	struct tender *tender = opaque;
	uint64_t period_ns = tender->tending->options.period_ns;
	uint64_t due_ns = wss_clock_now_ns();

	/* Spreads the guests' windows over the period. */
	due_ns += period_ns / (tender->number + 1) * tender->number;
	while (!tender->over && !tending_is_ending(tender->tending)) {
		if (wss_clock_now_ns() < due_ns) {
			wss_stop_wait_ns(LOOK_NS / 2);
			continue;
		}
		due_ns = wss_clock_now_ns() + period_ns;
		measure_at_rest(tender);
		if (due_ns < wss_clock_now_ns() + FREE_NS)
			due_ns = wss_clock_now_ns() + FREE_NS;
	}
	wss_tender_thread_ended(tender->tending);
}
