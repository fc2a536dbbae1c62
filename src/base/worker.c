/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/thread.h"

/* How long a thread without work waits for some before it ends. */
#define IDLE_NS (10 * WSS_NS_PER_S)

/*
 * A thread of a group, which does one piece of work after the other. The one that became idle last gets the
 * next work, so that those which are not needed any more end.
 */
struct crew {
	struct crew *next;
	struct wss_workers *workers;
	struct wss_thread *thread;
	struct wss_worker *worker; /* NULL: it is idle, or ends; under the lock */
	pthread_cond_t called;
};

/* Freed by its last user: the owner, or a worker that was left behind. */
struct wss_workers {
	atomic_int references;
	atomic_uint finished; /* workers that are done */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool woken; /* set since the last wait; under the lock */
	bool closing;
	struct crew *idle;  /* the last one first; under the lock */
	struct crew *ended; /* to be joined; under the lock */
};

struct wss_worker {
	struct wss_workers *workers;
	struct wss_work work;
	struct crew *crew; /* until it is done */
	atomic_bool done;  /* set under the group's lock */
	bool left;	   /* under the group's lock */
};

struct wss_workers *wss_workers_new(void)
{
	struct wss_workers *workers = calloc(1, sizeof(*workers));

	if (!workers)
		return NULL;
	workers->references = 1;
	pthread_mutex_init(&workers->lock, NULL);
	wss_cond_init(&workers->changed);
	return workers;
}

static void crew_free(struct crew *crew)
{
	pthread_cond_destroy(&crew->called);
	free(crew);
}

/* Joins a list of threads, which end without waiting for anybody. */
static void crew_join(struct crew *crew)
{
	for (struct crew *next; crew; crew = next) {
		next = crew->next;
		wss_thread_join(crew->thread);
		crew_free(crew);
	}
}

/* Sends the idle threads home. Each moves itself to the list of those that have ended. */
static void workers_close(struct wss_workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	workers->closing = true;
	for (struct crew *crew = workers->idle; crew; crew = crew->next)
		pthread_cond_signal(&crew->called);
	while (workers->idle)
		pthread_cond_wait(&workers->changed, &workers->lock);
	pthread_mutex_unlock(&workers->lock);
	crew_join(workers->ended);
}

void wss_workers_free(struct wss_workers *workers)
{
	if (!workers || atomic_fetch_sub(&workers->references, 1) != 1)
		return;
	workers_close(workers);
	pthread_mutex_destroy(&workers->lock);
	pthread_cond_destroy(&workers->changed);
	free(workers);
}

static void worker_free(struct wss_worker *worker)
{
	wss_workers_free(worker->workers);
	free(worker);
}

/* The caller holds the lock. */
static void wake_locked(struct wss_workers *workers)
{
	workers->woken = true;
	pthread_cond_broadcast(&workers->changed);
}

/*
 * Waits for work; false: there is none, and the thread is to end. The caller holds the lock, and has set woken.
 * Those who wait for a change are woken without the lock, for which they would have to wait at once.
 */
static bool crew_wait(struct crew *crew)
{
	struct wss_workers *workers = crew->workers;
	struct crew **link = &workers->idle;
	bool waited_enough = false;

	crew->next = workers->idle;
	workers->idle = crew;
	pthread_mutex_unlock(&workers->lock);
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_lock(&workers->lock);
	while (!crew->worker && !workers->closing && !waited_enough)
		waited_enough = !wss_cond_wait_ns(&crew->called, &workers->lock, IDLE_NS);
	if (crew->worker)
		return true;
	while (*link != crew)
		link = &(*link)->next;
	*link = crew->next;
	crew->next = workers->ended;
	workers->ended = crew;
	/* For workers_close(): nobody else waits for this. */
	if (workers->closing)
		pthread_cond_broadcast(&workers->changed);
	return false;
}

/*
 * Does its work. False: the worker was left behind, and the thread with it, which neither takes other work
 * nor is joined by its group.
 */
static bool crew_work(struct crew *crew)
{
	struct wss_workers *workers = crew->workers;
	struct wss_worker *worker = crew->worker;
	bool left;

	worker->work.run(worker->work.opaque);
	pthread_mutex_lock(&workers->lock);
	worker->done = true;
	workers->finished++;
	left = worker->left;
	crew->worker = NULL;
	if (!left) {
		workers->woken = true;
		return true;
	}
	wake_locked(workers);
	pthread_mutex_unlock(&workers->lock);
	worker->work.release(worker->work.opaque);
	worker_free(worker);
	crew_free(crew);
	return false;
}

static void crew_run(void *opaque)
{
	struct crew *crew = opaque;
	pthread_mutex_t *lock = &crew->workers->lock;
	bool has_work;

	do {
		if (!crew_work(crew))
			return;
		has_work = crew_wait(crew);
		pthread_mutex_unlock(lock);
	} while (has_work);
}

