/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of the guests that run, again and again, from a libvirt that comes and goes. */
#include <stdlib.h>

#include "base/clock.h"
#include "measure/pool.h"
#include "watch/watch-private.h"

/* How long libvirt may take to open and to list. */
#define LIST_DEADLINE_NS (10 * WSS_NS_PER_S)

/* What a worker lists; its own, once it has been left. */
struct listing {
	struct wss_hypervisor_options options;
	struct wss_hypervisor *hypervisor; /* NULL: to be opened */
	struct wss_pool *pool;		   /* NULL: none */
	struct wss_deadline deadline;
	struct wss_conn_domain *domains;
	size_t n;
	int result;
	struct wss_error error;
};

struct wss_lister {
	struct wss_hypervisor_options options;
	struct wss_hypervisor *hypervisor; /* NULL: not open */
	struct wss_pool *pool;		   /* NULL: none */
	bool given; /* the hypervisor is the caller's, and is not opened again */
	const struct wss_cancel *cancel;
	struct wss_workers *workers;
	struct wss_worker *worker; /* NULL: none is under way */
	struct listing *listing;
	uint64_t list_ns, next_ns;
};

static void listing_run(void *opaque)
{
	struct listing *listing = opaque;

	listing->result = -1;
	if (!listing->hypervisor &&
	    wss_hypervisor_open(&listing->options, &listing->hypervisor, &listing->error) < 0)
		return;
	/* Before they are listed, so that no reboot of a listed guest goes unnoticed. */
	wss_hypervisor_follow_reboots(listing->hypervisor);
	listing->result = wss_hypervisor_list(listing->hypervisor, false, &listing->domains,
					      &listing->n, &listing->error);
	/* Libvirt answers now, so that closing does not hang. */
	if (listing->result == 0 && listing->pool)
		wss_pool_shrink(listing->pool);
}

static void listing_free(void *opaque)
{
	struct listing *listing = opaque;

	wss_conn_free_list(listing->domains, listing->n);
	wss_hypervisor_unref(listing->hypervisor);
	wss_pool_unref(listing->pool);
	free(listing);
}

struct wss_lister *wss_lister_new(const struct wss_watch_options *options,
				  struct wss_hypervisor *hypervisor, struct wss_pool *pool)
{
	struct wss_lister *lister = calloc(1, sizeof(*lister));

	if (!lister)
		return NULL;
	lister->options = options->hypervisor;
	lister->list_ns = options->list_ns;
	lister->cancel = options->cancel;
	lister->pool = pool;
	lister->workers = wss_workers_new();
	if (!lister->workers) {
		free(lister);
		return NULL;
	}
	lister->given = hypervisor != NULL;
	lister->hypervisor = hypervisor ? wss_hypervisor_ref(hypervisor) : NULL;
	return lister;
}

static int lister_start(struct wss_lister *lister, struct wss_error *err)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	struct wss_work work = {listing_run, listing_free, listing, NULL};

	lister->next_ns = wss_clock_now_ns() + lister->list_ns;
	if (!listing)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	work.deadline = &listing->deadline;
	listing->options = lister->options;
	listing->deadline.cancel = lister->cancel;
	if (lister->hypervisor)
		listing->hypervisor = wss_hypervisor_ref(lister->hypervisor);
	if (lister->pool)
		listing->pool = wss_pool_ref(lister->pool);
	wss_deadline_allow(&listing->deadline, LIST_DEADLINE_NS);
	wss_deadline_run(&listing->deadline, 0);
	if (wss_worker_start(lister->workers, &work, &lister->worker, err) < 0) {
		listing_free(listing);
		return -1;
	}
	lister->listing = listing;
	return 0;
}

/* The next one opens libvirt again: a connection that has failed once fails for ever. */
static void lister_lose(struct wss_lister *lister)
{
	lister->next_ns = wss_clock_now_ns() + WSS_WATCH_RECONNECT_NS;
	if (lister->given)
		return;
	wss_hypervisor_unref(lister->hypervisor);
	lister->hypervisor = NULL;
}

/* Nobody calls libvirt, and the connection is gone. */
static bool lister_lost(const struct wss_lister *lister)
{
	return !lister->worker && lister->hypervisor && !wss_hypervisor_alive(lister->hypervisor);
}

static int lister_finish(struct wss_lister *lister, struct wss_conn_domain **ret_domains,
			 size_t *ret_n, struct wss_error *err)
{
	struct listing *listing = lister->listing;

	wss_worker_join(lister->worker);
	lister->worker = NULL;
	lister->listing = NULL;
	if (listing->result < 0) {
		*err = listing->error;
		listing_free(listing);
		lister_lose(lister);
		return -1;
	}
	if (!lister->hypervisor)
		lister->hypervisor = wss_hypervisor_ref(listing->hypervisor);
	*ret_domains = listing->domains;
	*ret_n = listing->n;
	listing->domains = NULL;
	listing_free(listing);
	return 1;
}

static int lister_abandon(struct wss_lister *lister, struct wss_error *err)
{
	wss_deadline_error(&lister->listing->deadline, err);
	if (!wss_worker_leave(lister->worker, NULL)) {
		wss_worker_join(lister->worker);
		listing_free(lister->listing);
	}
	lister->worker = NULL;
	lister->listing = NULL;
	lister_lose(lister);
	return -1;
}

int wss_lister_step(struct wss_lister *lister, struct wss_conn_domain **ret_domains, size_t *ret_n,
		    struct wss_error *err)
{
	if (lister_lost(lister)) {
		lister_lose(lister);
		return wss_error_set(err, WSS_ERR_CONNECT, "libvirt has closed the connection");
	}
	if (!lister->worker)
		return wss_clock_now_ns() < lister->next_ns ? 0 : lister_start(lister, err);
	if (wss_worker_done(lister->worker))
		return lister_finish(lister, ret_domains, ret_n, err);
	return wss_worker_late(lister->worker) ? lister_abandon(lister, err) : 0;
}

struct wss_hypervisor *wss_lister_hypervisor(const struct wss_lister *lister)
{
	return lister->hypervisor;
}

bool wss_lister_next_reboot(const struct wss_lister *lister, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	return lister->hypervisor && wss_hypervisor_next_reboot(lister->hypervisor, ret_uuid);
}

void wss_lister_wait(struct wss_lister *lister, uint64_t wait_ns)
{
	wss_workers_wait_ns(lister->workers, wait_ns);
}

void wss_lister_free(struct wss_lister *lister)
{
	struct wss_error unused = WSS_ERROR_INIT;

	if (!lister)
		return;
	if (lister->worker)
		lister_abandon(lister, &unused);
	wss_hypervisor_unref(lister->hypervisor);
	wss_workers_free(lister->workers);
	free(lister);
}
