/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Targets: the guests to work on, each with its policy, its deadline, its cancel token, and
 * the data that a front end attaches to it.
 *
 * The policy is enforced here, so that no front end can forget it: a guest that opted out is
 * never opened.
 *
 * Every request to libvirt or QEMU about a guest may hang. Such steps run in workers
 * (base/worker.h), by wss_targets_run() or by a round (service/round.h). A worker that is late
 * keeps its target; the list gets another target in its place, with the same name and the
 * error. A target keeps its hypervisor alive, even after it was left behind.
 */
#ifndef WSS_SERVICE_TARGET_H
#define WSS_SERVICE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/error.h"
#include "host/conn.h"
#include "host/guest.h"
#include "host/host.h"
#include "wss/policy.h"

/*
 * Time that a guest may take apart from its windows: as long as libvirt waits for a domain's
 * lock.
 */
#define WSS_TARGET_DEADLINE_NS (30 * WSS_NS_PER_S)

/* This host and the source of the guests that run on it, reference-counted. */
struct wss_hypervisor;

/* Source of guests: libvirt, a QMP socket, or the invention of a test. Any call may hang. */
struct wss_guest_source {
	/* Lists domains, as wss_conn_list(). NULL: it cannot list any. */
	int (*list)(void *opaque, bool inactive_too, struct wss_conn_domain **ret_domains,
		    size_t *ret_n, struct wss_error *err);
	/* As wss_conn_guest(). */
	int (*open)(void *opaque, const struct wss_domain_ref *ref,
		    const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		    struct wss_error *err);
	/*
	 * Returns the URI through which a later process reaches the same guests; NULL: there
	 * is none.
	 */
	const char *(*uri)(void *opaque);
	/* Called once no guest of the source is open; may be NULL. */
	void (*close)(void *opaque);
};

struct wss_hypervisor_options {
	const char *uri;   /* of libvirt; NULL: its default */
	const char *qmp;   /* the QMP socket of the only guest, in place of libvirt; NULL: libvirt */
	bool allow_monitor; /* QMP through libvirt's monitor, which taints the domain */
	bool reader;	    /* a connection that may only read will do */
};

/*
 * Opens the host, and a connection to libvirt unless options->qmp is set; the strings are
 * copied. *ret_hypervisor is for wss_hypervisor_unref(). WSS_ERR_CONNECT, WSS_ERR_FAILED,
 * WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED.
 */
int wss_hypervisor_open(const struct wss_hypervisor_options *options,
			struct wss_hypervisor **ret_hypervisor, struct wss_error *err);

/*
 * Makes a hypervisor with any source, which must outlive it. Takes over host and opaque, on
 * failure (WSS_ERR_NO_MEMORY) as well.
 */
int wss_hypervisor_new(const struct wss_host *host, const struct wss_guest_source *source,
		       void *opaque, struct wss_hypervisor **ret_hypervisor,
		       struct wss_error *err);

/* Adds a reference and returns its argument. */
struct wss_hypervisor *wss_hypervisor_ref(struct wss_hypervisor *hypervisor);

/* Drops a reference; accepts NULL. */
void wss_hypervisor_unref(struct wss_hypervisor *hypervisor);

const struct wss_host *wss_hypervisor_host(const struct wss_hypervisor *hypervisor);

/* Returns the libvirt connection; NULL if the source is not libvirt. */
struct wss_conn *wss_hypervisor_conn(const struct wss_hypervisor *hypervisor);

/* Returns libvirt's URI; "" if there is none. */
const char *wss_hypervisor_uri(const struct wss_hypervisor *hypervisor);

/* Lists domains, as wss_conn_list(). May hang. */
int wss_hypervisor_list(const struct wss_hypervisor *hypervisor, bool inactive_too,
			struct wss_conn_domain **ret_domains, size_t *ret_n,
			struct wss_error *err);

/* What libvirt says about the host as a whole. */
struct wss_hypervisor_facts {
	struct wss_amount memory_bytes; /* as wss_conn_host_memory() */
	char *name;			/* malloc()ed; NULL if unknown */
};

