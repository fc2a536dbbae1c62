/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * The controller starts its watchdog while the process has one thread still, as it forks; then
 * come the history, the connection, and a tender (tender.h) for each guest. From then on the
 * calling thread touches neither libvirt nor the history: it only counts and watches, so that
 * it can always say to the watchdog that the process is alive, and always ends.
 *
 * It goes on until a stop is requested, no guest has anything to get back and none is looked
 * after, or libvirt answers for none of those that are left. Then:
 *
 * - ending is set: each tender gives its guest's memory back and ends.
 * - The tenders are waited for, 10 s at most. One that libvirt never answers stays behind,
 *   with all memory that it may use: the process is to end now.
 * - The watchdog is dismissed only where no guest is shrunk any more. Otherwise it finds its
 *   pipe closed when the process ends, and gives back in its place.
 */
#include "control/controller.h"

#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/worker.h"
#include "control/tending.h"
#include "control/watchdog.h"

#define STEP_NS (100 * WSS_NS_PER_MS)
#define BEAT_NS WSS_NS_PER_S

static int start_tenders(struct tending *tending, const struct wss_control_scope *scope,
			 struct wss_error *err)
{
	const struct wss_hypervisor_options options = {.uri = scope->uri,
						       .allow_monitor = scope->monitor};
	const struct wss_targets_query query = {.refs = scope->guests, .n = scope->n_guests};
	struct wss_targets *targets = &tending->targets;
	struct wss_hypervisor *hypervisor;
	int r;

	if (wss_hypervisor_open(&options, &hypervisor, err) < 0)
		return -1;
	r = wss_targets_find(hypervisor, &query, targets, err);
	if (r == 0 && !targets->n)
		tending->events.none_running(wss_hypervisor_uri(hypervisor),
					     tending->events.opaque);
	wss_hypervisor_unref(hypervisor);
	for (size_t i = 0; r == 0 && i < targets->n; i++)
		r = wss_tending_add(tending, wss_steal_ptr(targets->list[i]), err);
	return r;
}

static void beat(struct tending *tending)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (now_ns - tending->beat_ns < BEAT_NS)
		return;
	tending->beat_ns = now_ns;
	wss_watchdog_beat(tending->watchdog);
}

/* Until a stop is requested, or no guest is left, or none that libvirt answers for. */
static void watch_tenders(struct tending *tending)
{
	size_t busy;

	while (!wss_stop_requested() && (busy = wss_tending_busy(tending)) > 0 &&
	       wss_tending_threads(tending) > 0) {
		if (wss_tending_stuck(tending) == busy)
			return;
		beat(tending);
		wss_stop_wait_ns(STEP_NS);
	}
}

/* True when all threads have ended in time. */
static bool wait_for_threads(struct tending *tending)
{
	uint64_t deadline_ns = wss_clock_now_ns() + WSS_WORKER_CANCEL_NS;
	const struct timespec step = {.tv_nsec = 20 * (long)WSS_NS_PER_MS};

	while (wss_tending_threads(tending) > 0) {
		if (wss_clock_now_ns() > deadline_ns)
			return false;
		/* A stop request that has come does not end this. */
		nanosleep(&step, NULL);
	}
	return true;
}

int wss_controller_run(const struct wss_control_scope *scope,
		       const struct wss_balloon_options *options,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err)
{
	struct tending *tending = malloc(sizeof(*tending));
	bool ended;
	int r;

	if (!tending)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_tending_init(tending, options, events);
	r = wss_watchdog_start(options->restore_command, &tending->watchdog, err);
	if (r == 0)
		r = wss_tending_open_history(tending, scope->history, err);
	if (r == 0)
		r = start_tenders(tending, scope, err);
	if (r == 0)
		watch_tenders(tending);
	tending->ending = true;
	ended = wait_for_threads(tending);
	wss_tending_mute(tending);
	*ret_guests = wss_tending_missed(tending);
	if (tending->watchdog >= 0 && wss_tending_busy(tending) == 0)
		wss_watchdog_dismiss(tending->watchdog);
	/* A thread that is left behind may use all of it to the end of the process. */
	if (ended) {
		wss_tending_free(tending);
		free(tending);
	}
	return r;
}
