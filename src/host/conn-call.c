/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that may hang.
 *
 * A call that reaches a guest's QEMU, or waits for one that does, lasts as long as QEMU is silent. libvirtd
 * answers five requests of a connection at a time (max_client_requests), so a few such calls would use up the
 * connection, and libvirt's client may deliver other answers 3 s late while one of its calls hangs (9.0). They
 * therefore are made on side connections, one call at a time on each: a connection whose call hangs is used
 * for nothing else until that call returns. Few are opened as long as calls return quickly, and one that is not
 * used for a minute is closed. There are never as many as libvirtd has threads for all its clients
 * (max_workers, 20). A guest about which a call hangs gets no second one.
 *
 * Drivers inside this process have no such limits, and a remote host may ask for a password for each
 * connection: there all calls are made on the one connection.
 */
#include "host/conn-private.h"

#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/units.h"

#define SIDES_MAX 16
/* More are opened only if none of these has become free for PATIENCE_NS. */
#define SIDES_FEW 4
#define PATIENCE_NS (200 * WSS_NS_PER_MS)
/* A call that takes longer is taken to hang. */
#define HANGING_NS (5 * WSS_NS_PER_S)
/* How long a connection stays idle before it is closed. */
#define IDLE_NS (60 * WSS_NS_PER_S)

struct wss_conn_side {
	virConnectPtr vir; /* NULL: not open. Belongs to the call, if there is one */
	char uuid[VIR_UUID_STRING_BUFLEN]; /* the domain of its call; "": it is idle */
	uint64_t since_ns;		   /* the call began, or it has been idle */
};

struct wss_conn_sides {
	bool read_only;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct wss_conn_side side[SIDES_MAX];
};

struct wss_conn_sides *wss_conn_sides_new(bool read_only)
{
	struct wss_conn_sides *sides = calloc(1, sizeof(*sides));

	if (!sides)
		return NULL;
	sides->read_only = read_only;
	pthread_mutex_init(&sides->lock, NULL);
	wss_cond_init(&sides->changed);
	return sides;
}

void wss_conn_sides_close(struct wss_conn_sides *sides)
{
	for (size_t i = 0; sides && i < SIDES_MAX; i++) {
		if (sides->side[i].vir)
			virConnectClose(sides->side[i].vir);
		sides->side[i].vir = NULL;
	}
}

void wss_conn_sides_free(struct wss_conn_sides *sides)
{
	if (!sides)
		return;
	pthread_cond_destroy(&sides->changed);
	pthread_mutex_destroy(&sides->lock);
	free(sides);
}

/* Does a call about this domain hang? The caller holds the lock. */
static int check_hanging(const struct wss_conn_sides *sides, const char *uuid,
			 struct wss_error *err)
{
	for (size_t i = 0; i < SIDES_MAX; i++) {
		const struct wss_conn_side *side = &sides->side[i];
		uint64_t age_ns = side->uuid[0] ? wss_clock_now_ns() - side->since_ns : 0;
		char text[16];

		if (age_ns < HANGING_NS || strcmp(side->uuid, uuid) != 0)
			continue;
		wss_duration_format(age_ns, text, sizeof(text));
		return wss_error_set(err, WSS_ERR_TIMEOUT,
				     "its QEMU has not answered libvirt for %s", text);
	}
	return 0;
}

/* An idle connection that is open; else, with more, room for another one. NULL: neither. The caller holds the lock. */
static struct wss_conn_side *side_find(struct wss_conn_sides *sides, bool more)
{
	struct wss_conn_side *room = NULL;
	size_t n_used = 0;

	for (size_t i = 0; i < SIDES_MAX; i++) {
		struct wss_conn_side *side = &sides->side[i];

		if (!side->uuid[0] && side->vir)
			return side;
		if (!side->uuid[0])
			room = side;
		n_used += side->uuid[0] != '\0';
	}
	return more || n_used < SIDES_FEW ? room : NULL;
}

/*
 * Takes a connection for a call about the domain, which may still have to be opened. Without a deadline it does not wait
 * for others that hang: *ret_side is NULL then.
 */
static int side_take(struct wss_conn_sides *sides, const char *uuid,
		     const struct wss_deadline *deadline, const char *step,
		     struct wss_conn_side **ret_side, struct wss_error *err)
{
	const struct wss_cancel *cancel = wss_deadline_cancel(deadline);
	uint64_t start_ns = wss_clock_now_ns();
	struct wss_conn_side *side = NULL;
	bool patient = true;
	int r;

