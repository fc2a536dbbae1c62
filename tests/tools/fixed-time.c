/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops the time of day, at the seconds since the epoch in WSS_TIME, in a program that loads this by LD_PRELOAD: what it prints or
 * stores of now is the same in each run. Deadlines and sleeps go by other clocks, which go on.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static time_t fixed_seconds(void)
{
	const char *text = getenv("WSS_TIME");

	if (!text)
		abort();
	return (time_t)strtoll(text, NULL, 10);
}

EXPORT time_t time(time_t *ret)
{
	time_t now = fixed_seconds();

	if (ret)
		*ret = now;
	return now;
}

EXPORT int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_REALTIME)
		return REAL(clock_gettime)(id, ret);
	*ret = (struct timespec){.tv_sec = fixed_seconds()};
	return 0;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	(void)zone;
	*ret = (struct timeval){.tv_sec = fixed_seconds()};
	return 0;
}
