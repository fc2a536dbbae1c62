/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits for another thread in short steps, between which the caller can see a stop request.
 * The clock is one that nobody can set.
 */
#ifndef WSS_BASE_COND_H
#define WSS_BASE_COND_H

#include <pthread.h>

/* Like pthread_cond_init(), for a condition that wss_cond_wait_a_moment() waits for. */
void wss_cond_init(pthread_cond_t *cond);

/* Waits under the lock until the condition is signalled, at most 50 ms. */
void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock);

#endif
