/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/budget.h"
#include "base/guard.h"
#include "base/stop.h"
#include "base/thread.h"

static atomic_int go, ended, released;

static void quick(void *opaque)
{
	*(int *)opaque = 42;
}

static void hang(void *unused)
{
	(void)unused;
	while (!go)
		usleep(1000);
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
		usleep(1000);
	assert_true(*what);
}

static void test_in_time(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	int number = 0;

	(void)unused;
	assert_int_equal(wss_guard_run(quick, &number, release, 10 * WSS_NS_PER_S, 0, &err), 0);
	assert_int_equal(number, 42);
	assert_int_equal(released, 0);
}

/* Left behind, with what it uses; that is released when it ends after all. */
static void test_late(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	void *opaque = malloc(100);
	uint64_t began = wss_clock_now_ns();

	(void)unused;
	assert_int_equal(wss_guard_run(hang, opaque, release, 100 * WSS_NS_PER_MS, 0, &err), -1);
	assert_error(&err, WSS_ERR_TIMEOUT, "100 ms");
	assert_true(wss_clock_now_ns() - began < 8 * WSS_NS_PER_S);
	assert_int_equal(ended, 0);
	assert_int_equal(released, 0);
	go = 1;
	wait_for(&released);
	assert_int_equal(ended, 1);
}

/* A stop request shortens what is left of the time to so much. */
static void test_stopped(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	void *opaque = malloc(100);
	uint64_t began = wss_clock_now_ns();

	(void)unused;
	go = ended = released = 0;
	wss_stop_install();
	raise(SIGTERM);
	assert_int_equal(wss_guard_run(hang, opaque, release, 50 * WSS_NS_PER_S,
				       100 * WSS_NS_PER_MS, &err),
			 -1);
	assert_error(&err, WSS_ERR_TIMEOUT, "not done");
	assert_true(wss_clock_now_ns() - began < 8 * WSS_NS_PER_S);
	go = 1;
	wait_for(&released);
	assert_int_equal(ended, 1);
}

struct work {
	struct wss_budget budget;
	bool hangs;
};

/* Enters it late, and leaves it only when it may. */
static void tend_budget(void *opaque)
{
	struct work *work = opaque;

	/* Time outside does not count. */
	usleep(300000);
	wss_budget_enter(&work->budget, 0);
	if (work->hangs)
		hang(NULL);
	wss_budget_leave();
}

/* Late is who has not left the budget a while after it ran out. */
static void test_budget(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct work *work = calloc(1, sizeof(*work));
	uint64_t began;

	(void)unused;
	go = ended = released = 0;
	wss_budget_init(&work->budget, 100 * WSS_NS_PER_MS);
	assert_int_equal(wss_guard_run_within(tend_budget, work, release, 0, &err), 0);
	assert_false(wss_budget_spent(&work->budget));
	work->hangs = true;
	began = wss_clock_now_ns();
	assert_int_equal(wss_guard_run_within(tend_budget, work, release, 0, &err), -1);
	assert_error(&err, WSS_ERR_TIMEOUT, "deadline of 100 ms");
	assert_in_range(wss_clock_now_ns() - began, 400 * WSS_NS_PER_MS + WSS_GUARD_GRACE_NS,
			8 * WSS_NS_PER_S);
	assert_int_equal(released, 0);
	go = 1;
	wait_for(&released);
}

/* Also those that were left behind. */
static int end_threads(void **unused)
{
	(void)unused;
	return wss_threads_end(20 * WSS_NS_PER_S) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_time),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_stopped),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, end_threads);
}
