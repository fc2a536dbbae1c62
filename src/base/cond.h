/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for another thread in short steps, between which a stop request is seen; by a clock
 * that nobody sets.
 */
#ifndef WSS_BASE_COND_H
#define WSS_BASE_COND_H

#include <pthread.h>

/* As pthread_cond_init(), of a condition that wss_cond_wait_a_moment() can wait for. */
void wss_cond_init(pthread_cond_t *cond);

/* Under the lock: returns once the condition is signalled, or 50 ms later. */
void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock);

#endif
