/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that may hang.
 *
 * A call that reaches a guest's QEMU, or waits for one that does, lasts as long as QEMU is silent, and takes one of
 * libvirtd's threads meanwhile, of which it has few for all its clients (max_workers, 20): when all are taken, nobody gets
 * an answer about any guest. So
 *
 * - a QEMU whose process is stopped or frozen is not called (stopped.h);
 * - a guest about which a call hangs gets no second one. Of a guest that has not answered yet libvirt is asked first whether
 *   another program's call hangs (virDomainGetControlInfo(), which needs no QEMU);
 * - there are never more than CALLS_MAX of them, whatever number of connections makes them (conn.h, wss_conn_share()). The last
 *   few are for guests that have answered before, so that many unknown ones that hang do not keep those from being asked.
 *
 * libvirtd answers five requests of a connection at a time (max_client_requests), so a few such calls would use up the
 * connection, and libvirt's client may deliver other answers 3 s late while one of its calls hangs (9.0). Where a
 * connection serves many guests they therefore are made on side connections, one call at a time on each: a
 * connection whose call hangs is used for nothing else until that call returns. Few are opened as long as calls return
 * quickly, and one that is not used for a minute is closed.
 *
 * Drivers inside this process have no such limits, and a remote host may ask for a password for each
 * connection: there all calls are made on the one connection.
 */
#include "host/conn-private.h"

#include <libvirt/virterror.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/fault.h"
#include "base/units.h"
#include "host/process-find.h"
#include "host/stopped.h"

#define CALLS_MAX 16
/* Of guests that are not known to answer. */
#define CALLS_UNKNOWN_MAX 12
/* More that do not hang, yet, only if none of these has returned for PATIENCE_NS. */
#define CALLS_FEW 4
#define PATIENCE_NS (200 * WSS_NS_PER_MS)
/* A call that takes longer is taken to hang. */
#define HANGING_NS (5 * WSS_NS_PER_S)
/* How long a connection stays idle before it is closed. */
#define IDLE_NS (60 * WSS_NS_PER_S)
/* Guests that have answered of which that is known. */
#define ANSWERED_MAX 1024

struct wss_conn_calls {
	atomic_int references;
	bool limited;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	LIST_HEAD(, wss_conn_call) under_way; /* under the lock, as are the others */
	/* Guests whose last call has returned in time: a ring. */
	unsigned char answered[ANSWERED_MAX][VIR_UUID_BUFLEN];
	size_t n_answered, next_answered;
};

struct wss_conn_calls *wss_conn_calls_new(bool limited)
{
	struct wss_conn_calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->references = 1;
	calls->limited = limited;
	pthread_mutex_init(&calls->lock, NULL);
	wss_cond_init(&calls->changed);
	LIST_INIT(&calls->under_way);
	return calls;
}

struct wss_conn_calls *wss_conn_calls_ref(struct wss_conn_calls *calls)
{
	atomic_fetch_add(&calls->references, 1);
	return calls;
}

void wss_conn_calls_unref(struct wss_conn_calls *calls)
{
	if (!calls || atomic_fetch_sub(&calls->references, 1) != 1)
		return;
	pthread_cond_destroy(&calls->changed);
	pthread_mutex_destroy(&calls->lock);
	free(calls);
}

/* --- who answers --- */

/* The caller of these holds the lock. */
static bool guest_answers(const struct wss_conn_calls *calls, const unsigned char *uuid)
{
	for (size_t i = 0; i < calls->n_answered; i++)
		if (!memcmp(calls->answered[i], uuid, VIR_UUID_BUFLEN))
			return true;
	return false;
}

static void guest_has_answered(struct wss_conn_calls *calls, const unsigned char *uuid)
{
	if (guest_answers(calls, uuid))
		return;
	memcpy(calls->answered[calls->next_answered], uuid, VIR_UUID_BUFLEN);
	calls->next_answered = (calls->next_answered + 1) % ANSWERED_MAX;
	calls->n_answered += calls->n_answered < ANSWERED_MAX;
}

static void guest_has_hung(struct wss_conn_calls *calls, const unsigned char *uuid)
{
	for (size_t i = 0; i < calls->n_answered; i++)
		if (!memcmp(calls->answered[i], uuid, VIR_UUID_BUFLEN))
			memset(calls->answered[i], 0, VIR_UUID_BUFLEN);
}

/* --- their number --- */

static bool call_hangs(const struct wss_conn_call *call)
{
	return wss_clock_now_ns() - call->since_ns >= HANGING_NS;
}

static int refuse_hanging(uint64_t age_ns, struct wss_error *err)
{
	char text[16];

	wss_duration_format(age_ns, text, sizeof(text));
	return wss_error_set(err, WSS_ERR_TIMEOUT, "its QEMU has not answered libvirt for %s",
			     text);
}

