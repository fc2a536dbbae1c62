/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A clock for tests of threads and of processes that talk to each other. It is the real one, but waits for those of
 * them that are ready to run while others have the processors, so that a busy machine makes nothing late. What they
 * compute takes time, and so does what they sleep. In a child of fork() it is the real one again.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PATIENT_TICK_NS (10 * WSS_NS_PER_MS)

static struct {
	pthread_t ticker;
	pid_t pid;     /* of the process that runs it; 0: nobody does */
	bool children; /* it waits for the children of this process, too */
	pthread_mutex_t lock;
	/* Its time and the real one at the last tick, and how much of the real time counts since; under the lock. */
	uint64_t now_ns, real_ns;
	double pace;
	bool ending; /* likewise */
} patient_clock = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The real clock, for a struct wss_clock_source that invents only a part of it. */
static inline uint64_t real_now_ns(void *unused)
{
	struct timespec now;

	(void)unused;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * WSS_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The caller holds the lock. A ticker that does not come needs a processor itself. */
static inline uint64_t patient_read(uint64_t real_ns)
{
	uint64_t since_ns = real_ns - patient_clock.real_ns;

	if (since_ns > 2 * PATIENT_TICK_NS)
		since_ns = 2 * PATIENT_TICK_NS;
	return patient_clock.now_ns + (uint64_t)((double)since_ns * patient_clock.pace);
}

static inline uint64_t patient_now_ns(void *unused)
{
	uint64_t now_ns;

	if (patient_clock.pid != getpid())
		return real_now_ns(unused);
	pthread_mutex_lock(&patient_clock.lock);
	now_ns = patient_read(real_now_ns(unused));
	pthread_mutex_unlock(&patient_clock.lock);
	return now_ns;
}

/* Reads /proc/ID/FILE into text; "" if that is gone. */
static inline void patient_proc(const char *id, const char *file, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%.32s/%s", id, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
}

/* Whether a thread or process runs, could do so, or waits for a disk. */
static inline bool patient_is_ready(const char *id)
{
	char text[256];
	const char *state;

	patient_proc(id, "stat", text, sizeof(text));
	state = strrchr(text, ')');
	return state && (state[2] == 'R' || state[2] == 'D');
}

/* Adds the processor time of the children. Returns whether one is ready. */
static inline bool patient_children(uint64_t *used_ns)
{
	char self[32], list[4096], text[64];
	bool ready = false;

	snprintf(self, sizeof(self), "self/task/%d", (int)getpid());
	patient_proc(self, "children", list, sizeof(list));
	for (char *rest, *id = strtok_r(list, " ", &rest); id; id = strtok_r(NULL, " ", &rest)) {
		ready = ready || patient_is_ready(id);
		patient_proc(id, "schedstat", text, sizeof(text));
		*used_ns += strtoull(text, NULL, 10);
	}
	return ready;
}

/* Whether anybody but this thread is ready; *ret_used_ns is their processor time so far. */
static inline bool patient_others(uint64_t *ret_used_ns)
{
	wss_auto_dir DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool ready = false;

	while (tasks && !ready && (task = readdir(tasks))) {
		char id[32];

		snprintf(id, sizeof(id), "self/task/%.16s", task->d_name);
		ready = task->d_name[0] != '.' && atoi(task->d_name) != gettid() &&
			patient_is_ready(id);
	}
	*ret_used_ns = wss_clock_process_ns() - wss_clock_thread_ns();
	if (patient_clock.children && patient_children(ret_used_ns))
		ready = true;
	return ready;
}

static inline void *patient_tick(void *unused)
{
	uint64_t before_ns;
	bool ending = false;

	patient_others(&before_ns);
	while (!ending) {
		uint64_t used_ns, real_ns;
		bool ready;

		usleep(PATIENT_TICK_NS / 1000);
		ready = patient_others(&used_ns);
		pthread_mutex_lock(&patient_clock.lock);
		real_ns = real_now_ns(NULL);
		patient_clock.now_ns = patient_read(real_ns);
		/* As they have just had processors, so they will. What children have used is lost when they end. */
		patient_clock.pace = used_ns > before_ns
					     ? (double)(used_ns - before_ns) /
						       (double)(real_ns - patient_clock.real_ns)
					     : 0;
		if (!ready || patient_clock.pace > 1)
			patient_clock.pace = 1;
		patient_clock.real_ns = real_ns;
		before_ns = used_ns;
		ending = patient_clock.ending;
		pthread_mutex_unlock(&patient_clock.lock);
	}
	return unused;
}

/* The setup and the teardown of each test that uses it. */
static inline int patient_begin(void **unused)
{
	static const struct wss_clock_source source = {.now_ns = patient_now_ns};

	(void)unused;
	patient_clock.now_ns = patient_clock.real_ns = real_now_ns(NULL);
	patient_clock.pace = 1;
	patient_clock.ending = false;
	if (pthread_create(&patient_clock.ticker, NULL, patient_tick, NULL) != 0)
		return -1;
	patient_clock.pid = getpid();
	wss_clock_inject(&source);
	return 0;
}

static inline int patient_end(void **unused)
{
	(void)unused;
	if (patient_clock.pid != getpid())
		return 0;
	pthread_mutex_lock(&patient_clock.lock);
	patient_clock.ending = true;
	pthread_mutex_unlock(&patient_clock.lock);
	pthread_join(patient_clock.ticker, NULL);
	wss_clock_inject(NULL);
	patient_clock.pid = 0;
	return 0;
}
