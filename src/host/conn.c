/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/conn-private.h"

#include <errno.h>
#include <libvirt/virterror.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "base/worker.h"
#include "host/inventories.h"
#include "host/lifecycle.h"

#define OPEN_TIMEOUT_NS (30 * WSS_NS_PER_S)
/*
 * Longest wait for a connection to close, normally and after a stop request; then a thread is
 * left to close it.
 */
#define CLOSE_TIMEOUT_NS WSS_NS_PER_S
#define CLOSE_CANCEL_NS (100 * WSS_NS_PER_MS)
/* More descriptors than a connection needs with any driver. */
#define DESCRIPTORS_MIN 16

static atomic_bool event_loop_running, event_loop_ends;

/*
 * libvirt has one event loop per process. It cannot be stopped while anything is registered
 * with it, so it runs from the first connection until the process is about to end.
 */
static void event_loop(void *unused)
{
	(void)unused;
	while (!event_loop_ends)
		if (virEventRunDefaultImpl() < 0)
			wss_clock_sleep_until_ns(wss_clock_now_ns() + WSS_NS_PER_MS);
}

static void drop_libvirt_message(void *unused, virErrorPtr error)
{
	(void)unused;
	(void)error;
}

static pthread_once_t event_loop_once = PTHREAD_ONCE_INIT;
static atomic_bool embedded;

static void start_event_loop(void)
{
	struct wss_thread *thread;

	/* libvirt prints every error to stderr unless told otherwise. */
	virSetErrorFunc(NULL, drop_libvirt_message);
	if (virInitialize() < 0 || virEventRegisterDefaultImpl() < 0)
		return;
	if (wss_thread_start(event_loop, NULL, &thread, NULL) == 0) {
		wss_thread_leave(thread);
		event_loop_running = true;
	}
}

static void wake_event_loop(int timer, void *unused)
{
	(void)timer;
	(void)unused;
}

void wss_conn_end_events(void)
{
	if (!event_loop_running)
		return;
	event_loop_ends = true;
	/* Wakes the loop, which is waiting for an event. */
	if (virEventAddTimeout(0, wake_event_loop, NULL, NULL) < 0)
		virResetLastError();
}

int wss_conn_error(struct wss_error *err, const char *what)
{
	virErrorPtr last = virGetLastError();
	enum wss_error_code code = WSS_ERR_FAILED;

	if (last) {
		switch (last->code) {
		case VIR_ERR_NO_CONNECT:
		case VIR_ERR_INVALID_CONN:
		case VIR_ERR_RPC:
		case VIR_ERR_AUTH_FAILED:
			code = WSS_ERR_CONNECT;
			break;
		case VIR_ERR_NO_SUPPORT:
		case VIR_ERR_OPERATION_UNSUPPORTED:
		case VIR_ERR_ARGUMENT_UNSUPPORTED:
		case VIR_ERR_OPERATION_DENIED:
		case VIR_ERR_ACCESS_DENIED:
			code = WSS_ERR_UNSUPPORTED;
			break;
		case VIR_ERR_NO_DOMAIN:
			code = WSS_ERR_GONE;
			break;
		case VIR_ERR_OPERATION_TIMEOUT:
			code = WSS_ERR_TIMEOUT;
			break;
		default:
			/*
			 * Transport errors have various codes: "client socket is closed" is an
			 * internal error, and so is a call that an older libvirtd lacks.
			 */
			if (last->domain == VIR_FROM_RPC)
				code = WSS_ERR_CONNECT;
			break;
		}
	}
	return wss_error_set(err, code, "%s: %s", what,
			     last && last->message ? last->message : "unknown libvirt error");
}

static void conn_free(void *opaque)
{
	struct wss_conn *conn = opaque;

	if (!conn)
		return;
	wss_lifecycle_free(conn->lifecycle);
	wss_conn_shared_unref(conn->shared);
	wss_conn_calls_unref(conn->calls);
	wss_conn_sides_free(conn->sides);
	free(conn->uri_text);
	free(conn);
}

