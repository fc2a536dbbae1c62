/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation. One thread steps all workers. A host has one worker that connects and lists
 * the domains, then one for each domain, a few at a time, because a call may hang for one domain
 * alone. The host's deadline covers all of it: if it passes while the domains are listed, the host
 * has failed; if it passes later, only the domains that were not read by then have.
 *
 *   waiting -> listing -> reading -> done
 */
#include "host/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/worker.h"
#include "host/conn-private.h"
#include "host/inventories.h"

/* Domains of a host that are read at the same time. libvirtd serves five calls of a client. */
#define PARALLEL 8
/* A domain that takes longer may hang, and no longer counts, so that others can be read. */
#define PATIENCE_NS WSS_NS_PER_S
/* Limit that includes those that may hang. */
#define PARALLEL_MAX 32

/* Connecting to a host and listing its domains. A worker that was left behind owns this. */
struct host_listing {
	char *uri; /* NULL: libvirt's default */
	struct wss_conn *conn;
	virDomainPtr *doms;
	size_t n;
	char *asked;
	struct wss_error error;
};

/* Reading the element of one domain, likewise. */
struct domain_reading {
	virDomainPtr dom;
	const char *namespace_uri;
	char *xml;
	struct wss_error error;
};

/* The worker of a domain. */
struct place {
	struct domain_reading *reading;
	struct wss_worker *worker; /* NULL before it has started and after it has ended */
	uint64_t since_ns;
};

enum slot_state { SLOT_WAITING, SLOT_LISTING, SLOT_READING, SLOT_DONE };

/* A host. */
struct slot {
	enum slot_state state;
	struct wss_deadline deadline;
	struct host_listing *listing; /* NULL after it has ended */
	struct wss_worker *worker;    /* of the listing */
	struct wss_conn *conn;
	struct place *places;	      /* one for each domain of the answer */
	size_t next;		      /* the first domain that was not started */
	struct wss_fleet_host answer; /* valid once done */
};

struct fleet {
	struct wss_workers *workers;
	const char *namespace_uri;
	uint64_t timeout_ns;
	size_t n;
	struct slot *slots;
};

/* --- in the workers --- */

static void listing_free(void *opaque)
{
	struct host_listing *listing = opaque;

	if (!listing)
		return;
	for (size_t i = 0; i < listing->n; i++)
		virDomainFree(listing->doms[i]);
	free(listing->doms);
	wss_conn_close(listing->conn);
	free(listing->asked);
	free(listing->uri);
	free(listing);
}

static void listing_run(void *opaque)
{
	struct host_listing *listing = opaque;
	int n;

	if (wss_inventory_find(listing->uri)) {
		wss_error_set(
			&listing->error, WSS_ERR_UNSUPPORTED,
			"of several hosts only libvirt's guests are listed: list this one alone");
		return;
	}
	if (wss_conn_open_reader(listing->uri, &listing->conn, &listing->error) < 0)
		return;
	n = virConnectListAllDomains(listing->conn->vir, &listing->doms, 0);
	if (n < 0) {
		wss_conn_error(&listing->error, "cannot list the domains");
		return;
	}
	listing->n = (size_t)n;
	listing->asked = strdup(wss_conn_uri(listing->conn));
	if (!listing->asked)
		wss_error_set(&listing->error, WSS_ERR_NO_MEMORY, "out of memory");
}

static void reading_free(void *opaque)
{
	struct domain_reading *reading = opaque;

	if (!reading)
		return;
	virDomainFree(reading->dom);
	free(reading->xml);
	free(reading);
}

static void reading_run(void *opaque)
{
	struct domain_reading *reading = opaque;

	if (wss_conn_element(reading->dom, reading->namespace_uri, &reading->xml,
			     &reading->error) == 0 &&
	    reading->xml && strnlen(reading->xml, WSS_FLEET_XML_MAX + 1) > WSS_FLEET_XML_MAX) {
		free(reading->xml);
		reading->xml = NULL;
		wss_error_set(&reading->error, WSS_ERR_FAILED,
			      "its metadata is longer than 64 KiB");
	}
}

/* Runs after the host has answered, because closing may hang, too. */
static void close_conn(void *opaque)
{
	wss_conn_close(opaque);
}

/* --- the answers --- */

static void answer_release(struct wss_fleet_host *host)
{
	for (size_t i = 0; i < host->n; i++) {
		free(host->domains[i].name);
		free(host->domains[i].xml);
		free(host->domains[i].error);
	}
	free(host->domains);
	free(host->asked);
	host->asked = NULL;
	host->domains = NULL;
	host->n = 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct wss_fleet_domain *)a)->name,
		      ((const struct wss_fleet_domain *)b)->name);
}

static void close_behind(struct wss_conn *conn)
{
	struct wss_thread *thread;

	if (!conn)
		return;
	if (wss_thread_start(close_conn, conn, &thread, NULL) == 0)
		wss_thread_leave(thread);
	else
		wss_conn_close(conn);
}

