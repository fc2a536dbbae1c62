/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Connection to libvirt, with its event loop in a thread and keepalive on, so that calls to a
 * hanging libvirtd fail after 12 s instead of blocking forever. A request that a QEMU must answer whose process is
 * stopped or frozen fails with WSS_ERR_STOPPED (host/stopped.h), where libvirt runs here. wss_conn_open() and
 * wss_conn_close() run in a thread of their own with a deadline; everything else that calls
 * libvirt belongs in a worker (base/worker.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"

struct wss_conn;
struct wss_conn_shared;

/*
 * Connects to uri (NULL: libvirt's default, LIBVIRT_DEFAULT_URI first). WSS_ERR_CONNECT if
 * that fails or takes longer than 30 s, WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY,
 * WSS_ERR_FAILED.
 */
int wss_conn_open(const char *uri, struct wss_conn **ret_conn, struct wss_error *err);

/* Like wss_conn_open(), but falls back to a read-only connection if a writable one is refused. */
int wss_conn_open_reader(const char *uri, struct wss_conn **ret_conn, struct wss_error *err);

/*
 * Closes the connection; accepts NULL. All its guests must have been freed. Takes at most 2 s,
 * or 150 ms after a stop request: if libvirt hangs, a thread is left to close the connection.
 */
void wss_conn_close(struct wss_conn *conn);

/* What several connections to the same libvirt share. For wss_conn_shared_unref(); NULL: out of memory. */
struct wss_conn_shared *wss_conn_shared_new(void);

/* Drops a reference; accepts NULL. */
void wss_conn_shared_unref(struct wss_conn_shared *shared);

/*
 * Makes a new connection one of several to the same libvirt, each for one guest at a time: they share the
 * answer about the host, and the limit of calls that may hang, of which a guest has one at most. Takes a reference.
 */
void wss_conn_share(struct wss_conn *conn, struct wss_conn_shared *shared);

/*
 * Allows KVM's counters to be read by QMP through libvirt's monitor if no other source has
 * them. That taints the domain (custom-monitor).
 */
void wss_conn_allow_monitor(struct wss_conn *conn);

/*
 * Whether this process has used libvirt's embedded driver. That driver's threads outlive the
 * connection and crash when exit() tears down their libraries (libvirt 9.0: in libnuma, while
 * looking for running domains). Such a process must end with _exit().
 */
bool wss_conn_embedded(void);

/*
 * Ends the thread of libvirt's event loop. Call this before wss_threads_end(), when the
 * process is about to end; no connection may be opened afterwards.
 */
void wss_conn_end_events(void);

/*
 * Refers to a domain, either by a word from the command line (a decimal ID, a UUID or a name)
 * or by UUID alone. Since a domain's name may look like the ID or UUID of another, domains
 * that libvirt has listed are referred to by UUID, and a word that matches two domains is
 * refused (WSS_ERR_FAILED, naming both). WSS_ERR_GONE if there is no such domain.
 */
struct wss_domain_ref {
	const char *name; /* the word; with a UUID, for messages only */
	const char *uuid; /* NULL: name is the word to look up */
};

/* A domain from libvirt's list. */
struct wss_conn_domain {
	char *name;
	char uuid[WSS_UUID_TEXT_MAX];
};

/*
 * Lists all running domains, with inactive_too also the others, sorted by name. Free the array
 * of *ret_n entries with wss_conn_free_list().
 */
int wss_conn_list(struct wss_conn *conn, bool inactive_too, struct wss_conn_domain **ret_domains,
		  size_t *ret_n, struct wss_error *err);

/* Frees a list; accepts NULL. */
void wss_conn_free_list(struct wss_conn_domain *domains, size_t n);

/*
 * Opens a guest: reads its XML and state. Free it with wss_guest_free() before
 * wss_conn_close(). deadline, which may be NULL, applies to this call and to all later
 * requests about the guest; it must outlive the guest. Errors as for struct wss_domain_ref.
 */
int wss_conn_guest(struct wss_conn *conn, const struct wss_domain_ref *ref,
		   const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		   struct wss_error *err);

/* A domain's identity and its metadata element. */
struct wss_conn_entry {
	char name[WSS_NAME_MAX];
	char uuid[WSS_UUID_TEXT_MAX];
	bool active; /* has an id: running or paused */
	char *xml;   /* malloc()ed, owned by the caller; NULL if there is no such element */
};

/*
 * Returns the element stored under a namespace in a domain's metadata. Fails as described at
 * struct wss_domain_ref.
 */
int wss_conn_metadata(struct wss_conn *conn, const struct wss_domain_ref *ref,
		      const char *namespace_uri, struct wss_conn_entry *ret_entry,
		      struct wss_error *err);

/*
 * Stores an element of a domain's metadata, or removes it (xml NULL), in the running domain
 * and in its configuration, whichever exist. WSS_ERR_GONE if no domain has that UUID,
 * WSS_ERR_BUSY during a job.
 */
int wss_conn_set_metadata(struct wss_conn *conn, const char *uuid, const char *namespace_uri,
			  const char *prefix, const char *xml, struct wss_error *err);

/*
 * Returns the host's memory, hot-plugged memory included; unknown if the driver does not
 * report it.
 */
struct wss_amount wss_conn_host_memory(struct wss_conn *conn);

/* Memory of a domain. */
struct wss_conn_size {
	/* Its largest size, whether or not it runs; unknown if libvirt cannot be asked. */
	struct wss_amount maximum_bytes;
	/* The same; 0 if it does not run; unknown if libvirt cannot be asked. */
	struct wss_amount assigned_bytes;
	/* Its present size, if it is paused, suspended or crashed. */
	struct wss_amount paused_bytes;
};

/* Returns that of the domain with that UUID. */
struct wss_conn_size wss_conn_size(struct wss_conn *conn, const char *uuid);

/*
 * From now on notes which domains reboot without a new QEMU. May hang. Does nothing if called again, or if
 * the driver sends no such events.
 */
void wss_conn_follow_reboots(struct wss_conn *conn);

/* Takes the UUID of a domain that has rebooted since it was last taken; false: none has. Makes no libvirt call. */
bool wss_conn_next_reboot(struct wss_conn *conn, char ret_uuid[WSS_UUID_TEXT_MAX]);

/*
 * Reads the configuration of the running domain with that UUID, with what its process shows if that can be found on
 * host. Fails as described at struct wss_domain_ref; ret_config is then untouched.
 */
int wss_conn_config(struct wss_conn *conn, const struct wss_host *host, const char *uuid,
		    const struct wss_deadline *deadline, struct wss_domxml *ret_config,
		    struct wss_error *err);

/*
 * Reads the statistics of that domain's balloon, which are all unknown if it reports none. Hangs if its QEMU does. Fails
 * as wss_conn_config(), and with WSS_ERR_BUSY while too many other calls hang.
 */
int wss_conn_balloon_stats(struct wss_conn *conn, const char *uuid,
			   struct wss_balloon_stats *ret_stats, struct wss_error *err);

/* Whether the connection is open as far as libvirt's client knows, which asks nobody. */
bool wss_conn_alive(struct wss_conn *conn);

/* Returns the URI that the connection itself reports. Owned by the connection. */
const char *wss_conn_uri(const struct wss_conn *conn);

/* Returns the host's name as libvirt on that host reports it; malloc()ed, NULL if unknown. */
char *wss_conn_hostname(struct wss_conn *conn);

/* Returns the version of the libvirt library in use, "9.0.0". */
const char *wss_conn_libvirt_version(void);