/* Asks the new connection for properties that are needed repeatedly. */
static int conn_describe(struct wss_conn *conn, struct wss_error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
	const char *driver = virConnectGetType(conn->vir);
	char cache[512] = "";

	if (home)
		snprintf(cache, sizeof(cache), "%s/.cache", home);
	conn->uri_text = virConnectGetURI(conn->vir);
	conn->qemu_driver = driver && !strcmp(driver, "QEMU");
	if (!conn->uri_text)
		return wss_conn_error(err, "cannot read the connection's URI");
	if (wss_uri_parse(conn->uri_text, runtime, cache[0] ? cache : NULL, &conn->uri, err) < 0)
		return -1;
	if (conn->uri.kind == WSS_URI_EMBED)
		embedded = true;
	return 0;
}

/*
 * virConnectOpen() has no deadline of its own: a libvirtd that accepts and never answers would
 * block forever. It therefore runs in a thread that can be left behind.
 */
struct opening {
	char *uri;
	bool reading; /* fall back to a read-only connection */
	bool read_only;
	bool has_peer;
	struct wss_deadline deadline;
	struct wss_conn *conn;
	bool open;
	struct wss_error error;
};

static void opening_free(void *opaque)
{
	struct opening *o = opaque;

	if (o->conn && o->conn->vir)
		virConnectClose(o->conn->vir);
	conn_free(o->conn);
	free(o->uri);
	free(o);
}

static void opening_connect(struct opening *o)
{
	const char *default_uri = o->uri ? NULL : getenv("LIBVIRT_DEFAULT_URI");
	const struct wss_inventory_ops *meant = wss_inventory_meant(o->uri);
	bool is_default = default_uri && *default_uri;
	char what[320];

	o->conn->vir = virConnectOpenAuth(o->uri, virConnectAuthPtrDefault, 0);
	if (o->conn->vir)
		return;
	if (is_default)
		snprintf(what, sizeof(what),
			 "cannot connect to libvirt at %.200s (LIBVIRT_DEFAULT_URI)", default_uri);
	else
		snprintf(what, sizeof(what), "cannot connect to libvirt%s%.200s%s%s%s",
			 o->uri ? " at " : "", o->uri ? o->uri : "", meant ? " (did you mean " : "",
			 meant ? meant->uri : "", meant ? "?)" : "");
	wss_conn_error(&o->error, what);
	o->error.code = WSS_ERR_CONNECT;
	/* If that fails as well, report the first reason. */
	if (o->reading && (o->conn->vir = virConnectOpenReadOnly(o->uri))) {
		o->read_only = true;
		wss_error_clear(&o->error);
	}
}

static void opening_run(void *opaque)
{
	struct opening *o = opaque;
	bool aside;

	opening_connect(o);
	if (!o->conn->vir)
		return;
	/* Drivers inside this process have no peer to lose: they return -1 or 1. */
	o->has_peer = virConnectSetKeepAlive(o->conn->vir, WSS_CONN_KEEPALIVE_S,
					     WSS_CONN_KEEPALIVE_COUNT) == 0;
	if (!o->has_peer)
		virResetLastError();
	if (conn_describe(o->conn, &o->error) < 0)
		return;
	aside = o->has_peer && !o->conn->uri.has_server;
	o->conn->calls = wss_conn_calls_new(o->has_peer);
	if (!o->conn->calls || (aside && !(o->conn->sides = wss_conn_sides_new(o->read_only))))
		wss_error_set(&o->error, WSS_ERR_NO_MEMORY, "out of memory");
	else
		o->open = true;
}

static struct opening *opening_new(const char *uri, bool reading)
{
	struct opening *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->reading = reading;
	o->conn = calloc(1, sizeof(*o->conn));
	if (o->conn && (o->conn->lifecycle = wss_lifecycle_new()) &&
	    (o->conn->shared = wss_conn_shared_new()) && (!uri || (o->uri = strdup(uri))))
		return o;
	opening_free(o);
	return NULL;
}

static int open_with_deadline(const char *uri, bool reading, struct wss_conn **ret_conn,
			      struct wss_error *err)
{
	struct opening *o = opening_new(uri, reading);
	struct wss_work work = {opening_run, opening_free, o, o ? &o->deadline : NULL};
	struct wss_error late = WSS_ERROR_INIT;
	int r;

