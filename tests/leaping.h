/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A clock for tests of threads that wait for each other and for times. While one of them is ready to run it stands
 * still, but for a microsecond with each look at it; once all of them wait, it leaps to the time for which the first of
 * them waits. So hours take moments, and nothing is late on a slow or busy machine. What is to wait by this clock must
 * do so through base/clock.h, or by leaping_sleep_ns(); a thread that waits for another process must not sleep while it
 * does, lest the clock leap. In a child of fork() it is the real one.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "base/cond.h"
#include "base/number.h"
#include "tests/patient.h"

#define LEAPING_LOOK_US 100
#define LEAPING_LOOK_NS 1000
#define LEAPING_LONG_NS (250 * WSS_NS_PER_MS)
#define LEAPING_FDS_MAX 8

struct leaping_sleeper {
	uint64_t when_ns;
	pthread_cond_t *cond; /* NULL: it polls fd */
	int fd;
	bool over; /* its time has come */
	struct leaping_sleeper *next;
};

static struct {
	pthread_t leaper;
	pid_t pid; /* of the process that runs it; 0: nobody does */
	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t now_ns;
	struct leaping_sleeper *sleepers;
	pid_t sleepers_pid; /* of the process whose threads they are */
	bool ending;
} leaping_clock = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline uint64_t leaping_now_ns(void *unused)
{
	uint64_t now_ns;

	if (leaping_clock.pid != getpid())
		return real_now_ns(unused);
	pthread_mutex_lock(&leaping_clock.lock);
	now_ns = leaping_clock.now_ns += LEAPING_LOOK_NS;
	pthread_mutex_unlock(&leaping_clock.lock);
	return now_ns;
}

/* False: its time has come already. */
static inline bool leaping_lie_down(struct leaping_sleeper *sleeper, uint64_t timeout_ns)
{
	pthread_mutex_lock(&leaping_clock.lock);
	sleeper->when_ns = wss_u64_add(leaping_clock.now_ns, timeout_ns);
	/* Threads that only look now and then do so together. */
	if (sleeper->cond && timeout_ns >= LEAPING_LONG_NS)
		sleeper->when_ns += WSS_COND_MOMENT_NS - sleeper->when_ns % WSS_COND_MOMENT_NS;
	sleeper->next = leaping_clock.sleepers;
	if (timeout_ns)
		leaping_clock.sleepers = sleeper;
	pthread_mutex_unlock(&leaping_clock.lock);
	return timeout_ns != 0;
}

/* Returns whether its time came before anything else woke it. */
static inline bool leaping_get_up(struct leaping_sleeper *sleeper)
{
	struct leaping_sleeper **link = &leaping_clock.sleepers;

	pthread_mutex_lock(&leaping_clock.lock);
	while (*link != sleeper)
		link = &(*link)->next;
	*link = sleeper->next;
	pthread_mutex_unlock(&leaping_clock.lock);
	return sleeper->over;
}

static inline bool leaping_wait(void *unused, pthread_cond_t *cond, pthread_mutex_t *lock,
				uint64_t timeout_ns)
{
	struct leaping_sleeper sleeper = {.cond = cond};

	(void)unused;
	if (!leaping_lie_down(&sleeper, timeout_ns))
		return false;
	pthread_cond_wait(cond, lock);
	return !leaping_get_up(&sleeper);
}

static inline void leaping_poll(void *unused, struct pollfd *fds, nfds_t n, uint64_t timeout_ns)
{
	wss_auto_close int fd = eventfd(0, EFD_CLOEXEC);
	struct leaping_sleeper sleeper = {.fd = fd};
	struct pollfd all[LEAPING_FDS_MAX + 1] = {{.fd = fd, .events = POLLIN}};

	(void)unused;
	if (fd < 0 || n > LEAPING_FDS_MAX)
		abort();
	if (leaping_clock.pid != getpid()) {
		poll(fds, n, (int)(timeout_ns / WSS_NS_PER_MS) + 1);
		return;
	}
	if (n)
		memcpy(all + 1, fds, n * sizeof(*fds));
	if (leaping_lie_down(&sleeper, timeout_ns)) {
		poll(all, n + 1, -1);
		leaping_get_up(&sleeper);
	} else {
		poll(all, n + 1, 0);
	}
	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = all[i + 1].revents;
}

