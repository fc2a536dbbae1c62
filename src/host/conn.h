/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A connection to libvirt, with its event loop in a thread and keepalive on, so
 * that a libvirtd that hangs ends calls with an error instead of for ever.
 */
#ifndef WSS_HOST_CONN_H
#define WSS_HOST_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"

struct wss_conn;

/*
 * Connects to uri (NULL: libvirt's own default, LIBVIRT_DEFAULT_URI first).
 * WSS_ERR_CONNECT when that fails or takes longer than 30 s, WSS_ERR_INTERRUPTED;
 * WSS_ERR_NO_MEMORY, WSS_ERR_FAILED.
 */
int wss_conn_open(const char *uri, struct wss_conn **ret_conn, struct wss_error *err);

/* As that, and where a connection that may write is refused, one that may only read. */
int wss_conn_open_reader(const char *uri, struct wss_conn **ret_conn, struct wss_error *err);

/* Takes NULL. Every guest of the connection must have been freed. */
void wss_conn_close(struct wss_conn *conn);

/*
 * Allows KVM's counters to be read with QMP through libvirt's monitor where
 * nothing else has them. That taints the domain (custom-monitor).
 */
void wss_conn_allow_monitor(struct wss_conn *conn);

/*
 * Has this process had libvirt's embedded driver? Threads of that go on when the connection is
 * closed, and crash when exit() ends the libraries that they use (libvirt 9.0: looking for the
 * domains that run, in libnuma). Such a process ends with _exit().
 */
bool wss_conn_embedded(void);

/*
 * libvirt's events are no longer waited for: the thread that does so ends. When the process is
 * about to end, before wss_threads_end(); no connection is opened any more.
 */
void wss_conn_end_events(void);

/*
 * Addresses a domain: by a word that somebody typed, which may be an ID (decimal), a UUID or a
 * name, or by its UUID alone. Domains may be named like the ID or the UUID of another: what
 * libvirt has listed is addressed by its UUID, and a word that fits two domains is refused
 * (WSS_ERR_FAILED, both named). WSS_ERR_GONE where there is no such domain.
 */
struct wss_domain_ref {
	const char *name; /* the word; with a UUID only for messages */
	const char *uuid; /* NULL: the word addresses it */
};

/* A domain that libvirt has listed. */
struct wss_conn_domain {
	char *name;
	char uuid[WSS_UUID_TEXT_MAX];
};

/*
 * All running domains, with inactive_too all others as well, sorted by name: an array of ret_n
 * for wss_conn_free_list().
 */
int wss_conn_list(struct wss_conn *conn, bool inactive_too, struct wss_conn_domain **ret_domains,
		  size_t *ret_n, struct wss_error *err);

/* Takes NULL. */
void wss_conn_free_list(struct wss_conn_domain *domains, size_t n);

/*
 * Opens a guest: reads its XML and state. For wss_guest_free(), before wss_conn_close(). deadline,
 * which may be NULL, is that of this call and of all that the guest is asked later; it must outlive
 * the guest. Errors as for struct wss_domain_ref.
 */
int wss_conn_guest(struct wss_conn *conn, const struct wss_domain_ref *ref,
		   const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		   struct wss_error *err);

/* Who a domain is, and what it has in its metadata. */
struct wss_conn_entry {
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX];
	bool active; /* it has an id: it runs, or is paused */
	char *xml;   /* malloc'ed, the caller's; NULL when there is no such element */
};

/*
 * The element stored under a namespace in a domain's metadata. Errors as for struct
 * wss_domain_ref.
 */
int wss_conn_metadata(struct wss_conn *conn, const struct wss_domain_ref *ref,
		      const char *namespace_uri, struct wss_conn_entry *ret_entry,
		      struct wss_error *err);

/*
 * Stores an element of a domain's metadata, or removes it (xml NULL), in the running domain
 * and in its configuration, whatever of these there is. WSS_ERR_GONE where no domain has that
 * UUID, WSS_ERR_BUSY where a job is under way.
 */
int wss_conn_set_metadata(struct wss_conn *conn, const char *uuid, const char *namespace_uri,
			  const char *prefix, const char *xml, struct wss_error *err);

/* Memory of the host itself, hot-plugged included; absent where the driver does not say. */
struct wss_amount wss_conn_host_memory(struct wss_conn *conn);

/*
 * What the domain of that UUID may use at most: 0 where it does not run, absent where it cannot
 * be asked.
 */
struct wss_amount wss_conn_assigned(struct wss_conn *conn, const char *uuid);

/* The connection's own name for itself, whatever it was opened by. The connection's. */
const char *wss_conn_uri(const struct wss_conn *conn);

/* The name of the host, as libvirt there gives it; malloc'ed, NULL where it does not say. */
char *wss_conn_hostname(struct wss_conn *conn);

/* Version of the libvirt library in use, "9.0.0". */
const char *wss_conn_libvirt_version(void);

#endif
