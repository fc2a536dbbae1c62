/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/controlled.h"

#include "base/clock.h"
#include "base/log.h"
#include "measure/measure.h"

/* Pause after each window, two looks long, so that a waiting step can begin. */
#define FREE_NS (2 * LOOK_NS)

/*
 * Makes this window the newest one, even if another series in the history has more windows.
 * The caller holds the lock.
 */
static void note_window(struct controlled *controlled, const struct wss_sample *sample)
{
	controlled->need.wss_bytes = sample->wss_bytes;
	controlled->need.qemu_bytes = sample->memory.qemu_bytes;
	controlled->need.time_s = controlled->measured_s;
}

int wss_controlled_read_need(struct controlled *controlled, const struct wss_policy *policy,
			     const struct wss_sample *newest, struct wss_error *err)
{
	struct controller *controller = controlled->controller;
	struct wss_need need;
	int r;

	wss_shared_history_lock(&controller->history, NULL);
	r = wss_need_read(&controller->options.advice, controller->history.history,
			  controlled->uuid, policy, &need, err);
	wss_shared_history_unlock(&controller->history);
	if (r < 0)
		return -1;
	controller_lock(controller);
	controlled->need = need;
	controlled->policy = *policy;
	if (newest)
		note_window(controlled, newest);
	controller_unlock(controller);
	return 0;
}

static void set_measuring(struct controlled *controlled, bool measuring)
{
	controller_lock(controlled->controller);
	controlled->measuring = measuring;
	controller_unlock(controlled->controller);
}

/*
 * Ends the window, once, before its sample is written, so that a step need not wait for the
 * write.
 */
static void end_window(struct controlled *controlled)
{
	if (!controlled->measuring)
		return;
	wss_debug("%s: the window is over", controlled->name);
	set_measuring(controlled, false);
}

/* Data of one guest's window. */
struct measuring {
	struct controlled *controlled;
	struct wss_target *target;
};

static void keep_sample(const struct wss_sample *sample, bool last, void *opaque)
{
	struct controlled *controlled = ((struct measuring *)opaque)->controlled;
	const struct wss_target *target = ((struct measuring *)opaque)->target;
	struct controller *controller = controlled->controller;
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	(void)last;
	if (!wss_sample_measured(sample)) {
		if (!wss_stop_requested())
			wss_log_guest(WSS_LOG_WARNING, sample->domain, controlled->uuid, "%s",
				      sample->error.text);
		return;
	}
	/* Before writing to the history, which may take some time. */
	controlled->measured_s = wss_clock_now_seconds();
	controller_lock(controller);
	note_window(controlled, sample);
	controller_unlock(controller);
	end_window(controlled);
	wss_shared_history_lock(&controller->history, NULL);
	r = wss_history_add(controller->history.history, sample, &err);
	wss_shared_history_unlock(&controller->history);
	if (r < 0)
		wss_log_guest(WSS_LOG_WARNING, target->name, controlled->uuid, "%s", err.text);
	wss_error_clear(&err);
	/* Even if the sample could not be stored, because the policy may have changed. */
	if (wss_controlled_read_need(controlled, &target->policy, sample, &err) < 0)
		wss_log_guest(WSS_LOG_WARNING, target->name, controlled->uuid, "%s", err.text);
}

/* Uses a guest object of its own, because the looking thread goes on using the other. */
static void controlled_measure_guest(struct controlled *controlled)
{
	struct controller *controller = controlled->controller;
	const struct wss_balloon_options *options = &controller->options;
	const struct wss_domain_ref ref = {controlled->name, controlled->uuid};
	struct wss_measure_options measure;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_target *target = wss_target_new(controller->targets.hypervisor, &ref,
						   WSS_TARGET_DEADLINE_NS, NULL, &err);

	if (!target) {
		wss_log_guest(WSS_LOG_WARNING, controlled->name, controlled->uuid, "%s", err.text);
		return;
	}
	wss_measure_options_init(&measure, options->window_ns);
	measure.window.track.max_stall_ns = options->max_stall_ns;
	/* Native windows would show a guest on huge pages at its limit long before it is. */
	measure.window.track.granularity = WSS_GRANULARITY_AUTO;
	wss_target_open(target);
	if (target->guest) {
		wss_measure_run(target, &measure, NULL, keep_sample,
				&(struct measuring){controlled, target});
	} else {
		wss_log_guest(WSS_LOG_WARNING, controlled->name, controlled->uuid, "%s",
			      target->error.text);
		controller_lock(controller);
		controlled->opted_out = target->policy.opt_out;
		controller_unlock(controller);
	}
	wss_target_free(target);
}

static bool is_moving(struct controlled *controlled)
{
	bool moving;

	controller_lock(controlled->controller);
	moving = controlled->moving;
	controller_unlock(controlled->controller);
	return moving;
}

/*
 * Measures while no step is under way. The looking thread ends a step that makes no progress.
 */
static void measure_at_rest(struct controlled *controlled)
{
	set_measuring(controlled, true);
	while (is_moving(controlled) && !controlled->over &&
	       !controller_is_ending(controlled->controller))
		wss_stop_wait_ns(LOOK_NS / 4);
	if (!controlled->over && !controller_is_ending(controlled->controller)) {
		wss_debug("%s: a window begins", controlled->name);
		controlled_measure_guest(controlled);
	}
	end_window(controlled);
}

void wss_controlled_measure(void *opaque)
{
	struct controlled *controlled = opaque;
	uint64_t period_ns = controlled->controller->options.period_ns;
	uint64_t due_ns = wss_clock_now_ns();

	/* Spreads the guests' windows over the period. */
	due_ns += period_ns / (controlled->number + 1) * controlled->number;
	while (!controlled->over && !controller_is_ending(controlled->controller)) {
		if (wss_clock_now_ns() < due_ns) {
			wss_stop_wait_ns(LOOK_NS / 2);
			continue;
		}
		due_ns = wss_clock_now_ns() + period_ns;
		measure_at_rest(controlled);
		if (due_ns < wss_clock_now_ns() + FREE_NS)
			due_ns = wss_clock_now_ns() + FREE_NS;
	}
	wss_controlled_thread_ended(controlled->controller);
}
