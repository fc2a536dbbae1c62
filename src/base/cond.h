/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits for another thread in short steps, between which the caller can check for a stop
 * request. Uses a clock that cannot be set.
 */
#ifndef WSS_BASE_COND_H
#define WSS_BASE_COND_H

#include <pthread.h>

/* Like pthread_cond_init(), for a condition to be used with wss_cond_wait_a_moment(). */
void wss_cond_init(pthread_cond_t *cond);

/* Waits at most 50 ms for the condition to be signalled; the caller holds the lock. */
void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock);

#endif