/* Does a call about this domain hang? The caller holds the lock. */
static int check_hanging(const struct wss_conn_calls *calls, const unsigned char *uuid,
			 struct wss_error *err)
{
	const struct wss_conn_call *call;

	LIST_FOREACH(call, &calls->under_way, place)
	if (!memcmp(call->uuid, uuid, VIR_UUID_BUFLEN) && call_hangs(call))
		return refuse_hanging(wss_clock_now_ns() - call->since_ns, err);
	return 0;
}

/* Whether there may be another call. patient: only if few wait for an answer. The caller holds the lock. */
static bool calls_have_room(const struct wss_conn_calls *calls, const unsigned char *uuid,
			    bool patient)
{
	const struct wss_conn_call *call;
	size_t n = 0, waiting = 0;

	if (!calls->limited)
		return true;
	LIST_FOREACH(call, &calls->under_way, place)
	{
		n += call->counted;
		waiting += call->counted && !call_hangs(call);
	}
	return n < (guest_answers(calls, uuid) ? CALLS_MAX : CALLS_UNKNOWN_MAX) &&
	       !(patient && waiting >= CALLS_FEW);
}

/*
 * Waits until there is room for the call, and adds it. Without a deadline it does not wait for others that hang: it is not
 * counted then. *ret_answers: the guest is known to answer.
 */
static int call_enter(struct wss_conn_call *call, const struct wss_deadline *deadline,
		      const char *step, bool *ret_answers, struct wss_error *err)
{
	struct wss_conn_calls *calls = call->conn->calls;
	uint64_t start_ns = wss_clock_now_ns();
	bool patient = true, room = false;
	int r;

	pthread_mutex_lock(&calls->lock);
	while ((r = check_hanging(calls, call->uuid, err)) == 0 &&
	       !(room = calls_have_room(calls, call->uuid, patient)) && (patient || deadline)) {
		if ((r = wss_deadline_check(deadline, err)) < 0)
			break;
		if (wss_cancel_requested(wss_deadline_cancel(deadline))) {
			r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
			break;
		}
		if (!patient)
			wss_deadline_step(
				deadline,
				"waiting for libvirt, whose calls about other guests hang");
		wss_cond_wait_a_moment(&calls->changed, &calls->lock);
		patient = wss_clock_now_ns() - start_ns < PATIENCE_NS;
	}
	if (r == 0) {
		call->counted = room;
		call->since_ns = wss_clock_now_ns();
		LIST_INSERT_HEAD(&calls->under_way, call, place);
		*ret_answers = guest_answers(calls, call->uuid);
	}
	pthread_mutex_unlock(&calls->lock);
	wss_deadline_step(deadline, step);
	return r;
}

static void call_leave(struct wss_conn_call *call, bool answered)
{
	struct wss_conn_calls *calls = call->conn->calls;

	pthread_mutex_lock(&calls->lock);
	LIST_REMOVE(call, place);
	if (call_hangs(call))
		guest_has_hung(calls, call->uuid);
	else if (answered)
		guest_has_answered(calls, call->uuid);
	pthread_cond_signal(&calls->changed);
	pthread_mutex_unlock(&calls->lock);
}

/* --- side connections --- */

struct wss_conn_side {
	virConnectPtr vir; /* NULL: not open. Belongs to the call, if there is one */
	bool used;
	uint64_t since_ns; /* it has been idle */
};

struct wss_conn_sides {
	bool read_only;
	pthread_mutex_t lock;
	struct wss_conn_side side[CALLS_MAX];
};

struct wss_conn_sides *wss_conn_sides_new(bool read_only)
{
	struct wss_conn_sides *sides = calloc(1, sizeof(*sides));

	if (!sides)
		return NULL;
	sides->read_only = read_only;
	pthread_mutex_init(&sides->lock, NULL);
	return sides;
}

void wss_conn_sides_close(struct wss_conn_sides *sides)
{
	for (size_t i = 0; sides && i < CALLS_MAX; i++) {
		if (sides->side[i].vir)
			virConnectClose(sides->side[i].vir);
		sides->side[i].vir = NULL;
	}
}

void wss_conn_sides_free(struct wss_conn_sides *sides)
{
	if (!sides)
		return;
	pthread_mutex_destroy(&sides->lock);
	free(sides);
}

/* An idle connection that is open, else one that can be opened: there are as many as calls that are counted. */
static struct wss_conn_side *side_take(struct wss_conn_sides *sides)
{
	struct wss_conn_side *taken = NULL;

	pthread_mutex_lock(&sides->lock);
	for (size_t i = 0; i < CALLS_MAX && !(taken && taken->vir); i++) {
		struct wss_conn_side *side = &sides->side[i];

		if (!side->used && (side->vir || !taken))
			taken = side;
	}
	if (taken)
		taken->used = true;
	pthread_mutex_unlock(&sides->lock);
	return taken;
}

