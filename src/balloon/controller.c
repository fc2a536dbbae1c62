/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * The controller starts its watchdog while the process still has only one thread, because that
 * forks. Then come the history, the connection, and a struct controlled (controlled.h) for
 * each guest. From then on the calling thread uses neither libvirt nor the history: it only
 * counts and watches, so that nothing can keep it from sending beats to the watchdog, or from
 * ending.
 *
 * It runs until a stop is requested; or until no guest has anything to get back and none is
 * looked after; or until libvirt answers for none of the remaining guests. Then:
 *
 * - It sets ending, and the threads of each guest give its memory back and end.
 * - It waits for them, 10 s at most. One that libvirt never answers is left behind,
 *   with all memory that it may use, because the process is about to end.
 * - It dismisses the watchdog only if no guest is shrunk any more. Otherwise the watchdog sees
 *   its pipe close when the process ends, and gives the memory back instead.
 */
#include "balloon/controller.h"

#include <stdlib.h>

#include "balloon/controller-state.h"
#include "balloon/watchdog.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/worker.h"

#define STEP_NS (100 * WSS_NS_PER_MS)
#define BEAT_NS WSS_NS_PER_S
#define END_NS (2 * WSS_WORKER_CANCEL_NS)

static int start_guests(struct controller *controller, const struct wss_control_scope *scope,
			struct wss_error *err)
{
	const struct wss_hypervisor_options options = {.uri = scope->uri,
						       .allow_monitor = scope->monitor};
	const struct wss_targets_query query = {.refs = scope->guests, .n = scope->n_guests};
	struct wss_targets *targets = &controller->targets;
	struct wss_hypervisor *hypervisor;
	int r;

	if (wss_hypervisor_open(&options, &hypervisor, err) < 0)
		return -1;
	r = wss_targets_find(hypervisor, &query, targets, err);
	if (r == 0 && !targets->n)
		controller->events.none_running(wss_hypervisor_uri(hypervisor),
						controller->events.opaque);
	wss_hypervisor_unref(hypervisor);
	for (size_t i = 0; r == 0 && i < targets->n; i++)
		r = wss_controller_add(controller, wss_steal_ptr(targets->list[i]), err);
	return r;
}

static void controller_beat(struct controller *controller)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (now_ns - controller->beat_ns < BEAT_NS)
		return;
	controller->beat_ns = now_ns;
	wss_watchdog_beat(controller->watchdog);
}

/*
 * Watches until a stop is requested, no guest is left, or libvirt answers for none of those
 * left.
 */
static void watch_guests(struct controller *controller)
{
	size_t busy;

	while (!wss_stop_requested() && (busy = wss_controller_busy(controller)) > 0 &&
	       wss_controller_threads(controller) > 0) {
		if (wss_controller_stuck(controller) == busy)
			return;
		controller_beat(controller);
		wss_stop_wait_ns(STEP_NS);
	}
}

/*
 * Returns whether all threads have ended in time. The watchdog must not step in before: they look at a guest up to six times, a
 * second apart, and then may wait for the journal.
 */
static bool wait_for_threads(struct controller *controller)
{
	uint64_t deadline_ns = wss_clock_now_ns() + END_NS;

	while (wss_controller_threads(controller) > 0) {
		if (wss_clock_now_ns() > deadline_ns)
			return false;
		controller_beat(controller);
		wss_clock_rest_until_ns(wss_clock_now_ns() + 20 * WSS_NS_PER_MS);
	}
	return true;
}

int wss_controller_run(const struct wss_control_scope *scope,
		       const struct wss_balloon_options *options,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err)
{
	struct controller *controller = malloc(sizeof(*controller));
	bool ended;
	int r;

	if (!controller)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_controller_init(controller, options, events);
	r = wss_watchdog_start(options->restore_command, &controller->watchdog, err);
	if (r == 0)
		r = wss_controller_open_history(controller, scope->history, err);
	if (r == 0)
		r = start_guests(controller, scope, err);
	if (r == 0)
		watch_guests(controller);
	controller->ending = true;
	ended = wait_for_threads(controller);
	wss_controller_mute(controller);
	*ret_guests = wss_controller_missed(controller);
	if (controller->watchdog >= 0 && wss_controller_busy(controller) == 0)
		wss_watchdog_dismiss(controller->watchdog);
	/* A thread that was left behind may use all of this until the process ends. */
	if (ended && wss_controller_free(controller))
		free(controller);
	return r;
}
