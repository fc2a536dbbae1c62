/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may wait for a disk, in a thread of its own, for a loop that must not wait. One piece at a time: what
 * it uses is its own until it has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wss_background;

/* For wss_background_end(); NULL: out of memory. One thread uses it. */
struct wss_background *wss_background_new(void);

/* Whether no work is under way: it may be started, and all that the last one used is the caller's again. */
bool wss_background_is_idle(struct wss_background *background);

/* Starts work; it must be idle. WSS_ERR_NO_MEMORY, WSS_ERR_FAILED: it was not started. */
int wss_background_start(struct wss_background *background, void (*run)(void *opaque), void *opaque,
			 struct wss_error *err);

/* Returns for how long the work has been under way; 0: it is idle. */
uint64_t wss_background_busy_ns(struct wss_background *background);

/* Waits until it is idle, timeout_ns at most. False: it still is not. */
bool wss_background_wait(struct wss_background *background, uint64_t timeout_ns);

/*
 * Frees it, waiting for work timeout_ns at most. False: the work was left behind, and may use what it has until the
 * process ends, so that none of that may be freed. Takes NULL.
 */
bool wss_background_end(struct wss_background *background, uint64_t timeout_ns);