/* An idle thread of the group gets the worker. False: there is none. */
static bool worker_call_idle(struct wss_worker *worker)
{
	struct wss_workers *workers = worker->workers;
	struct crew *crew, *ended;

	pthread_mutex_lock(&workers->lock);
	crew = workers->idle;
	if (crew) {
		workers->idle = crew->next;
		crew->worker = worker;
		worker->crew = crew;
	}
	ended = workers->ended;
	workers->ended = NULL;
	pthread_mutex_unlock(&workers->lock);
	/* Without the lock, for which it would have to wait. It ends only in crew_join(), which nobody else calls. */
	if (crew)
		pthread_cond_signal(&crew->called);
	crew_join(ended);
	return crew != NULL;
}

static int worker_hire(struct wss_worker *worker, struct wss_error *err)
{
	struct crew *crew = calloc(1, sizeof(*crew));

	if (!crew)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_cond_init(&crew->called);
	crew->workers = worker->workers;
	crew->worker = worker;
	worker->crew = crew;
	if (wss_thread_start(crew_run, crew, &crew->thread, err) == 0)
		return 0;
	crew_free(crew);
	return -1;
}

int wss_worker_start(struct wss_workers *workers, const struct wss_work *work,
		     struct wss_worker **ret_worker, struct wss_error *err)
{
	struct wss_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	atomic_fetch_add(&workers->references, 1);
	worker->workers = workers;
	worker->work = *work;
	if (!worker_call_idle(worker) && worker_hire(worker, err) < 0) {
		worker_free(worker);
		return -1;
	}
	*ret_worker = worker;
	return 0;
}

bool wss_worker_done(struct wss_worker *worker)
{
	return worker->done;
}

unsigned wss_workers_finished(struct wss_workers *workers)
{
	return workers->finished;
}

bool wss_worker_late(struct wss_worker *worker)
{
	return wss_deadline_overrun(worker->work.deadline, WSS_WORKER_GRACE_NS);
}

void wss_worker_join(struct wss_worker *worker)
{
	struct wss_workers *workers = worker->workers;

	pthread_mutex_lock(&workers->lock);
	while (!worker->done)
		pthread_cond_wait(&workers->changed, &workers->lock);
	pthread_mutex_unlock(&workers->lock);
	worker_free(worker);
}

bool wss_worker_leave(struct wss_worker *worker, struct wss_cancel *cancel)
{
	pthread_mutex_t *lock = &worker->workers->lock;
	struct wss_thread *thread = NULL;
	bool done;

	pthread_mutex_lock(lock);
	done = worker->done;
	worker->left = !done;
	if (!done)
		thread = worker->crew->thread;
	if (cancel && !done)
		wss_cancel_request(cancel);
	pthread_mutex_unlock(lock);
	/* From here on the worker frees itself and opaque. */
	if (!done)
		wss_thread_leave(thread);
	return !done;
}

void wss_workers_wait(struct wss_workers *workers)
{
	wss_workers_wait_ns(workers, WSS_COND_MOMENT_NS);
}

void wss_workers_wait_ns(struct wss_workers *workers, uint64_t timeout_ns)
{
	pthread_mutex_lock(&workers->lock);
	if (!workers->woken)
		wss_cond_wait_ns(&workers->changed, &workers->lock, timeout_ns);
	workers->woken = false;
	pthread_mutex_unlock(&workers->lock);
}

void wss_workers_wake(struct wss_workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	wake_locked(workers);
	pthread_mutex_unlock(&workers->lock);
}

/* Waits until the worker is done (returns true) or late. */
static bool work_wait(struct wss_workers *workers, struct wss_worker *worker, uint64_t cancel_ns)
{
	const struct wss_cancel *cancel = wss_deadline_cancel(worker->work.deadline);
	uint64_t end_ns = UINT64_MAX;

	while (!wss_worker_done(worker)) {
		if (wss_worker_late(worker) || wss_clock_now_ns() >= end_ns)
			return false;
		if (end_ns == UINT64_MAX && wss_cancel_requested(cancel))
			end_ns = wss_clock_now_ns() + cancel_ns;
		else
			wss_workers_wait(workers);
	}
	return true;
}

int wss_work_run(const struct wss_work *work, uint64_t cancel_ns, struct wss_error *err)
{
	struct wss_workers *workers = wss_workers_new();
	struct wss_worker *worker;
	/* The deadline of a worker that was left behind may have been freed. */
	struct wss_deadline copy = { .allowed_ns = work->deadline ? work->deadline->allowed_ns : 0 };
	bool in_time;
	int r = 0;

	if (!workers)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_worker_start(workers, work, &worker, err) < 0) {
		wss_workers_free(workers);
		return -1;
	}
	in_time = work_wait(workers, worker, cancel_ns);
	copy.step = work->deadline ? work->deadline->step : NULL;
	if (in_time || !wss_worker_leave(worker, NULL))
		wss_worker_join(worker);
	else if (copy.allowed_ns)
		r = wss_deadline_error(&copy, err);
	else
		r = wss_error_set(err, WSS_ERR_TIMEOUT, "did not end when it was cancelled");
	wss_workers_free(workers);
	return r;
}
