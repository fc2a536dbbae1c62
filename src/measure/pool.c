/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/worker.h"

/* How long a connection stays idle before it is closed. */
#define IDLE_NS (60 * WSS_NS_PER_S)
#define IDLE_SHORT_NS WSS_NS_PER_S
/* How long the idle connections may take to close, all together. */
#define CLOSE_NS (500 * WSS_NS_PER_MS)

struct idle {
	struct wss_hypervisor *hypervisor;
	uint64_t since_ns;
};

/* Freed with its last lease. */
struct wss_pool {
	atomic_int references;
	struct wss_hypervisor_options options;
	pthread_mutex_t lock;
	/* The last one is the next to be used, the first one idle for longest; under the lock. */
	struct idle *idle;
	size_t n, room;
	bool closed;			/* under the lock */
	struct wss_conn_shared *shared; /* by all of them */
	struct wss_deadline closing;
};

struct lease {
	struct wss_pool *pool;
	struct wss_hypervisor *hypervisor; /* NULL: no connection yet */
};

struct wss_pool *wss_pool_new(const struct wss_hypervisor_options *options)
{
	struct wss_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->shared = wss_conn_shared_new();
	if (!pool->shared) {
		free(pool);
		return NULL;
	}
	pool->references = 1;
	pool->options = *options;
	pthread_mutex_init(&pool->lock, NULL);
	return pool;
}

struct wss_pool *wss_pool_ref(struct wss_pool *pool)
{
	atomic_fetch_add(&pool->references, 1);
	return pool;
}

void wss_pool_unref(struct wss_pool *pool)
{
	if (!pool || atomic_fetch_sub(&pool->references, 1) != 1)
		return;
	pthread_mutex_destroy(&pool->lock);
	wss_conn_shared_unref(pool->shared);
	free(pool->idle);
	free(pool);
}

/* An idle connection; NULL: there is none. */
static struct wss_hypervisor *pool_take(struct wss_pool *pool)
{
	struct wss_hypervisor *hypervisor = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->n)
		hypervisor = pool->idle[--pool->n].hypervisor;
	pthread_mutex_unlock(&pool->lock);
	return hypervisor;
}

/* The caller holds the lock. */
static bool pool_has_room(struct wss_pool *pool)
{
	size_t room = pool->room ? 2 * pool->room : 16;
	struct idle *idle;

	if (pool->n < pool->room)
		return true;
	idle = realloc(pool->idle, room * sizeof(*idle));
	if (!idle)
		return false;
	pool->idle = idle;
	pool->room = room;
	return true;
}

/* Takes the reference over, unless the connection is of no use any more: false. */
static bool pool_give(struct wss_pool *pool, struct wss_hypervisor *hypervisor)
{
	bool taken;

	if (!wss_hypervisor_alive(hypervisor))
		return false;
	pthread_mutex_lock(&pool->lock);
	taken = !pool->closed && pool_has_room(pool);
	if (taken)
		pool->idle[pool->n++] = (struct idle){hypervisor, wss_clock_now_ns()};
	pthread_mutex_unlock(&pool->lock);
	return taken;
}

/* --- leases --- */

static int lease_connect(struct lease *lease, struct wss_error *err)
{
	struct wss_hypervisor *hypervisor;
	struct wss_conn *conn;

	while ((hypervisor = pool_take(lease->pool)) && !wss_hypervisor_alive(hypervisor))
		wss_hypervisor_unref(hypervisor);
	if (!hypervisor) {
		if (wss_hypervisor_open(&lease->pool->options, &hypervisor, err) < 0)
			return -1;
		conn = wss_hypervisor_conn(hypervisor);
		if (conn)
			wss_conn_share(conn, lease->pool->shared);
	}
	lease->hypervisor = hypervisor;
	return 0;
}

static int lease_open(void *opaque, const struct wss_domain_ref *ref,
		      const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		      struct wss_error *err)
{
	struct lease *lease = opaque;

	if (!lease->hypervisor && lease_connect(lease, err) < 0)
		return -1;
	return wss_hypervisor_guest(lease->hypervisor, ref, deadline, ret_guest, err);
}

static void lease_close(void *opaque)
{
	struct lease *lease = opaque;

	if (lease->hypervisor && !pool_give(lease->pool, lease->hypervisor))
		wss_hypervisor_unref(lease->hypervisor);
	wss_pool_unref(lease->pool);
	free(lease);
}

int wss_pool_lease(struct wss_pool *pool, struct wss_hypervisor *other,
		   struct wss_hypervisor **ret_lease, struct wss_error *err)
{
	static const struct wss_guest_source source = {.open = lease_open, .close = lease_close};
	static const struct wss_guest_source without_inventory = {
		.open = lease_open, .close = lease_close, .has_no_inventory = true};
	struct lease *lease;
	struct wss_host copy;

	if (wss_conn_embedded()) {
		*ret_lease = wss_hypervisor_ref(other);
		return 0;
	}
	lease = calloc(1, sizeof(*lease));
	if (!lease)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_host_copy(wss_hypervisor_host(other), &copy, err) < 0) {
		free(lease);
		return -1;
	}
	lease->pool = wss_pool_ref(pool);
	return wss_hypervisor_new(
		&copy, wss_hypervisor_has_inventory(other) ? &source : &without_inventory, lease,
		ret_lease, err);
}

/* --- the end --- */

/* Takes the connection that has been idle for longest, if that is too long; NULL: there is none. */
static struct wss_hypervisor *pool_take_unused(struct wss_pool *pool)
{
	uint64_t idle_ns = wss_fault("short-idle") ? IDLE_SHORT_NS : IDLE_NS;
	struct wss_hypervisor *hypervisor = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->n && wss_clock_now_ns() - pool->idle[0].since_ns >= idle_ns) {
		hypervisor = pool->idle[0].hypervisor;
		memmove(pool->idle, pool->idle + 1, --pool->n * sizeof(*pool->idle));
	}
	pthread_mutex_unlock(&pool->lock);
	return hypervisor;
}

void wss_pool_shrink(struct wss_pool *pool)
{
	struct wss_hypervisor *hypervisor;

	while ((hypervisor = pool_take_unused(pool)))
		wss_hypervisor_unref(hypervisor);
}

static void release(void *opaque)
{
	wss_pool_unref(opaque);
}

static void close_idle(void *opaque)
{
	struct wss_pool *pool = opaque;
	struct wss_hypervisor *hypervisor;

	while ((hypervisor = pool_take(pool)))
		wss_hypervisor_unref(hypervisor);
}

void wss_pool_free(struct wss_pool *pool)
{
	struct wss_work work = {close_idle, release, pool, pool ? &pool->closing : NULL};
	struct wss_error why = WSS_ERROR_INIT;

	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closed = true;
	pthread_mutex_unlock(&pool->lock);
	wss_deadline_allow(&pool->closing, CLOSE_NS);
	wss_deadline_run(&pool->closing, 0);
	if (pool->n && wss_work_run(&work, CLOSE_NS, &why) < 0) {
		if (why.code == WSS_ERR_TIMEOUT)
			return;
		close_idle(pool);
	}
	wss_pool_unref(pool);
}
