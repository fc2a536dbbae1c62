/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <dirent.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

#define MANY 100

static atomic_int ran;
static sem_t go;

static void quick(void *opaque)
{
	ran += *(int *)opaque;
}

static void wait_to_go(void *unused)
{
	while (sem_wait(&go) < 0)
		;
	ran++;
}

static struct wss_thread *start(void (*fn)(void *opaque), void *opaque)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_thread *thread = NULL;

	if (wss_thread_start(fn, opaque, &thread, &err) < 0)
		fail_msg("%s", err.text);
	return thread;
}

static unsigned count_threads(void)
{
	wss_auto_dir DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	return n;
}

/* The kernel may still list a thread that was joined. */
static void wait_for_threads(unsigned n)
{
	uint64_t deadline_ns = wss_clock_now_ns() + 300 * WSS_NS_PER_S;

	while (count_threads() != n && wss_clock_now_ns() < deadline_ns)
		usleep(1000);
	assert_int_equal(count_threads(), n);
}

TEST(test_join)
{
	int two = 2;

	ran = 0;
	wss_thread_join(start(quick, &two));
	assert_int_equal(ran, 2);
	assert_true(wss_threads_end(0));
}

/* Threads that were left are joined, at the latest at the end. */
TEST(test_leave)
{
	unsigned before = count_threads();
	int one = 1;

	ran = 0;
	for (int i = 0; i < MANY; i++)
		wss_thread_leave(start(quick, &one));
	assert_true(wss_threads_end(20 * WSS_NS_PER_S));
	assert_int_equal(ran, MANY);
	wait_for_threads(before);
}

/* A thread that hangs is reported, and can still end later. */
TEST(test_hang)
{
	unsigned before = count_threads();

	ran = 0;
	assert_int_equal(sem_init(&go, 0, 0), 0);
	for (int i = 0; i < 3; i++)
		wss_thread_leave(start(wait_to_go, NULL));
	assert_false(wss_threads_end(10 * WSS_NS_PER_MS));
	assert_int_equal(ran, 0);
	for (int i = 0; i < 3; i++)
		sem_post(&go);
	assert_true(wss_threads_end(20 * WSS_NS_PER_S));
	assert_int_equal(ran, 3);
	wait_for_threads(before);
	sem_destroy(&go);
}

int main(void)
{
	return tests_run();
}
