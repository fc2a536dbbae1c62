/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/cond.h"

#include <time.h>

#include "base/clock.h"

void wss_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool wss_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t timeout_ns)
{
	struct timespec ts;
	bool signalled;

	if (wss_clock_wait_injected(cond, lock, timeout_ns, &signalled))
		return signalled;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += (time_t)(timeout_ns / WSS_NS_PER_S);
	ts.tv_nsec += (long)(timeout_ns % WSS_NS_PER_S);
	if (ts.tv_nsec >= (long)WSS_NS_PER_S) {
		ts.tv_nsec -= (long)WSS_NS_PER_S;
		ts.tv_sec++;
	}
	return pthread_cond_timedwait(cond, lock, &ts) == 0;
}

void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	wss_cond_wait_ns(cond, lock, WSS_COND_MOMENT_NS);
}
