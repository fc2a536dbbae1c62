/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/thread.h"

/* Freed by its last user: the owner, or a worker that was left behind. */
struct wss_workers {
	atomic_int references;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool woken; /* set since the last wait; under the lock */
};

struct wss_worker {
	struct wss_workers *workers;
	struct wss_work work;
	struct wss_thread *thread;
	bool done, left; /* under the group's lock */
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

void wss_workers_free(struct wss_workers *workers)
{
	if (!workers || atomic_fetch_sub(&workers->references, 1) != 1)
		return;
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

static void worker_run(void *opaque)
{
	struct wss_worker *worker = opaque;
	struct wss_workers *workers = worker->workers;
	bool left;

	worker->work.run(worker->work.opaque);
	pthread_mutex_lock(&workers->lock);
	worker->done = true;
	left = worker->left;
	wake_locked(workers);
	pthread_mutex_unlock(&workers->lock);
	if (left) {
		worker->work.release(worker->work.opaque);
		worker_free(worker);
	}
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
	if (wss_thread_start(worker_run, worker, &worker->thread, err) < 0) {
		worker_free(worker);
		return -1;
	}
	*ret_worker = worker;
	return 0;
}

bool wss_worker_done(struct wss_worker *worker)
{
	bool done;

	pthread_mutex_lock(&worker->workers->lock);
	done = worker->done;
	pthread_mutex_unlock(&worker->workers->lock);
	return done;
}

bool wss_worker_late(struct wss_worker *worker)
{
	return wss_deadline_overrun(worker->work.deadline, WSS_WORKER_GRACE_NS);
}

void wss_worker_join(struct wss_worker *worker)
{
	wss_thread_join(worker->thread);
	worker_free(worker);
}

bool wss_worker_leave(struct wss_worker *worker, struct wss_cancel *cancel)
{
	struct wss_thread *thread = worker->thread;
	pthread_mutex_t *lock = &worker->workers->lock;
	bool done;

	pthread_mutex_lock(lock);
	done = worker->done;
	worker->left = !done;
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
	pthread_mutex_lock(&workers->lock);
	if (!workers->woken)
		wss_cond_wait_a_moment(&workers->changed, &workers->lock);
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
	int r = 0;

	if (!workers)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_worker_start(workers, work, &worker, err) < 0) {
		wss_workers_free(workers);
		return -1;
	}
	if (work_wait(workers, worker, cancel_ns) || !wss_worker_leave(worker, NULL))
		wss_worker_join(worker);
	else if (copy.allowed_ns)
		r = wss_deadline_error(&copy, err);
	else
		r = wss_error_set(err, WSS_ERR_TIMEOUT, "did not end when it was cancelled");
	wss_workers_free(workers);
	return r;
}
