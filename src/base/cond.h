/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits for another thread in short steps, between which the caller can check for a stop
 * request. Uses a clock that cannot be set.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* A delay that nobody notices. */
#define WSS_COND_MOMENT_NS (50 * WSS_NS_PER_MS)

/* Like pthread_cond_init(), for a condition to be used with the functions below. */
void wss_cond_init(pthread_cond_t *cond);

/* Waits a moment for the condition to be signalled; the caller holds the lock. */
void wss_cond_wait_a_moment(pthread_cond_t *cond, pthread_mutex_t *lock);

/* Waits at most timeout_ns for that; false: the time is over. The caller holds the lock. */
bool wss_cond_wait_ns(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t timeout_ns);