	if (!o)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_deadline_allow(&o->deadline, OPEN_TIMEOUT_NS - WSS_WORKER_GRACE_NS);
	wss_deadline_run(&o->deadline, 0);
	if (wss_work_run(&work, 0, &late) == 0) {
		r = o->open ? 0 : -1;
		*err = o->error;
		if (o->open)
			*ret_conn = wss_steal_ptr(o->conn);
		opening_free(o);
		return r;
	}
	if (late.code != WSS_ERR_TIMEOUT) {
		opening_free(o);
		*err = late;
		return -1;
	}
	if (wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return wss_error_set(err, WSS_ERR_CONNECT,
			     "cannot connect to libvirt: no answer within 30 s");
}

bool wss_conn_embedded(void)
{
	return embedded;
}

/*
 * GLib, which libvirt uses, aborts if it cannot get a descriptor for a wakeup, so this check
 * precedes the first libvirt call.
 */
static int check_descriptors(struct wss_error *err)
{
	int fds[DESCRIPTORS_MIN], n = 0, errnum = 0;

	while (n < DESCRIPTORS_MIN && !errnum) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		if (fds[n] < 0)
			errnum = errno;
		else
			n++;
	}
	while (n > 0)
		close(fds[--n]);
	if (!errnum)
		return 0;
	return wss_error_errno(err, WSS_ERR_CONNECT, errnum,
			       "cannot connect to libvirt: %d file descriptors must be free, see "
			       "ulimit -n",
			       DESCRIPTORS_MIN);
}

static int conn_open(const char *uri, bool reading, struct wss_conn **ret_conn,
		     struct wss_error *err)
{
	struct wss_error local = WSS_ERROR_INIT;

	if (!err)
		err = &local;
	if (check_descriptors(err) < 0)
		return -1;
	pthread_once(&event_loop_once, start_event_loop);
	if (!event_loop_running)
		return wss_error_set(err, WSS_ERR_CONNECT, "cannot start libvirt's event loop");
	return open_with_deadline(uri, reading, ret_conn, err);
}

int wss_conn_open(const char *uri, struct wss_conn **ret_conn, struct wss_error *err)
{
	return conn_open(uri, false, ret_conn, err);
}

int wss_conn_open_reader(const char *uri, struct wss_conn **ret_conn, struct wss_error *err)
{
	return conn_open(uri, true, ret_conn, err);
}

static void closing_run(void *opaque)
{
	struct wss_conn *conn = opaque;

	wss_lifecycle_stop(conn->lifecycle, conn->vir);
	wss_conn_sides_close(conn->sides);
	virConnectClose(conn->vir);
	conn->vir = NULL;
}

/* Closing calls libvirtd, which may hang by now. Nobody needs its answer. */
void wss_conn_close(struct wss_conn *conn)
{
	struct wss_work work = {closing_run, conn_free, conn, NULL};
	struct wss_error why = WSS_ERROR_INIT;

	if (!conn)
		return;
	work.deadline = &conn->closing;
	wss_deadline_allow(&conn->closing, CLOSE_TIMEOUT_NS);
	wss_deadline_run(&conn->closing, 0);
	if (wss_work_run(&work, CLOSE_CANCEL_NS, &why) < 0) {
		if (why.code == WSS_ERR_TIMEOUT)
			return;
		closing_run(conn);
	}
	conn_free(conn);
}

void wss_conn_allow_monitor(struct wss_conn *conn)
{
	conn->allow_monitor = true;
}

void wss_conn_follow_reboots(struct wss_conn *conn)
{
	wss_lifecycle_follow_reboots(conn->lifecycle, conn->vir);
}

bool wss_conn_next_reboot(struct wss_conn *conn, char ret_uuid[WSS_UUID_TEXT_MAX])
{
	_Static_assert(WSS_UUID_TEXT_MAX == VIR_UUID_STRING_BUFLEN, "a UUID in text");
	return wss_lifecycle_next_reboot(conn->lifecycle, ret_uuid);
}

bool wss_conn_alive(struct wss_conn *conn)
{
	return virConnectIsAlive(conn->vir) == 1;
}

const char *wss_conn_uri(const struct wss_conn *conn)
{
	return conn->uri_text;
}

char *wss_conn_hostname(struct wss_conn *conn)
{
	return virConnectGetHostname(conn->vir);
}

const char *wss_conn_libvirt_version(void)
{
	static char text[32];
	unsigned long version;

	if (virGetVersion(&version, NULL, NULL) < 0)
		return "unknown";
	snprintf(text, sizeof(text), "%lu.%lu.%lu", version / 1000000, version / 1000 % 1000,
		 version % 1000);
	return text;
}
