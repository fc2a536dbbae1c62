/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The host that libvirt runs on, as libvirt reports it. One thread asks, the others wait for its answer:
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
struct wss_conn_identity {
	atomic_int references;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking; /* under the lock, as are the others */
	bool known;
	struct wss_error failure; /* of the last call, unless the connection was lost */
	uint64_t failed_ns;
	char uuid[WSS_UUID_TEXT_MAX]; /* "": libvirt reports none */
	char *name;		      /* NULL: unknown, or not asked for */
};

struct wss_conn_identity *wss_conn_identity_new(void)
{
	struct wss_conn_identity *identity = calloc(1, sizeof(*identity));

	if (!identity)
		return NULL;
	identity->references = 1;
	pthread_mutex_init(&identity->lock, NULL);
	wss_cond_init(&identity->changed);
	return identity;
}

void wss_conn_identity_unref(struct wss_conn_identity *identity)
{
	if (!identity || atomic_fetch_sub(&identity->references, 1) != 1)
		return;
	pthread_cond_destroy(&identity->changed);
	pthread_mutex_destroy(&identity->lock);
	free(identity->name);
	free(identity);
}

void wss_conn_share(struct wss_conn *conn, struct wss_conn_identity *identity)
{
	wss_conn_identity_unref(conn->identity);
	atomic_fetch_add(&identity->references, 1);
	conn->identity = identity;
	wss_conn_sides_free(conn->sides);
	conn->sides = NULL;
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
static int identity_wait(struct wss_conn_identity *identity, const struct wss_deadline *deadline,
			 struct wss_error *err)
{
	while (identity->asking) {
		if (wss_deadline_check(deadline, err) < 0)
			return -1;
		if (wss_cancel_requested(wss_deadline_cancel(deadline)))
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		wss_cond_wait_a_moment(&identity->changed, &identity->lock);
	}
	return 0;
}

static int identity_get(struct wss_conn *conn, bool name_too, const struct wss_deadline *deadline,
			struct wss_error *err)
{
	struct wss_conn_identity *identity = conn->identity;
	char uuid[WSS_UUID_TEXT_MAX] = "", *name = NULL;
	struct wss_error failure = WSS_ERROR_INIT;
	int r;

	wss_deadline_step(deadline, "asking libvirt for its capabilities");
	pthread_mutex_lock(&identity->lock);
	r = identity_wait(identity, deadline, err);
	if (r == 0 && identity->failure.code &&
	    wss_clock_now_ns() - identity->failed_ns < FAILURE_NS)
		r = wss_error_set(err, identity->failure.code, "%s", identity->failure.text);
	identity->asking = r == 0 && !identity->known;
	if (!identity->asking) {
		pthread_mutex_unlock(&identity->lock);
		return r;
	}
	pthread_mutex_unlock(&identity->lock);
	r = identity_ask(conn->vir, name_too, deadline, uuid, &name, &failure);
	if (r < 0)
		wss_error_set(err, failure.code, "%s", failure.text);
	pthread_mutex_lock(&identity->lock);
	identity->asking = false;
	identity->known = r == 0;
	identity->failed_ns = wss_clock_now_ns();
	identity->failure = failure;
	if (failure.code == WSS_ERR_CONNECT)
		wss_error_clear(&identity->failure);
	snprintf(identity->uuid, sizeof(identity->uuid), "%s", uuid);
	identity->name = name;
	pthread_cond_broadcast(&identity->changed);
	pthread_mutex_unlock(&identity->lock);
	return r;
}

/* What is known does not change any more. */
int wss_conn_check_locality(struct wss_conn *conn, const struct wss_host *host,
			    const struct wss_deadline *deadline, struct wss_error *err)
{
	const struct wss_conn_identity *identity = conn->identity;
	bool asks = conn->uri.kind != WSS_URI_EMBED && conn->uri.kind != WSS_URI_OTHER;

	if (asks && identity_get(conn, !host->uuid[0], deadline, err) < 0)
		return -1;
	return wss_locality_check(host, &conn->uri, identity->uuid[0] ? identity->uuid : NULL,
				  identity->name, err);
}
