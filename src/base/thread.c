/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"

struct wss_thread {
	pthread_t id;
	void (*fn)(void *opaque);
	void *opaque;
	/* fn has returned; destructors of thread-local data may still run; under the lock. */
	bool ended;
	struct wss_thread *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct wss_thread *left; /* under the lock */

static void threads_init(void)
{
	wss_cond_init(&changed);
}

static void *thread_run(void *opaque)
{
	struct wss_thread *thread = opaque;

	thread->fn(thread->opaque);
	pthread_mutex_lock(&lock);
	thread->ended = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int wss_thread_start(void (*fn)(void *opaque), void *opaque, struct wss_thread **ret_thread,
		     struct wss_error *err)
{
	struct wss_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	pthread_once(&once, threads_init);
	thread->fn = fn;
	thread->opaque = opaque;
	if (pthread_create(&thread->id, NULL, thread_run, thread) != 0) {
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

/* Removes the threads that have ended from the list, and returns them as a list. */
static struct wss_thread *threads_take_ended(void)
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

	for (thread = threads_take_ended(); thread; thread = next) {
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

static bool all_ended(void)
{
	for (const struct wss_thread *thread = left; thread; thread = thread->next)
		if (!thread->ended)
			return false;
	return true;
}

bool wss_threads_end(uint64_t timeout_ns)
{
	uint64_t deadline_ns = wss_clock_now_ns() + timeout_ns;
	bool ended;

	pthread_mutex_lock(&lock);
	while (!(ended = all_ended()) && wss_clock_now_ns() < deadline_ns)
		wss_cond_wait_a_moment(&changed, &lock);
	pthread_mutex_unlock(&lock);
	join_ended();
	return ended;
}
