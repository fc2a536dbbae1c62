/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lets a test say what time it is in a program that loads this by LD_PRELOAD: the real time and what the test has added
 * to it, in the file WSS_CLOCK. The test sees there when the program has noticed: what a thread has added to the real
 * time when it went to sleep until a time of its own. Both are in ns, one after the other, in the machine's order.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define NS_PER_S 1000000000ULL
/* How long a sleep lasts at most, so that it notices what is added. */
#define NAP_NS 10000000

static struct {
	volatile uint64_t added_ns, noticed_ns;
} * file;

/* What the thread has last been told. */
static _Thread_local uint64_t told_ns;

static __attribute__((constructor)) void clock_open(void)
{
	const char *path = getenv("WSS_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		abort();
	close(fd);
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = REAL(clock_gettime)(id, ret);
	uint64_t ns;

	if (r != 0 || (id != CLOCK_BOOTTIME && id != CLOCK_MONOTONIC))
		return r;
	told_ns = file->added_ns;
	ns = (uint64_t)ret->tv_nsec + told_ns;
	ret->tv_sec += (time_t)(ns / NS_PER_S);
	ret->tv_nsec = (long)(ns % NS_PER_S);
	return 0;
}

/* Sleepers look at the clock again afterwards. */
EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	if (timeout) {
		file->noticed_ns = told_ns;
		if (timeout->tv_sec || timeout->tv_nsec > NAP_NS)
			timeout = &nap;
	}
	return REAL(ppoll)(fds, n, timeout, mask);
}
