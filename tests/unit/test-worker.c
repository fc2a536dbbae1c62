/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "base/thread.h"
#include "base/worker.h"
#include "tests/leaping.h"

static atomic_int go, ended, released;

static void quick(void *opaque)
{
	*(int *)opaque = 42;
}

static void hang(void *unused)
{
	while (!go)
		leaping_sleep_ns(WSS_NS_PER_MS);
	ended = 1;
}

static void release(void *opaque)
{
	released++;
	free(opaque);
}

static void wait_for(atomic_int *what)
{
	uint64_t deadline = wss_clock_now_ns() + 10 * WSS_NS_PER_S;

	while (!*what && wss_clock_now_ns() < deadline)
		leaping_sleep_ns(WSS_NS_PER_MS);
	assert_true(*what);
}

/* Work with memory of its own, which a worker that is left behind keeps. */
struct task {
	struct wss_deadline deadline;
	uint64_t idle_ns; /* before its deadline starts */
	bool hangs;
};

static void task_run(void *opaque)
{
	struct task *task = opaque;

	leaping_sleep_ns(task->idle_ns);
	wss_deadline_run(&task->deadline, 0);
	if (task->hangs)
		hang(NULL);
	wss_deadline_pause(&task->deadline);
}

static struct task *task_new(uint64_t allowed_ns, bool hangs)
{
	struct task *task = calloc(1, sizeof(*task));

	assert_non_null(task);
	wss_deadline_allow(&task->deadline, allowed_ns);
	task->hangs = hangs;
	go = ended = released = 0;
	return task;
}

static int task_do(struct task *task, uint64_t cancel_ns, struct wss_error *err)
{
	const struct wss_work work = {task_run, release, task, &task->deadline};

	return wss_work_run(&work, cancel_ns, err);
}

static int work_while_stopping(void)
{
	struct task *task = task_new(50 * WSS_NS_PER_S, true);
	struct wss_error err = WSS_ERROR_INIT;
	bool left;

	wss_stop_install();
	raise(SIGTERM);
	left = task_do(task, 100 * WSS_NS_PER_MS, &err) == -1 && err.code == WSS_ERR_TIMEOUT;
	go = 1;
	return left && wss_threads_end(20 * WSS_NS_PER_S) ? 0 : 1;
}

/*
 * The stop signal is at the root of every chain. The first test: the child has none of the threads that its
 * parent leaves behind later.
 */
TEST(test_stopped)
{
	leaping_end(NULL);
	assert_int_equal(in_child(work_while_stopping), 0);
}

TEST(test_in_time)
{
	struct wss_error err = WSS_ERROR_INIT;
	int number = 0;
	const struct wss_work work = {quick, release, &number, NULL};

	assert_int_equal(wss_work_run(&work, 0, &err), 0);
	assert_int_equal(number, 42);
	assert_int_equal(released, 0);
}

/* A worker is left behind with what it uses, and releases that when it ends after all. */
TEST(test_late)
{
	struct task *task = task_new(100 * WSS_NS_PER_MS, true);
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t began = wss_clock_now_ns();

	assert_int_equal(task_do(task, 0, &err), -1);
	assert_error(&err, WSS_ERR_TIMEOUT, "timed out after 100 ms");
	assert_in_range(wss_clock_now_ns() - began, 100 * WSS_NS_PER_MS + WSS_WORKER_GRACE_NS,
			8 * WSS_NS_PER_S);
	assert_int_equal(ended, 0);
	assert_int_equal(released, 0);
	go = 1;
	wait_for(&released);
	assert_int_equal(ended, 1);
}

/* Time that passes while the deadline is paused does not count. */
TEST(test_paused)
{
	struct task *task = task_new(100 * WSS_NS_PER_MS, false);
	struct wss_error err = WSS_ERROR_INIT;

	task->idle_ns = 1500 * WSS_NS_PER_MS;
	assert_int_equal(task_do(task, 0, &err), 0);
	assert_false(wss_deadline_spent(&task->deadline));
	free(task);
}

