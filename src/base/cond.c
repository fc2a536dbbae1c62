/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/cond.h"

#include <time.h>

#include "base/clock.h"

#define MOMENT_NS (50 * (long)WSS_NS_PER_MS)

void wss_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += MOMENT_NS;
	if (ts.tv_nsec >= (long)WSS_NS_PER_S) {
		ts.tv_nsec -= (long)WSS_NS_PER_S;
		ts.tv_sec++;
	}
	pthread_cond_timedwait(cond, lock, &ts);
}
