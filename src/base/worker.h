/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may hang, such as a call of libvirt, in a thread of its own: whoever has started it
 * waits for it, and leaves it behind when it is late.
 *
 * Workers form a group, which one thread watches: it starts them, sleeps until something changes,
 * and then joins those that are done and leaves those that are late. What a worker that was left
 * still uses belongs to the worker from then on, which releases it when its work returns after
 * all. That may be never; a process that ends meanwhile does so by wss_threads_end().
 */
#ifndef WSS_BASE_WORKER_H
#define WSS_BASE_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/error.h"

struct wss_work {
	void (*run)(void *opaque);
	/* Called by the worker where it was left, once run has returned. */
	void (*release)(void *opaque);
	void *opaque;
	/* Lives as long as opaque does; NULL: the work is never late. */
	const struct wss_deadline *deadline;
};

struct wss_workers;
struct wss_worker;

/* How long after its deadline work is late: what can end itself in time has ended itself by then. */
#define WSS_WORKER_GRACE_NS 1000000000ULL
/* How long after a cancel request: time to restore a guest. */
#define WSS_WORKER_CANCEL_NS 10000000000ULL

/* A group; NULL: out of memory. */
struct wss_workers *wss_workers_new(void);

/* After all of its workers have been joined or left. Takes NULL. */
void wss_workers_free(struct wss_workers *workers);

/*
 * Starts it. *ret_worker goes to wss_worker_join() or wss_worker_leave(). -1 with
 * WSS_ERR_NO_MEMORY or WSS_ERR_FAILED: opaque is still the caller's.
 */
int wss_worker_start(struct wss_workers *workers, const struct wss_work *work,
		     struct wss_worker **ret_worker, struct wss_error *err);

/* Has run returned? */
bool wss_worker_done(struct wss_worker *worker);

/*
 * Is it past its deadline and the grace? A worker whose deadline is not running is waiting by its
 * own will.
 */
bool wss_worker_late(struct wss_worker *worker);

/* Waits for its end, however long that takes: opaque is the caller's again. */
void wss_worker_join(struct wss_worker *worker);

/*
 * True: left, opaque is the worker's, and cancel, which may be NULL or in opaque, has been requested.
 * False: it has ended just now, and is to be joined.
 */
bool wss_worker_leave(struct wss_worker *worker, struct wss_cancel *cancel);

/*
 * Sleeps until a worker has ended or somebody has called wss_workers_wake() since the last call, but
 * no longer than a moment (50 ms): deadlines and cancel tokens are the caller's to look at. For the
 * thread that watches the group.
 */
void wss_workers_wait(struct wss_workers *workers);

/* From any thread, while the group lives. */
void wss_workers_wake(struct wss_workers *workers);

/*
 * Runs one piece of work in a group of its own and waits for it. 0 once it has returned: opaque is
 * the caller's again. WSS_ERR_TIMEOUT when it is late, or still runs cancel_ns after its token was
 * requested: it has been left. Other errors: it could not be started, opaque is the caller's.
 */
int wss_work_run(const struct wss_work *work, uint64_t cancel_ns, struct wss_error *err);

#endif