/* Stores why a domain could not be read. */
static void domain_fail(struct slot *slot, size_t i, const struct wss_error *error)
{
	struct wss_fleet_domain *domain = &slot->answer.domains[i];

	domain->error = strdup(error->text);
	if (!domain->error)
		wss_error_set(&slot->answer.error, WSS_ERR_NO_MEMORY, "out of memory");
}

/* --- in the thread that steps them --- */

/* Takes over the result of a worker that has ended. */
static void place_end(struct slot *slot, size_t i)
{
	struct place *place = &slot->places[i];

	wss_worker_join(place->worker);
	place->worker = NULL;
	slot->answer.domains[i].xml = place->reading->xml;
	place->reading->xml = NULL;
	if (place->reading->error.code)
		domain_fail(slot, i, &place->reading->error);
	reading_free(place->reading);
	place->reading = NULL;
}

/* Leaves the worker of a domain that is late, if it has one. */
static void place_give_up(struct slot *slot, size_t i)
{
	struct place *place = &slot->places[i];
	struct wss_error error = WSS_ERROR_INIT;

	if (!place->reading)
		return;
	if (place->worker && !wss_worker_leave(place->worker, NULL)) {
		place_end(slot, i);
		return;
	}
	if (!place->worker)
		reading_free(place->reading);
	place->worker = NULL;
	place->reading = NULL;
	wss_deadline_error(&slot->deadline, &error);
	domain_fail(slot, i, &error);
}

static void place_start(const struct fleet *fleet, struct slot *slot, size_t i)
{
	struct place *place = &slot->places[i];
	struct wss_work work = {reading_run, reading_free, place->reading, NULL};
	struct wss_error error = WSS_ERROR_INIT;

	place->since_ns = wss_clock_now_ns();
	if (wss_worker_start(fleet->workers, &work, &place->worker, &error) == 0)
		return;
	place->worker = NULL;
	reading_free(place->reading);
	place->reading = NULL;
	domain_fail(slot, i, &error);
}

/* All domains have been read, or given up. */
static void slot_finish(struct slot *slot)
{
	for (size_t i = 0; i < slot->answer.n; i++)
		place_give_up(slot, i);
	free(slot->places);
	slot->places = NULL;
	close_behind(slot->conn);
	slot->conn = NULL;
	if (slot->answer.error.code)
		answer_release(&slot->answer);
	else if (slot->answer.n)
		qsort(slot->answer.domains, slot->answer.n, sizeof(*slot->answer.domains), by_name);
	slot->state = SLOT_DONE;
}

/* Takes over results, and starts as many others as may run. */
static void slot_read(const struct fleet *fleet, struct slot *slot)
{
	uint64_t now_ns = wss_clock_now_ns();
	size_t running = 0, quick = 0;

	for (size_t i = 0; i < slot->next; i++) {
		struct place *place = &slot->places[i];

		if (place->worker && wss_worker_done(place->worker))
			place_end(slot, i);
		running += place->worker != NULL;
		quick += place->worker && now_ns - place->since_ns < PATIENCE_NS;
	}
	while (slot->next < slot->answer.n && quick < PARALLEL && running < PARALLEL_MAX) {
		place_start(fleet, slot, slot->next);
		quick += slot->places[slot->next].worker != NULL;
		running += slot->places[slot->next++].worker != NULL;
	}
	if (!running || wss_deadline_overrun(&slot->deadline, 0))
		slot_finish(slot);
}

/* Takes a domain that was listed into the answer. Returns false when out of memory. */
static bool slot_add_domain(const struct fleet *fleet, struct slot *slot, virDomainPtr dom)
{
	struct wss_fleet_domain *domain = &slot->answer.domains[slot->answer.n];
	struct domain_reading *reading = calloc(1, sizeof(*reading));
	const char *name = virDomainGetName(dom);

	domain->name = strdup(name ? name : "");
	if (virDomainGetUUIDString(dom, domain->uuid) < 0)
		domain->uuid[0] = '\0';
	if (!domain->name || !reading) {
		free(domain->name);
		free(reading);
		return false;
	}
	virDomainRef(dom);
	*reading = (struct domain_reading){.dom = dom, .namespace_uri = fleet->namespace_uri};
	slot->places[slot->answer.n++].reading = reading;
	return true;
}

