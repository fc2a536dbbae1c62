/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/stop.h"
#include "base/units.h"

/* Freed by the thread where it was left, else by the caller. */
struct guard {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, left;
	void (*fn)(void *opaque);
	void (*release)(void *opaque);
	void *opaque;
};

static void guard_free(struct guard *guard)
{
	pthread_mutex_destroy(&guard->lock);
	pthread_cond_destroy(&guard->changed);
	free(guard);
}

static void *work(void *opaque)
{
	struct guard *guard = opaque;
	bool left;

	guard->fn(guard->opaque);
	pthread_mutex_lock(&guard->lock);
	guard->done = true;
	left = guard->left;
	pthread_cond_signal(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
	if (left) {
		guard->release(guard->opaque);
		guard_free(guard);
	}
	return NULL;
}

static struct guard *guard_new(void)
{
	struct guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return NULL;
	pthread_mutex_init(&guard->lock, NULL);
	wss_cond_init(&guard->changed);
	return guard;
}

static bool wait_until(struct guard *guard, uint64_t deadline_ns, uint64_t stop_ns)
{
	bool stopping = false, done;

	pthread_mutex_lock(&guard->lock);
	while (!guard->done && wss_clock_now_ns() < deadline_ns) {
		wss_cond_wait_a_moment(&guard->changed, &guard->lock);
		if (!stopping && wss_stop_requested()) {
			uint64_t soon = wss_clock_now_ns() + stop_ns;

			stopping = true;
			if (soon < deadline_ns)
				deadline_ns = soon;
		}
	}
	done = guard->done;
	guard->left = !done;
	pthread_mutex_unlock(&guard->lock);
	return done;
}

int wss_guard_run(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
		  uint64_t timeout_ns, uint64_t stop_ns, struct wss_error *err)
{
	struct guard *guard = guard_new();
	pthread_t thread;
	char text[16];

	if (!guard)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	guard->fn = fn;
	guard->release = release;
	guard->opaque = opaque;
	if (pthread_create(&thread, NULL, work, guard) != 0) {
		guard_free(guard);
		return wss_error_set(err, WSS_ERR_FAILED, "cannot start a thread");
	}
	if (wait_until(guard, wss_clock_now_ns() + timeout_ns, stop_ns)) {
		pthread_join(thread, NULL);
		guard_free(guard);
		return 0;
	}
	pthread_detach(thread);
	wss_duration_format(timeout_ns, text, sizeof(text));
	return wss_error_set(err, WSS_ERR_TIMEOUT, "not done within %s", text);
}