/*
 * Asks libvirt about the host, in a worker. WSS_ERR_UNSUPPORTED without libvirt; WSS_ERR_TIMEOUT,
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_hypervisor_ask(struct wss_hypervisor *hypervisor, uint64_t deadline_ns,
		       struct wss_hypervisor_facts *ret_facts, struct wss_error *err);

struct wss_target {
	struct wss_hypervisor *hypervisor;
	char *name; /* as typed or listed; for messages, and to look it up */
	char *uuid; /* identifies a listed guest; NULL: the name does */
	/* NULL: not opened yet, or error has the reason why it could not be */
	struct wss_guest *guest;
	struct wss_error error;
	struct wss_policy policy; /* empty until it has been opened */
	struct wss_cancel cancel;
	struct wss_deadline deadline; /* guest->deadline points here */
	/* Data of the front end, released with the target by release_data if that is set. */
	void *data;
	void (*release_data)(void *data);
};

/*
 * Makes a target that has not been opened. deadline_ns is the time that it may take apart from
 * its windows, 0 for no limit. cancel, the parent of its token, may be NULL and must outlive
 * it. Returns NULL with err set: WSS_ERR_NO_MEMORY, WSS_ERR_FAILED.
 */
struct wss_target *wss_target_new(struct wss_hypervisor *hypervisor,
				  const struct wss_domain_ref *ref, uint64_t deadline_ns,
				  const struct wss_cancel *cancel, struct wss_error *err);

/* Frees a target; accepts NULL. Never touches the running guest. */
void wss_target_free(struct wss_target *target);

/*
 * Opens the guest and reads its policy, within the target's deadline. May hang in libvirt. If
 * the guest cannot be opened, or has opted out, guest stays NULL and error has the reason.
 */
void wss_target_open(struct wss_target *target);

/* Returns the guest's name if it is open, else the name that was typed or listed. */
const char *wss_target_name(const struct wss_target *target);

/*
 * Whether a target, after wss_target_open(), does not count among "all running guests": guests
 * that were shut off since they were listed, and those that opted out, are left out without a
 * message.
 */
bool wss_target_is_left_out(const struct wss_target *target);

/* A list of targets. */
struct wss_targets {
	struct wss_hypervisor *hypervisor;
	bool all; /* it stands for every running guest, not for a list of names */
	size_t n;
	struct wss_target **list;
};

struct wss_targets_query {
	const struct wss_domain_ref *refs; /* n == 0: every running guest */
	size_t n;
	bool inactive_too;    /* with n 0: every domain, running or not */
	uint64_t deadline_ns; /* of each, and of listing them; 0: of listing alone, the default */
	const struct wss_cancel *cancel; /* the parent of each one's token; NULL: the stop signal */
};

/*
 * Lists the targets without opening any, sorted by name if all guests are asked for.
 * ret_targets is for wss_targets_free(). WSS_ERR_CONNECT, WSS_ERR_TIMEOUT, WSS_ERR_FAILED,
 * WSS_ERR_NO_MEMORY.
 */
int wss_targets_find(struct wss_hypervisor *hypervisor, const struct wss_targets_query *query,
		     struct wss_targets *ret_targets, struct wss_error *err);

/*
 * Runs step for each open target, or with unopened_too for each target, in workers of their
 * own. Each step has the target's deadline, which is renewed for it. A failure is stored as
 * the error of its target. WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_targets_run(struct wss_targets *targets, void (*step)(struct wss_target *target),
		    bool unopened_too, struct wss_error *err);

/*
 * Opens all targets, then drops those that are the same guest as an earlier one, and those
 * that are left out if all guests were asked for. A failure is stored as the error of its
 * target, except that an unreachable libvirt is an error of this function. WSS_ERR_CONNECT,
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_targets_open(struct wss_targets *targets, struct wss_error *err);

/*
 * What libvirt has about a domain, whether it runs or not. Of a target in whose place another came,
 * as its worker was left, there is none.
 */
struct wss_target_entry {
	struct wss_conn_entry entry;
	struct wss_amount assigned_bytes; /* its largest memory size; 0 if it does not run */
};

/*
 * Reads an element of the metadata of each target, with sizes also assigned_bytes of those that are
 * active, in workers and without opening a guest; data becomes a struct wss_target_entry. What goes
 * wrong with a target is its error. namespace_uri is a constant. Errors of wss_targets_run().
 */
int wss_targets_read_element(struct wss_targets *targets, const char *namespace_uri, bool sizes,
			     struct wss_error *err);

/* Takes one that is all zero. */
void wss_targets_free(struct wss_targets *targets);

#endif
