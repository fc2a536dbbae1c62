/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by conn.c (the connection), conn-call.c (calls that may hang), conn-domains.c (finding domains),
 * conn-shared.c (what several connections share), domain.c (a guest) and monitor.c.
 */
#pragma once

#include <libvirt/libvirt.h>
#include <pthread.h>
#include <sys/queue.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "host/conn.h"
#include "host/uri.h"

struct qmp;
struct wss_lifecycle;

/* A peer that is silent for that many seconds, that many times, counts as dead. */
#define WSS_CONN_KEEPALIVE_S 3
#define WSS_CONN_KEEPALIVE_COUNT 3

struct wss_conn_calls;
struct wss_conn_side;
struct wss_conn_sides;

struct wss_conn {
	virConnectPtr vir;
	struct wss_lifecycle *lifecycle;
	char *uri_text;
	struct wss_uri uri;
	bool qemu_driver;
	bool allow_monitor;
	struct wss_conn_shared *shared;
	struct wss_conn_calls *calls; /* that may hang and are under way */
	struct wss_conn_sides *sides; /* NULL: all calls are made on vir */
	struct wss_deadline closing;
};

static inline void wss_cleanup_domain(virDomainPtr *dom)
{
	if (*dom)
		virDomainFree(*dom);
}
#define wss_auto_domain wss_cleanup(wss_cleanup_domain)

/* The connections for calls that may hang; NULL: out of memory. */
struct wss_conn_sides *wss_conn_sides_new(bool read_only);

/* Closes them, which calls libvirtd. There must be no call. Both accept NULL. */
void wss_conn_sides_close(struct wss_conn_sides *sides);
void wss_conn_sides_free(struct wss_conn_sides *sides);

/*
 * The calls that are under way, of all connections that share them. limited: there may be few, because they take threads of
 * a libvirtd. NULL: out of memory.
 */
struct wss_conn_calls *wss_conn_calls_new(bool limited);

/* Adds a reference and returns its argument; wss_conn_calls_unref() accepts NULL. */
struct wss_conn_calls *wss_conn_calls_ref(struct wss_conn_calls *calls);
void wss_conn_calls_unref(struct wss_conn_calls *calls);

/* What a call waits for. */
enum wss_conn_need {
	WSS_CALL_NEEDS_QEMU, /* an answer of QEMU's */
	WSS_CALL_NEEDS_TURN, /* other calls about the domain only: it is made whether or not QEMU can answer */
};

/* One or several calls of libvirt about a domain that may hang. */
struct wss_conn_call {
	struct wss_conn *conn;
	struct wss_conn_side *side; /* NULL: made on the connection itself */
	virDomainPtr dom;	    /* what to call */
	bool in_the_way; /* it is one too many, or made on the connection that all others need */
	/* For conn-call.c. */
	LIST_ENTRY(wss_conn_call) place;
	unsigned char uuid[VIR_UUID_BUFLEN];
	uint64_t since_ns;
	bool counted;
};

/*
 * Prepares a call that reaches the domain's QEMU, or waits until another such call has returned; for
 * wss_conn_call_end(), also by wss_auto_call. *ret_call must stay where it is until then. step is what the call does, for
 * the error of the deadline. Without a deadline, which may be NULL, it waits for no call that hangs. WSS_ERR_TIMEOUT if an
 * earlier call about the domain hangs, also another program's; WSS_ERR_STOPPED if QEMU is needed and cannot answer;
 * WSS_ERR_GONE, WSS_ERR_INTERRUPTED.
 */
int wss_conn_call_begin(struct wss_conn *conn, virDomainPtr dom, enum wss_conn_need need,
			const struct wss_deadline *deadline, const char *step,
			struct wss_conn_call *ret_call, struct wss_error *err);

/* Accepts one that is all zero. */
void wss_conn_call_end(struct wss_conn_call *call);
#define wss_auto_call wss_cleanup(wss_conn_call_end)

/*
 * Whether libvirt runs on this host, which it is asked about once. Returns 0, or -1 with
 * WSS_ERR_UNSUPPORTED if it runs on another one; WSS_ERR_TIMEOUT, WSS_ERR_INTERRUPTED or libvirt's error if it
 * did not answer.
 */
int wss_conn_check_locality(struct wss_conn *conn, const struct wss_host *host,
			    const struct wss_deadline *deadline, struct wss_error *err);

/*
 * Finds and holds the QEMU of a domain with that configuration, as wss_process_attach(). WSS_ERR_UNSUPPORTED if it
 * runs on another host, or if the driver runs no QEMU.
 */
int wss_conn_process(struct wss_conn *conn, const struct wss_host *host,
		     const struct wss_domxml *config, const struct wss_deadline *deadline,
		     struct wss_process *ret_process, struct wss_error *err);

/* Sets err from libvirt's last error: "what: text". A lost connection is WSS_ERR_CONNECT. */
int wss_conn_error(struct wss_error *err, const char *what);

/* Looks up a domain. Returns NULL with err set if there is none, or if the name refers to two. */
virDomainPtr wss_conn_lookup(struct wss_conn *conn, const struct wss_domain_ref *ref,
			     struct wss_error *err);

/* Like wss_conn_metadata(), but returns the element only. */
int wss_conn_element(virDomainPtr dom, const char *namespace_uri, char **ret_xml,
		     struct wss_error *err);

/*
 * Stores an element, or removes it if xml is NULL: in the running domain, and with persistent
 * also in the configuration of a persistent domain. WSS_ERR_BUSY during a job;
 * WSS_ERR_UNSUPPORTED on a read-only connection.
 */
int wss_conn_store(virDomainPtr dom, const char *namespace_uri, const char *prefix, const char *xml,
		   bool persistent, struct wss_error *err);

/*
 * QMP through libvirt's monitor command. Taints the domain. dom and deadline (may be NULL) are
 * borrowed and must outlive the returned connection.
 */
int wss_monitor_open(virDomainPtr dom, const struct wss_deadline *deadline, struct qmp **ret_qmp,
		     struct wss_error *err);
