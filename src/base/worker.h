/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Work that may hang, such as a libvirt call, in a thread of its own. Its starter waits for
 * it, and leaves it behind when it is late.
 *
 * Workers form a group, which one thread watches: it starts them, sleeps until something
 * changes, joins those that are done, and leaves those that are late. From then on the late
 * worker owns what it uses, and releases it if its work ever returns. A process in which a
 * worker was left must end as wss_threads_end() says.
 *
 * A thread whose work has ended stays with its group, and does the next work of it. It ends when there has
 * been none for a while, or with the group. That of a worker that was left behind ends with its work.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"
#include "base/error.h"

struct wss_work {
	void (*run)(void *opaque);
	/* Called in a worker that was left behind, once run has returned. */
	void (*release)(void *opaque);
	void *opaque;
	/* Must live as long as opaque; NULL: the work is never late. */
	const struct wss_deadline *deadline;
};

struct wss_workers;
struct wss_worker;

/*
 * Grace time after the deadline, after which work counts as late. Work that watches its
 * deadline has ended by then.
 */
#define WSS_WORKER_GRACE_NS 1000000000ULL
/* Time that cancelled work has to restore a guest. */
#define WSS_WORKER_CANCEL_NS 10000000000ULL

/* Creates a group; NULL: out of memory. */
struct wss_workers *wss_workers_new(void);

/*
 * Frees a group and ends its idle threads; all its workers must have been joined or left behind.
 * Accepts NULL.
 */
void wss_workers_free(struct wss_workers *workers);

/*
 * Starts a worker; two threads may not do so at the same time in one group. Pass *ret_worker to wss_worker_join() or wss_worker_leave(). -1 with
 * WSS_ERR_NO_MEMORY or WSS_ERR_FAILED: the caller still owns opaque.
 */
int wss_worker_start(struct wss_workers *workers, const struct wss_work *work,
		     struct wss_worker **ret_worker, struct wss_error *err);

/* Whether run has returned. */
bool wss_worker_done(struct wss_worker *worker);

/* How many workers of the group are done, ever: while that stays as it is, no other one is. */
unsigned wss_workers_finished(struct wss_workers *workers);

/*
 * Whether the worker has used up its deadline and the grace time. A worker whose deadline is
 * paused waits on purpose and is never late.
 */
bool wss_worker_late(struct wss_worker *worker);

/* Waits until run has returned, however long that takes. The caller owns opaque again. */
void wss_worker_join(struct wss_worker *worker);

/*
 * Leaves a worker behind and requests cancel, which may be NULL or be inside opaque. Returns
 * true: the worker owns opaque now. Returns false if the worker has just ended: join it.
 */
bool wss_worker_leave(struct wss_worker *worker, struct wss_cancel *cancel);

/*
 * Sleeps until a worker has ended or wss_workers_wake() has been called since the last call,
 * at most WSS_COND_MOMENT_NS, because the caller must look at deadlines and cancel tokens
 * itself. For the thread that watches the group.
 */
void wss_workers_wait(struct wss_workers *workers);

/* The same for at most timeout_ns, which is how late the caller may notice a deadline or a token. */
void wss_workers_wait_ns(struct wss_workers *workers, uint64_t timeout_ns);

/* Ends wss_workers_wait() early. Any thread may call this while the group exists. */
void wss_workers_wake(struct wss_workers *workers);

/*
 * Runs one piece of work in a group of its own and waits for it. Returns 0 once it has
 * returned: the caller owns opaque again. WSS_ERR_TIMEOUT if it is late, or still runs
 * cancel_ns after its token was requested: it has been left behind. Other errors: it could not
 * be started, and the caller still owns opaque.
 */
int wss_work_run(const struct wss_work *work, uint64_t cancel_ns, struct wss_error *err);
