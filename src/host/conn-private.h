/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by conn.c (the connection), conn-domains.c (finding domains), domain.c (a guest) and
 * monitor.c.
 */
#ifndef WSS_HOST_CONN_PRIVATE_H
#define WSS_HOST_CONN_PRIVATE_H

#include <libvirt/libvirt.h>
#include <pthread.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "host/conn.h"
#include "host/uri.h"

struct qmp;
struct wss_lifecycle;

/* The identity of the host that libvirt runs on, as libvirt reports it. */
struct wss_conn_identity {
	char uuid[WSS_UUID_TEXT_MAX];
	char *name;
};

/* Accepts NULL. */
void wss_conn_identity_free(struct wss_conn_identity *identity);

struct wss_conn {
	virConnectPtr vir;
	struct wss_lifecycle *lifecycle;
	char *uri_text;
	struct wss_uri uri;
	bool qemu_driver;
	bool allow_monitor;
	pthread_mutex_t identity_lock;
	struct wss_conn_identity *identity; /* under the lock; NULL: not known yet */
	struct wss_deadline closing;
};

static inline void wss_cleanup_domain(virDomainPtr *dom)
{
	if (*dom)
		virDomainFree(*dom);
}
#define wss_auto_domain wss_cleanup(wss_cleanup_domain)

/* Sets err from libvirt's last error: "what: text". A lost connection is WSS_ERR_CONNECT. */
int wss_conn_error(struct wss_error *err, const char *what);

/*
 * Looks up a domain. Returns NULL with err set if there is none, or if the name refers to two.
 */
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
int wss_conn_store(virDomainPtr dom, const char *namespace_uri, const char *prefix,
		   const char *xml, bool persistent, struct wss_error *err);

/*
 * QMP through libvirt's monitor command. Taints the domain. dom and deadline (may be NULL) are
 * borrowed and must outlive the returned connection.
 */
int wss_monitor_open(virDomainPtr dom, const struct wss_deadline *deadline,
		     struct qmp **ret_qmp, struct wss_error *err);

#endif