/* Takes over the list of a host whose worker has ended. */
static void slot_listed(const struct fleet *fleet, struct slot *slot)
{
	struct host_listing *listing = slot->listing;
	bool ok;

	wss_worker_join(slot->worker);
	slot->worker = NULL;
	slot->listing = NULL;
	slot->state = SLOT_READING;
	slot->answer.error = listing->error;
	slot->conn = listing->conn;
	listing->conn = NULL;
	if (!listing->error.code) {
		slot->answer.asked = listing->asked;
		listing->asked = NULL;
		slot->answer.domains = calloc(listing->n + 1, sizeof(*slot->answer.domains));
		slot->places = calloc(listing->n + 1, sizeof(*slot->places));
		ok = slot->answer.domains && slot->places;
		for (size_t i = 0; ok && i < listing->n; i++)
			ok = slot_add_domain(fleet, slot, listing->doms[i]);
		if (!ok)
			wss_error_set(&slot->answer.error, WSS_ERR_NO_MEMORY, "out of memory");
	}
	listing_free(listing);
	if (slot->answer.error.code)
		slot_finish(slot);
	else
		slot_read(fleet, slot);
}

static void slot_start(const struct fleet *fleet, struct slot *slot)
{
	struct wss_work work = {listing_run, listing_free, slot->listing, NULL};

	slot->state = SLOT_LISTING;
	wss_deadline_allow(&slot->deadline, fleet->timeout_ns);
	wss_deadline_run(&slot->deadline, 0);
	if (wss_worker_start(fleet->workers, &work, &slot->worker, &slot->answer.error) == 0)
		return;
	slot->worker = NULL;
	slot_finish(slot);
}

/* Leaves the worker of a host that does not answer. */
static void slot_give_up(const struct fleet *fleet, struct slot *slot)
{
	char text[16];

	if (!wss_worker_leave(slot->worker, NULL)) {
		slot_listed(fleet, slot);
		return;
	}
	slot->worker = NULL;
	slot->listing = NULL;
	wss_duration_format(fleet->timeout_ns, text, sizeof(text));
	wss_error_set(&slot->answer.error, WSS_ERR_CONNECT, "no answer within %s", text);
	slot_finish(slot);
}

/* Takes over answers, leaves late workers behind, and starts others in their place. */
static void fleet_step(struct fleet *fleet)
{
	size_t running = 0;

	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		if (slot->state == SLOT_LISTING && wss_worker_done(slot->worker))
			slot_listed(fleet, slot);
		else if (slot->state == SLOT_LISTING && wss_deadline_overrun(&slot->deadline, 0))
			slot_give_up(fleet, slot);
		else if (slot->state == SLOT_READING)
			slot_read(fleet, slot);
		running += slot->state == SLOT_LISTING || slot->state == SLOT_READING;
	}
	for (size_t i = 0; i < fleet->n && running < WSS_FLEET_PARALLEL; i++) {
		if (fleet->slots[i].state != SLOT_WAITING)
			continue;
		slot_start(fleet, &fleet->slots[i]);
		running += fleet->slots[i].state == SLOT_LISTING;
	}
}

static void fleet_close(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		if (slot->worker && wss_worker_leave(slot->worker, NULL))
			slot->listing = NULL;
		else if (slot->worker)
			wss_worker_join(slot->worker);
		if (slot->state == SLOT_READING)
			slot_finish(slot);
		answer_release(&slot->answer);
		listing_free(slot->listing);
	}
	free(fleet->slots);
	wss_workers_free(fleet->workers);
}

static int fleet_open(struct fleet *fleet, const char *const *uris, struct wss_error *err)
{
	fleet->workers = wss_workers_new();
	fleet->slots = calloc(fleet->n ? fleet->n : 1, sizeof(*fleet->slots));
	if (!fleet->workers || !fleet->slots) {
		fleet->n = 0;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	for (size_t i = 0; i < fleet->n; i++) {
		struct slot *slot = &fleet->slots[i];

		slot->answer.uri = uris[i];
		slot->listing = calloc(1, sizeof(*slot->listing));
		if (!slot->listing || (uris[i] && !(slot->listing->uri = strdup(uris[i]))))
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	return 0;
}

/* Returns 0 once the host has answered or was given up, -1 on a stop request. */
static int slot_wait(struct fleet *fleet, const struct slot *slot)
{
	fleet_step(fleet);
	while (slot->state != SLOT_DONE) {
		if (wss_stop_requested())
			return -1;
		wss_workers_wait(fleet->workers);
		fleet_step(fleet);
	}
	return 0;
}

int wss_fleet_read(const char *const *uris, size_t n, const char *namespace_uri,
		   uint64_t timeout_ns, wss_fleet_emit emit, void *opaque, struct wss_error *err)
{
	struct fleet fleet = {.namespace_uri = namespace_uri, .timeout_ns = timeout_ns, .n = n};
	int r = fleet_open(&fleet, uris, err);

	for (size_t i = 0; i < n && r == 0; i++) {
		struct slot *slot = &fleet.slots[i];

		r = slot_wait(&fleet, slot);
		if (r < 0) {
			wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
			break;
		}
		emit(&slot->answer, opaque);
		answer_release(&slot->answer);
	}
	fleet_close(&fleet);
	return r;
}