static void side_give_back(struct wss_conn_sides *sides, struct wss_conn_side *side)
{
	pthread_mutex_lock(&sides->lock);
	side->used = false;
	side->since_ns = wss_clock_now_ns();
	pthread_mutex_unlock(&sides->lock);
}

/* Closes the connections that no call has used for IDLE_NS. Calls take the first idle one, so that the last ones rest. */
static void sides_shrink(struct wss_conn_sides *sides)
{
	uint64_t now_ns = wss_clock_now_ns();

	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct wss_conn_side *side = &sides->side[i];
		virConnectPtr vir = NULL;

		pthread_mutex_lock(&sides->lock);
		if (!side->used && now_ns >= side->since_ns + IDLE_NS) {
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

/*
 * Finds the connection to call on. Better on one that others need, too, than not at all: libvirtd may have too many
 * clients.
 */
static int call_connect(struct wss_conn_call *call, virDomainPtr dom, struct wss_error *err)
{
	struct wss_conn *conn = call->conn;
	struct wss_conn_side *side = conn->sides && call->counted ? side_take(conn->sides) : NULL;

	if (side && !side_open(conn, side)) {
		side_give_back(conn->sides, side);
		side = NULL;
	}
	call->side = side;
	call->in_the_way = !call->counted || (conn->sides && !side);
	if (!side) {
		virDomainRef(dom);
		call->dom = dom;
		return 0;
	}
	call->dom = virDomainLookupByUUID(side->vir, call->uuid);
	if (!call->dom)
		return wss_conn_error(err, "cannot look up the domain");
	/* Libvirt answers now, so that closing does not hang. */
	sides_shrink(conn->sides);
	return 0;
}

/* --- the call --- */

/* A process that cannot be found is no reason not to ask. Of another host nothing can be seen. */
static int check_process(const struct wss_conn *conn, virDomainPtr dom,
			 const struct wss_deadline *deadline, struct wss_error *err)
{
	struct wss_process process = WSS_PROCESS_INIT;
	char uuid[VIR_UUID_STRING_BUFLEN];
	struct wss_root root;
	int r = 0;

	if (!conn->qemu_driver || conn->uri.kind == WSS_URI_OTHER || conn->uri.has_server ||
	    conn->uri.own_socket || !conn->uri.run_dir[0] ||
	    virDomainGetUUIDString(dom, uuid) < 0 ||
	    wss_root_open(wss_test_sysroot(), &root, NULL) < 0)
		return 0;
	if (wss_process_attach_recorded(&root, conn->uri.run_dir, virDomainGetName(dom), uuid,
					&process, NULL) == 0)
		r = wss_stopped_check(&root, &process, deadline, err);
	wss_process_release(&process);
	wss_root_close(&root);
	return r;
}

/* Whether a call of another program hangs. Where libvirt does not say, it is found out by calling. */
static int check_others(virDomainPtr dom, struct wss_error *err)
{
	virDomainControlInfo info;
	uint64_t age_ns;

	if (virDomainGetControlInfo(dom, &info, 0) < 0) {
		virResetLastError();
		return 0;
	}
	age_ns = info.stateTime * WSS_NS_PER_MS;
	return info.state == VIR_DOMAIN_CONTROL_OCCUPIED && age_ns >= HANGING_NS
		       ? refuse_hanging(age_ns, err)
		       : 0;
}

static void call_end(struct wss_conn_call *call, bool answered)
{
	if (!call->conn)
		return;
	if (call->dom)
		virDomainFree(call->dom);
	if (call->side)
		side_give_back(call->conn->sides, call->side);
	call_leave(call, answered);
	*call = (struct wss_conn_call){.conn = NULL};
}

int wss_conn_call_begin(struct wss_conn *conn, virDomainPtr dom, enum wss_conn_need need,
			const struct wss_deadline *deadline, const char *step,
			struct wss_conn_call *ret_call, struct wss_error *err)
{
	struct wss_conn_call *call = ret_call;
	bool answers = false;

	*call = (struct wss_conn_call){.conn = NULL};
	wss_deadline_step(deadline, step);
	if (wss_deadline_check(deadline, err) < 0)
		return -1;
	if (virDomainGetUUID(dom, call->uuid) < 0)
		return wss_conn_error(err, "cannot read the domain's UUID");
	if (need == WSS_CALL_NEEDS_QEMU && check_process(conn, dom, deadline, err) < 0)
		return -1;
	call->conn = conn;
	if (call_enter(call, deadline, step, &answers, err) < 0) {
		call->conn = NULL;
		return -1;
	}
	if (call_connect(call, dom, err) < 0 || (!answers && check_others(call->dom, err) < 0)) {
		call_end(call, false);
		return -1;
	}
	return 0;
}

void wss_conn_call_end(struct wss_conn_call *call)
{
	call_end(call, true);
}
