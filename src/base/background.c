/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/background.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/worker.h"

struct wss_background {
	struct wss_workers *workers;
	struct wss_worker *worker; /* NULL: idle */
	uint64_t began_ns;
};

struct wss_background *wss_background_new(void)
{
	struct wss_background *background = calloc(1, sizeof(*background));

	if (background)
		background->workers = wss_workers_new();
	if (background && background->workers)
		return background;
	free(background);
	return NULL;
}

bool wss_background_is_idle(struct wss_background *background)
{
	if (background->worker && wss_worker_done(background->worker)) {
		wss_worker_join(background->worker);
		background->worker = NULL;
	}
	return !background->worker;
}

/* Work that was left behind keeps its memory until the process ends. */
static void release_nothing(void *opaque)
{
	(void)opaque;
}

int wss_background_start(struct wss_background *background, void (*run)(void *opaque), void *opaque,
			 struct wss_error *err)
{
	const struct wss_work work = {.run = run, .release = release_nothing, .opaque = opaque};

	background->began_ns = wss_clock_now_ns();
	return wss_worker_start(background->workers, &work, &background->worker, err);
}

uint64_t wss_background_busy_ns(struct wss_background *background)
{
	return wss_background_is_idle(background) ? 0 : wss_clock_now_ns() - background->began_ns;
}

bool wss_background_wait(struct wss_background *background, uint64_t timeout_ns)
{
	uint64_t end_ns = wss_clock_now_ns() + timeout_ns;

	while (!wss_background_is_idle(background)) {
		if (wss_clock_now_ns() >= end_ns)
			return false;
		wss_workers_wait(background->workers);
	}
	return true;
}

bool wss_background_end(struct wss_background *background, uint64_t timeout_ns)
{
	bool idle;

	if (!background)
		return true;
	idle = wss_background_wait(background, timeout_ns) ||
	       !wss_worker_leave(background->worker, NULL);
	if (background->worker && idle)
		wss_worker_join(background->worker);
	wss_workers_free(background->workers);
	free(background);
	return idle;
}
