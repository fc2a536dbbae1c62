/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What several connections to the same libvirt share: the calls about guests that are under way (conn-call.c), and
 * what libvirt reports of its host. One thread asks for that, the others wait for its answer:
 * libvirt may take seconds for its capabilities, and makes them for one client at a time. A failure is their answer,
 * too, and is kept for a minute, so that it is not repeated for each guest.
 */
#include "host/conn-private.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "host/domxml.h"
#include "host/locality.h"

#define FAILURE_NS (60 * WSS_NS_PER_S)

/* Freed with its last connection. */
struct wss_conn_shared {
	atomic_int references;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking; /* under the lock, as are the others */
	bool known;
	struct wss_error failure; /* of the last call, unless the connection was lost */
	uint64_t failed_ns;
	char uuid[WSS_UUID_TEXT_MAX]; /* "": libvirt reports none */
	char *name;		      /* NULL: unknown, or not asked for */
	struct wss_conn_calls *calls; /* of the first connection; NULL: there was none */
};

struct wss_conn_shared *wss_conn_shared_new(void)
{
	struct wss_conn_shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->references = 1;
	pthread_mutex_init(&shared->lock, NULL);
	wss_cond_init(&shared->changed);
	return shared;
}

void wss_conn_shared_unref(struct wss_conn_shared *shared)
{
	if (!shared || atomic_fetch_sub(&shared->references, 1) != 1)
		return;
	pthread_cond_destroy(&shared->changed);
	pthread_mutex_destroy(&shared->lock);
	wss_conn_calls_unref(shared->calls);
	free(shared->name);
	free(shared);
}

void wss_conn_share(struct wss_conn *conn, struct wss_conn_shared *shared)
{
	wss_conn_shared_unref(conn->shared);
	atomic_fetch_add(&shared->references, 1);
	conn->shared = shared;
	/* Each has one thread, so that a call that hangs on it keeps none of the others' waiting. */
	wss_conn_sides_free(conn->sides);
	conn->sides = NULL;
	pthread_mutex_lock(&shared->lock);
	if (shared->calls) {
		wss_conn_calls_unref(conn->calls);
		conn->calls = wss_conn_calls_ref(shared->calls);
	} else {
		shared->calls = wss_conn_calls_ref(conn->calls);
	}
	pthread_mutex_unlock(&shared->lock);
}

/*
 * Calls libvirt, which may hang. The name tells only where this host has no UUID, and a resolver that does not answer
 * takes seconds for it.
 */
static int identity_ask(virConnectPtr vir, bool name_too, const struct wss_deadline *deadline,
			char ret_uuid[WSS_UUID_TEXT_MAX], char **ret_name, struct wss_error *err)
{
	wss_auto_free char *xml = virConnectGetCapabilities(vir);

	if (!xml)
		return wss_conn_error(err, "cannot read libvirt's capabilities");
	if (wss_domxml_parse_host_uuid(xml, ret_uuid, NULL) < 0)
		ret_uuid[0] = '\0';
	if (!name_too)
		return 0;
	wss_deadline_step(deadline, "asking libvirt for its host's name");
	*ret_name = virConnectGetHostname(vir);
	if (!*ret_name)
		return wss_conn_error(err, "cannot read the name of libvirt's host");
	return 0;
}

/* Waits for the thread that asks. The caller holds the lock. */
static int identity_wait(struct wss_conn_shared *shared, const struct wss_deadline *deadline,
			 struct wss_error *err)
{
	while (shared->asking) {
		if (wss_deadline_check(deadline, err) < 0)
			return -1;
		if (wss_cancel_requested(wss_deadline_cancel(deadline)))
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		wss_cond_wait_a_moment(&shared->changed, &shared->lock);
	}
	return 0;
}

static int identity_get(struct wss_conn *conn, bool name_too, const struct wss_deadline *deadline,
			struct wss_error *err)
{
	struct wss_conn_shared *shared = conn->shared;
	char uuid[WSS_UUID_TEXT_MAX] = "", *name = NULL;
	struct wss_error failure = WSS_ERROR_INIT;
	int r;

	wss_deadline_step(deadline, "asking libvirt for its capabilities");
	pthread_mutex_lock(&shared->lock);
	r = identity_wait(shared, deadline, err);
	if (r == 0 && shared->failure.code && wss_clock_now_ns() - shared->failed_ns < FAILURE_NS)
		r = wss_error_set(err, shared->failure.code, "%s", shared->failure.text);
	shared->asking = r == 0 && !shared->known;
	if (!shared->asking) {
		pthread_mutex_unlock(&shared->lock);
		return r;
	}
	pthread_mutex_unlock(&shared->lock);
	r = identity_ask(conn->vir, name_too, deadline, uuid, &name, &failure);
	if (r < 0)
		wss_error_set(err, failure.code, "%s", failure.text);
	pthread_mutex_lock(&shared->lock);
	shared->asking = false;
	shared->known = r == 0;
	shared->failed_ns = wss_clock_now_ns();
	shared->failure = failure;
	if (failure.code == WSS_ERR_CONNECT)
		wss_error_clear(&shared->failure);
	snprintf(shared->uuid, sizeof(shared->uuid), "%s", uuid);
	shared->name = name;
	pthread_cond_broadcast(&shared->changed);
	pthread_mutex_unlock(&shared->lock);
	return r;
}

/* What is known does not change any more. */
int wss_conn_check_locality(struct wss_conn *conn, const struct wss_host *host,
			    const struct wss_deadline *deadline, struct wss_error *err)
{
	const struct wss_conn_shared *shared = conn->shared;
	bool asks = conn->uri.kind != WSS_URI_EMBED && conn->uri.kind != WSS_URI_OTHER;

	if (asks && identity_get(conn, !host->uuid[0], deadline, err) < 0)
		return -1;
	return wss_locality_check(host, &conn->uri, shared->uuid[0] ? shared->uuid : NULL,
				  shared->name, err);
}
