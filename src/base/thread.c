/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct wss_thread {
	pthread_t id;
	void (*fn)(void *opaque);
	void *opaque;
	atomic_bool ended; /* but for what the libraries' thread-local data has to free */
	struct wss_thread *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct wss_thread *left; /* under the lock */

static void *run(void *opaque)
{
	struct wss_thread *thread = opaque;

	thread->fn(thread->opaque);
	thread->ended = true;
	return NULL;
}

int wss_thread_start(void (*fn)(void *opaque), void *opaque, struct wss_thread **ret_thread,
		     struct wss_error *err)
{
	struct wss_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	thread->fn = fn;
	thread->opaque = opaque;
	if (pthread_create(&thread->id, NULL, run, thread) != 0) {
		free(thread);
		return wss_error_set(err, WSS_ERR_FAILED, "cannot start a thread");
	}
	*ret_thread = thread;
	return 0;
}

void wss_thread_join(struct wss_thread *thread)
{
	pthread_join(thread->id, NULL);
	free(thread);
}

/* Takes those that have ended out of the list. */
static struct wss_thread *take_ended(void)
{
	struct wss_thread *ended = NULL, **link = &left;

	pthread_mutex_lock(&lock);
	while (*link) {
		struct wss_thread *thread = *link;

		if (!thread->ended) {
			link = &thread->next;
			continue;
		}
		*link = thread->next;
		thread->next = ended;
		ended = thread;
	}
	pthread_mutex_unlock(&lock);
	return ended;
}

static void join_ended(void)
{
	struct wss_thread *thread, *next;

	for (thread = take_ended(); thread; thread = next) {
		next = thread->next;
		wss_thread_join(thread);
	}
}

void wss_thread_leave(struct wss_thread *thread)
{
	pthread_mutex_lock(&lock);
	thread->next = left;
	left = thread;
	pthread_mutex_unlock(&lock);
	join_ended();
}

static struct wss_thread *take_any(void)
{
	struct wss_thread *thread;

	pthread_mutex_lock(&lock);
	thread = left;
	if (thread)
		left = thread->next;
	pthread_mutex_unlock(&lock);
	return thread;
}

static bool join_until(struct wss_thread *thread, const struct timespec *end)
{
	if (pthread_clockjoin_np(thread->id, NULL, CLOCK_MONOTONIC, end) != 0)
		return false;
	free(thread);
	return true;
}

bool wss_threads_end(uint64_t timeout_ns)
{
	struct wss_thread *thread;
	struct timespec end;
	uint64_t ns;

	/* By the real clock: a test's own does not move by itself. */
	clock_gettime(CLOCK_MONOTONIC, &end);
	ns = (uint64_t)end.tv_nsec + timeout_ns;
	end.tv_sec += (time_t)(ns / WSS_NS_PER_S);
	end.tv_nsec = (long)(ns % WSS_NS_PER_S);
	while ((thread = take_any())) {
		if (join_until(thread, &end))
			continue;
		wss_thread_leave(thread);
		return false;
	}
	return true;
}