static inline void leaping_sleep_ns(uint64_t ns)
{
	leaping_poll(NULL, NULL, 0, ns);
}

/* Whether all threads but this one wait, or did when they were looked at. */
static inline bool leaping_all_wait(void)
{
	wss_auto_dir DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;

	while (tasks && (task = readdir(tasks))) {
		char id[32];

		snprintf(id, sizeof(id), "self/task/%.16s", task->d_name);
		if (task->d_name[0] != '.' && atoi(task->d_name) != gettid() &&
		    patient_is_ready(id))
			return false;
	}
	return tasks != NULL;
}

/* How often other threads have stopped running. */
static inline long leaping_turns(void)
{
	struct rusage all, own;

	getrusage(RUSAGE_THREAD, &own);
	getrusage(RUSAGE_SELF, &all);
	return all.ru_nvcsw + all.ru_nivcsw - own.ru_nvcsw - own.ru_nivcsw;
}

/* If none has stopped since before the first was looked at, none has run: all wait at the same time, and none wakes another. */
static inline bool leaping_is_time(void)
{
	long turns = leaping_turns();

	return leaping_all_wait() && leaping_turns() == turns;
}

static inline void leaping_leap(void)
{
	uint64_t when_ns = UINT64_MAX;

	for (struct leaping_sleeper *s = leaping_clock.sleepers; s; s = s->next)
		when_ns = wss_u64_min(when_ns, s->when_ns);
	for (struct leaping_sleeper *s = leaping_clock.sleepers; s; s = s->next) {
		if (s->when_ns > wss_u64_max(when_ns, leaping_clock.now_ns))
			continue;
		s->over = true;
		if (s->cond)
			pthread_cond_broadcast(s->cond);
		else
			eventfd_write(s->fd, 1);
	}
	if (leaping_clock.sleepers)
		leaping_clock.now_ns = wss_u64_max(when_ns, leaping_clock.now_ns);
}

static inline void *leaping_run(void *unused)
{
	bool ending = false;

	while (!ending) {
		bool leap = leaping_is_time();

		pthread_mutex_lock(&leaping_clock.lock);
		if (leap)
			leaping_leap();
		ending = leaping_clock.ending;
		pthread_mutex_unlock(&leaping_clock.lock);
		usleep(LEAPING_LOOK_US);
	}
	return unused;
}

/* Computing takes no time: what the real processor does is another one on each machine. */
static inline uint64_t leaping_used_ns(void *unused)
{
	(void)unused;
	return 0;
}

/* What a struct wss_clock_source has of it; LEAPING_TIMES for a test with a processor time of its own. */
#define LEAPING_TIMES .now_ns = leaping_now_ns, .wait = leaping_wait, .poll = leaping_poll
#define LEAPING_SOURCE LEAPING_TIMES, .thread_ns = leaping_used_ns, .process_ns = leaping_used_ns

/*
 * The setup and the teardown of each test that uses it. A test that fails leaves its threads behind: they sleep on, and
 * wake in the next one, as if its clock had stood still in between.
 */
static inline int leaping_begin(void **unused)
{
	static const struct wss_clock_source source = {LEAPING_SOURCE};

	(void)unused;
	pthread_mutex_lock(&leaping_clock.lock);
	leaping_clock.now_ns = wss_u64_max(leaping_clock.now_ns, real_now_ns(NULL));
	if (leaping_clock.sleepers_pid != getpid())
		leaping_clock.sleepers = NULL;
	leaping_clock.sleepers_pid = getpid();
	leaping_clock.ending = false;
	pthread_mutex_unlock(&leaping_clock.lock);
	leaping_clock.pid = getpid();
	if (pthread_create(&leaping_clock.leaper, NULL, leaping_run, NULL) != 0)
		return -1;
	wss_clock_inject(&source);
	return 0;
}

static inline int leaping_end(void **unused)
{
	(void)unused;
	if (leaping_clock.pid != getpid())
		return 0;
	pthread_mutex_lock(&leaping_clock.lock);
	leaping_clock.ending = true;
	pthread_mutex_unlock(&leaping_clock.lock);
	pthread_join(leaping_clock.leaper, NULL);
	wss_clock_inject(NULL);
	leaping_clock.pid = 0;
	return 0;
}
