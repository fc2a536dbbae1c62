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
struct runner {
	struct runner *next;
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
	struct runner *idle;  /* the last one first; under the lock */
	struct runner *ended; /* to be joined; under the lock */
};

struct wss_worker {
	struct wss_workers *workers;
	struct wss_work work;
	struct runner *runner; /* until it is done */
	atomic_bool done;      /* set under the group's lock */
	bool left;	       /* under the group's lock */
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

static void runner_free(struct runner *runner)
{
	pthread_cond_destroy(&runner->called);
	free(runner);
}

/* Joins a list of threads, which end without waiting for anybody. */
static void runner_join(struct runner *runner)
{
	for (struct runner *next; runner; runner = next) {
		next = runner->next;
		wss_thread_join(runner->thread);
		runner_free(runner);
	}
}

/* Sends the idle threads home. Each moves itself to the list of those that have ended. */
static void workers_close(struct wss_workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	workers->closing = true;
	for (struct runner *runner = workers->idle; runner; runner = runner->next)
		pthread_cond_signal(&runner->called);
	while (workers->idle)
		pthread_cond_wait(&workers->changed, &workers->lock);
	pthread_mutex_unlock(&workers->lock);
	runner_join(workers->ended);
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
static bool runner_wait(struct runner *runner)
{
	struct wss_workers *workers = runner->workers;
	struct runner **link = &workers->idle;
	bool waited_enough = false;

	runner->next = workers->idle;
	workers->idle = runner;
	pthread_mutex_unlock(&workers->lock);
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_lock(&workers->lock);
	while (!runner->worker && !workers->closing && !waited_enough)
		waited_enough = !wss_cond_wait_ns(&runner->called, &workers->lock, IDLE_NS);
	if (runner->worker)
		return true;
	while (*link != runner)
		link = &(*link)->next;
	*link = runner->next;
	runner->next = workers->ended;
	workers->ended = runner;
	/* For workers_close(): nobody else waits for this. */
	if (workers->closing)
		pthread_cond_broadcast(&workers->changed);
	return false;
}

/*
 * Does its work. False: the worker was left behind, and the thread with it, which neither takes other work
 * nor is joined by its group.
 */
static bool runner_work(struct runner *runner)
{
	struct wss_workers *workers = runner->workers;
	struct wss_worker *worker = runner->worker;
	bool left;

	worker->work.run(worker->work.opaque);
	pthread_mutex_lock(&workers->lock);
	worker->done = true;
	workers->finished++;
	left = worker->left;
	runner->worker = NULL;
	if (!left) {
		workers->woken = true;
		return true;
	}
	wake_locked(workers);
	pthread_mutex_unlock(&workers->lock);
	worker->work.release(worker->work.opaque);
	worker_free(worker);
	runner_free(runner);
	return false;
}

static void runner_run(void *opaque)
{
	struct runner *runner = opaque;
	pthread_mutex_t *lock = &runner->workers->lock;
	bool has_work;

	do {
		if (!runner_work(runner))
			return;
		has_work = runner_wait(runner);
		pthread_mutex_unlock(lock);
	} while (has_work);
}

/* An idle thread of the group gets the worker. False: there is none. */
static bool worker_call_idle(struct wss_worker *worker)
{
	struct wss_workers *workers = worker->workers;
	struct runner *runner, *ended;

	pthread_mutex_lock(&workers->lock);
	runner = workers->idle;
	if (runner) {
		workers->idle = runner->next;
		runner->worker = worker;
		worker->runner = runner;
	}
	ended = workers->ended;
	workers->ended = NULL;
	pthread_mutex_unlock(&workers->lock);
	/* Without the lock, for which it would have to wait. It ends only in runner_join(), which nobody else calls. */
	if (runner)
		pthread_cond_signal(&runner->called);
	runner_join(ended);
	return runner != NULL;
}

static int worker_hire(struct wss_worker *worker, struct wss_error *err)
{
	struct runner *runner = calloc(1, sizeof(*runner));

	if (!runner)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_cond_init(&runner->called);
	runner->workers = worker->workers;
	runner->worker = worker;
	worker->runner = runner;
	if (wss_thread_start(runner_run, runner, &runner->thread, err) == 0)
		return 0;
	runner_free(runner);
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
		thread = worker->runner->thread;
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
	struct wss_deadline copy = {.allowed_ns = work->deadline ? work->deadline->allowed_ns : 0};
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
