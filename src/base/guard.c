/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/guard.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"

/* Freed by the thread where it was left, else by the caller. */
struct guard {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct wss_budget_watch watch; /* of what fn has entered */
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

static void work(void *opaque)
{
	struct guard *guard = opaque;
	bool left;

	wss_budget_watch(&guard->watch);
	guard->fn(guard->opaque);
	wss_budget_watch(NULL);
	pthread_mutex_lock(&guard->lock);
	guard->done = true;
	left = guard->left;
	pthread_cond_signal(&guard->changed);
	pthread_mutex_unlock(&guard->lock);
	if (left) {
		guard->release(guard->opaque);
		guard_free(guard);
	}
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

/* When to give up, unless a stop request comes before. */
struct limit {
	bool by_budget;	      /* that of fn's budget */
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t stop_ns;
	uint64_t ret_total_ns; /* of the budget that was overrun */
};

static bool is_late(struct guard *guard, struct limit *limit)
{
	uint64_t until_ns = limit->by_budget ? guard->watch.until_ns : 0;
	uint64_t now_ns = wss_clock_now_ns();

	limit->ret_total_ns = guard->watch.total_ns;
	return now_ns >= limit->deadline_ns ||
	       (until_ns && now_ns >= until_ns && now_ns - until_ns >= WSS_GUARD_GRACE_NS);
}

static bool wait_until(struct guard *guard, struct limit *limit)
{
	bool stopping = false, done;

	pthread_mutex_lock(&guard->lock);
	while (!guard->done && !is_late(guard, limit)) {
		wss_cond_wait_a_moment(&guard->changed, &guard->lock);
		if (!stopping && wss_stop_requested()) {
			uint64_t soon = wss_clock_now_ns() + limit->stop_ns;

			stopping = true;
			if (soon < limit->deadline_ns)
				limit->deadline_ns = soon;
		}
	}
	done = guard->done;
	guard->left = !done;
	pthread_mutex_unlock(&guard->lock);
	return done;
}

/* 0, -1, or 1 with err untouched where it is late. */
static int run(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
	       struct limit *limit, struct wss_error *err)
{
	struct guard *guard = guard_new();
	struct wss_thread *thread;

	if (!guard)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	guard->fn = fn;
	guard->release = release;
	guard->opaque = opaque;
	if (wss_thread_start(work, guard, &thread, err) < 0) {
		guard_free(guard);
		return -1;
	}
	if (wait_until(guard, limit)) {
		wss_thread_join(thread);
		guard_free(guard);
		return 0;
	}
	wss_thread_leave(thread);
	return 1;
}

int wss_guard_run(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
		  uint64_t timeout_ns, uint64_t stop_ns, struct wss_error *err)
{
	struct limit limit = { .deadline_ns = wss_clock_now_ns() + timeout_ns,
			       .stop_ns = stop_ns };
	int r = run(fn, opaque, release, &limit, err);
	char text[16];

	if (r <= 0)
		return r;
	wss_duration_format(timeout_ns, text, sizeof(text));
	return wss_error_set(err, WSS_ERR_TIMEOUT, "not done within %s", text);
}

int wss_guard_run_within(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
			 uint64_t stop_ns, struct wss_error *err)
{
	struct limit limit = { .by_budget = true, .deadline_ns = UINT64_MAX, .stop_ns = stop_ns };
	int r = run(fn, opaque, release, &limit, err);

	return r <= 0 ? r : wss_budget_error(limit.ret_total_ns, err);
}
