/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A deadline for what has none of its own: runs a function in a thread, and leaves it behind
 * when it is late.
 */
#ifndef WSS_BASE_GUARD_H
#define WSS_BASE_GUARD_H

#include <stdint.h>

#include "base/error.h"

/*
 * Runs fn(opaque) in a thread of its own and waits for it. 0 once it has returned: opaque
 * is the caller's again. WSS_ERR_TIMEOUT when timeout_ns has passed, or stop_ns since a stop
 * request, which fn is to see for itself in that time (WSS_GUARD_STOP_NS, for one): fn goes on,
 * opaque must not be touched any more, and release(opaque) is called in fn's thread when it
 * returns after all. WSS_ERR_NO_MEMORY, WSS_ERR_FAILED where it could not even be started:
 * opaque is then the caller's.
 */
#define WSS_GUARD_STOP_NS 10000000000ULL
int wss_guard_run(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
		  uint64_t timeout_ns, uint64_t stop_ns, struct wss_error *err);

/*
 * The same of an fn that enters and leaves budgets (base/budget.h): it is late not after a fixed
 * time, but when it has not left one of them WSS_GUARD_GRACE_NS after that ran out. What it can
 * cut short by itself it has cut short by then.
 */
#define WSS_GUARD_GRACE_NS 1000000000ULL
int wss_guard_run_within(void (*fn)(void *opaque), void *opaque, void (*release)(void *opaque),
			 uint64_t stop_ns, struct wss_error *err);

#endif