	pthread_mutex_lock(&sides->lock);
	while ((r = check_hanging(sides, uuid, err)) == 0 && !(side = side_find(sides, !patient)) &&
	       (patient || deadline)) {
		if ((r = wss_deadline_check(deadline, err)) < 0)
			break;
		if (wss_cancel_requested(cancel)) {
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
			break;
		}
		if (!patient)
			wss_deadline_step(
				deadline,
				"waiting for libvirt, whose calls about other guests hang");
		wss_cond_wait_a_moment(&sides->changed, &sides->lock);
		patient = wss_clock_now_ns() - start_ns < PATIENCE_NS;
	}
	if (side) {
		snprintf(side->uuid, sizeof(side->uuid), "%s", uuid);
		side->since_ns = wss_clock_now_ns();
	}
	pthread_mutex_unlock(&sides->lock);
	wss_deadline_step(deadline, step);
	*ret_side = side;
	return r;
}

static void side_give_back(struct wss_conn_sides *sides, struct wss_conn_side *side)
{
	pthread_mutex_lock(&sides->lock);
	side->uuid[0] = '\0';
	side->since_ns = wss_clock_now_ns();
	pthread_cond_signal(&sides->changed);
	pthread_mutex_unlock(&sides->lock);
}

/* Closes the connections that no call has used for IDLE_NS. Calls take the first idle one, so that the last ones rest. */
static void sides_shrink(struct wss_conn_sides *sides)
{
	uint64_t now_ns = wss_clock_now_ns();

	for (size_t i = 0; i < SIDES_MAX; i++) {
		struct wss_conn_side *side = &sides->side[i];
		virConnectPtr vir = NULL;

		pthread_mutex_lock(&sides->lock);
		if (!side->uuid[0] && now_ns >= side->since_ns + IDLE_NS) {
			vir = side->vir;
			side->vir = NULL;
		}
		pthread_mutex_unlock(&sides->lock);
		if (vir)
			virConnectClose(vir);
	}
}

/* A connection that libvirtd has closed is opened again. */
static bool side_open(const struct wss_conn *conn, struct wss_conn_side *side)
{
	if (side->vir && virConnectIsAlive(side->vir) == 1)
		return true;
	if (side->vir)
		virConnectClose(side->vir);
	side->vir = conn->sides->read_only ? virConnectOpenReadOnly(conn->uri_text)
					   : virConnectOpen(conn->uri_text);
	if (side->vir &&
	    virConnectSetKeepAlive(side->vir, WSS_CONN_KEEPALIVE_S, WSS_CONN_KEEPALIVE_COUNT) < 0)
		virResetLastError();
	return side->vir != NULL;
}

int wss_conn_call_begin(struct wss_conn *conn, virDomainPtr dom,
			const struct wss_deadline *deadline, const char *step,
			struct wss_conn_call *ret_call, struct wss_error *err)
{
	struct wss_conn_call call = {.conn = conn};
	char uuid[VIR_UUID_STRING_BUFLEN];

	wss_deadline_step(deadline, step);
	if (wss_deadline_check(deadline, err) < 0)
		return -1;
	if (virDomainGetUUIDString(dom, uuid) < 0)
		return wss_conn_error(err, "cannot read the domain's UUID");
	if (conn->sides && side_take(conn->sides, uuid, deadline, step, &call.side, err) < 0)
		return -1;
	if (call.side && side_open(conn, call.side)) {
		call.dom = virDomainLookupByUUIDString(call.side->vir, uuid);
		if (!call.dom) {
			wss_conn_error(err, "cannot look up the domain");
			side_give_back(conn->sides, call.side);
			return -1;
		}
		/* Libvirt answers now, so that closing does not hang. */
		sides_shrink(conn->sides);
	} else {
		/* Better on a connection that others need, too, than not at all: libvirtd may have too many clients. */
		if (call.side)
			side_give_back(conn->sides, call.side);
		call.side = NULL;
		virDomainRef(dom);
		call.dom = dom;
	}
	*ret_call = call;
	return 0;
}

void wss_conn_call_end(struct wss_conn_call *call)
{
	if (call->dom)
		virDomainFree(call->dom);
	if (call->side)
		side_give_back(call->conn->sides, call->side);
	*call = (struct wss_conn_call){.conn = NULL};
}
