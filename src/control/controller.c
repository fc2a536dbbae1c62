/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * balloon --apply: in the foreground until it is stopped. Each guest has its tender
 * (tending.h); here they are started, watched and waited for.
 */
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/worker.h"
#include "base/stop.h"
#include "control/tending.h"

#define STEP_NS (100 * WSS_NS_PER_MS)
#define BEAT_NS WSS_NS_PER_S

static int start(struct tending *tending, const struct wss_cli *cli, struct wss_error *err)
{
	struct wss_targets *targets = &tending->targets;

	if (wss_cli_find_targets(cli, 0, targets, err) < 0)
		return -1;
	for (size_t i = 0; i < targets->n; i++)
		if (wss_tending_add(tending, wss_steal_ptr(targets->list[i]), err) < 0)
			return -1;
	return 0;
}

static void beat(struct tending *tending)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (now_ns - tending->beat_ns < BEAT_NS)
		return;
	tending->beat_ns = now_ns;
	wss_balloon_beat(tending->watchdog);
}

/* Until it is stopped, or no guest is left, or none that libvirt answers for. */
static void watch(struct tending *tending)
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
	const struct timespec step = { .tv_nsec = 20 * (long)WSS_NS_PER_MS };

	while (wss_tending_threads(tending) > 0) {
		if (wss_clock_now_ns() > deadline_ns)
			return false;
		/* A stop request that has come does not end this. */
		nanosleep(&step, NULL);
	}
	return true;
}

static int exit_code(struct tending *tending)
{
	if (wss_stop_requested())
		return 128 + wss_stop_signal();
	return wss_tally_exit_code(&tending->tally, tending->total - tending->missing);
}

int wss_balloon_apply(const struct wss_cli *cli, const struct balloon_options *options)
{
	wss_auto_free char *path = wss_store_path(&options->sizing.history);
	struct tending *tending = malloc(sizeof(*tending));
	struct wss_error err = WSS_ERROR_INIT;
	bool ended;
	int code;

	if (!path || !tending) {
		free(tending);
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
		return wss_cli_error(&err);
	}
	wss_tending_init(tending, options);
	if (wss_balloon_watchdog(cli, options, &tending->watchdog, &err) == 0 &&
	    wss_tending_open_history(tending, path, &err) == 0 && start(tending, cli, &err) == 0)
		watch(tending);
	tending->ending = true;
	ended = wait_for_threads(tending);
	code = err.code ? wss_cli_error(&err) : exit_code(tending);
	/* What could not be given back is the watchdog's to go on with. */
	if (tending->watchdog >= 0 && wss_tending_busy(tending) == 0)
		wss_balloon_all_is_well(tending->watchdog);
	/* A thread that is left behind may use all of it to the end of the process. */
	if (ended) {
		wss_tending_free(tending);
		free(tending);
	}
	return code;
}