/* After a cancel request the work has this much time, whatever its deadline. */
TEST(test_cancelled)
{
	struct task *task = task_new(50 * WSS_NS_PER_S, true);
	struct wss_cancel cancel = WSS_CANCEL_INIT;
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t began = wss_clock_now_ns();

	assert_int_equal(wss_cancel_open(&cancel, NULL, &err), 0);
	task->deadline.cancel = &cancel;
	wss_cancel_request(&cancel);
	assert_int_equal(task_do(task, 100 * WSS_NS_PER_MS, &err), -1);
	assert_int_equal(err.code, WSS_ERR_TIMEOUT);
	assert_true(wss_clock_now_ns() - began < 8 * WSS_NS_PER_S);
	go = 1;
	wait_for(&released);
	assert_int_equal(ended, 1);
	wss_cancel_close(&cancel);
}

/* If one of several hangs, the others still finish and are joined. */
TEST(test_group)
{
	struct wss_workers *workers = wss_workers_new();
	struct task *tasks[3];
	struct wss_worker *list[3];
	size_t joined = 0;

	for (int i = 0; i < 3; i++) {
		tasks[i] = task_new(100 * WSS_NS_PER_MS, i == 1);
		const struct wss_work work = {task_run, release, tasks[i], &tasks[i]->deadline};

		assert_int_equal(wss_worker_start(workers, &work, &list[i], NULL), 0);
	}
	while (!wss_worker_late(list[1])) {
		wss_workers_wait(workers);
		for (int i = 0; i < 3; i += 2) {
			if (!list[i] || !wss_worker_done(list[i]))
				continue;
			wss_worker_join(list[i]);
			list[i] = NULL;
			free(tasks[i]);
			joined++;
		}
	}
	assert_int_equal(joined, 2);
	assert_false(wss_worker_done(list[1]));
	assert_true(wss_worker_leave(list[1], NULL));
	/* Freed before the worker that was left behind. */
	wss_workers_free(workers);
	go = 1;
	wait_for(&released);
}

/* A request to a parent holds for its children, not the other way round. */
TEST(test_chain)
{
	struct wss_cancel parent = WSS_CANCEL_INIT, child = WSS_CANCEL_INIT;
	struct pollfd fds[WSS_CANCEL_CHAIN_MAX];
	uint64_t began = wss_clock_now_ns();

	assert_int_equal(wss_cancel_open(&parent, NULL, NULL), 0);
	assert_int_equal(wss_cancel_open(&child, &parent, NULL), 0);
	assert_int_equal(wss_cancel_sleep_until_ns(&child, began + WSS_NS_PER_MS), 0);
	assert_true(wss_clock_now_ns() >= began + WSS_NS_PER_MS);
	assert_int_equal(poll(fds, wss_cancel_poll_fds(&child, fds), 0), 0);
	wss_cancel_request(&child);
	assert_true(wss_cancel_requested(&child));
	assert_false(wss_cancel_requested(&parent));
	wss_cancel_close(&child);
	assert_int_equal(wss_cancel_open(&child, &parent, NULL), 0);
	wss_cancel_request(&parent);
	assert_true(wss_cancel_requested(&child));
	assert_int_equal(poll(fds, wss_cancel_poll_fds(&child, fds), 0), 1);
	assert_int_equal(wss_cancel_sleep_until_ns(&child, began + 50 * WSS_NS_PER_S), -1);
	assert_true(wss_clock_now_ns() - began < 20 * WSS_NS_PER_S);
	wss_cancel_close(&child);
	wss_cancel_close(&parent);
}

/* Also those that were left behind. */
static int end_threads(void **unused)
{
	return wss_threads_end(20 * WSS_NS_PER_S) ? leaping_end(unused) : -1;
}

int main(void)
{
	return tests_run_each(leaping_begin, end_threads);
}
