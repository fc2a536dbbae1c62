/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Targets: the guests to work on, each with its policy, its deadline, its cancel token, and the
 * caller's data.
 *
 * The policy is enforced here, so that no caller can forget it: a guest that opted out is never
 * opened.
 *
 * Every request to libvirt or QEMU about a guest may hang. Such steps run in workers
 * (base/worker.h), started by wss_targets_run() or by a round (measure/round.h). A worker that
 * is late keeps its target, and the list gets a replacement with the same name and the error.
 * A target keeps its hypervisor alive, even after it was left behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stdatomic.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/error.h"
#include "host/conn.h"
#include "host/guest.h"
#include "host/host.h"
#include "measure/policy.h"

/*
 * Default time that a guest may take, not counting its windows: as long as libvirt waits for a
 * domain's lock.
 */
#define WSS_TARGET_DEADLINE_NS (30 * WSS_NS_PER_S)

/* This host and the source of the guests that run on it, reference-counted. */
struct wss_hypervisor;

/* Source of guests: libvirt, a QMP socket, the kernel, or a test's invention. Any call may hang. */
struct wss_guest_source {
	/* Lists domains, as wss_conn_list(). NULL: it cannot list any. */
	int (*list)(void *opaque, bool inactive_too, struct wss_conn_domain **ret_domains,
		    size_t *ret_n, struct wss_error *err);
	/* As wss_conn_guest(). */
	int (*open)(void *opaque, const struct wss_domain_ref *ref,
		    const struct wss_deadline *deadline, struct wss_guest **ret_guest,
		    struct wss_error *err);
	/*
	 * Returns the URI through which a later process can reach the same guests; NULL if
	 * there is none.
	 */
	const char *(*uri)(void *opaque);
	/* As wss_conn_follow_reboots(). NULL: its guests are not known to reboot. */
	void (*follow_reboots)(void *opaque);
	/* As wss_conn_next_reboot(). Set if follow_reboots is. */
	bool (*next_reboot)(void *opaque, char ret_uuid[WSS_UUID_TEXT_MAX]);
	/* Called once no guest of the source is open; may be NULL. */
	void (*close)(void *opaque);
	bool has_no_inventory; /* nothing can be published of its guests */
};

struct wss_hypervisor_options {
	/* Libvirt's URI, or that of an inventory (host/inventories.h); NULL: libvirt's default. */
	const char *uri;
	const char *qmp;    /* QMP socket of the only guest, replacing libvirt; NULL: libvirt */
	bool allow_monitor; /* QMP through libvirt's monitor, which taints the domain */
	bool reader;	    /* a read-only connection suffices */
};

/*
 * Opens the host, and a connection to libvirt unless options->qmp is set; the strings are
 * copied. Release *ret_hypervisor with wss_hypervisor_unref(). WSS_ERR_CONNECT,
 * WSS_ERR_FAILED, WSS_ERR_NO_MEMORY, WSS_ERR_INTERRUPTED.
 */
int wss_hypervisor_open(const struct wss_hypervisor_options *options,
			struct wss_hypervisor **ret_hypervisor, struct wss_error *err);

/*
 * Makes a hypervisor with any source, which must outlive it. Takes over host and opaque, even
 * on failure (WSS_ERR_NO_MEMORY).
 */
int wss_hypervisor_new(const struct wss_host *host, const struct wss_guest_source *source,
		       void *opaque, struct wss_hypervisor **ret_hypervisor, struct wss_error *err);

/* Adds a reference and returns its argument. */
struct wss_hypervisor *wss_hypervisor_ref(struct wss_hypervisor *hypervisor);

/* Drops a reference; accepts NULL. */
void wss_hypervisor_unref(struct wss_hypervisor *hypervisor);

const struct wss_host *wss_hypervisor_host(const struct wss_hypervisor *hypervisor);

/* Returns the libvirt connection; NULL if the source is not libvirt. */
struct wss_conn *wss_hypervisor_conn(const struct wss_hypervisor *hypervisor);

/* Returns libvirt's URI; "" if there is none. */
const char *wss_hypervisor_uri(const struct wss_hypervisor *hypervisor);

/* Whether profiles of its guests can be published. */
bool wss_hypervisor_has_inventory(const struct wss_hypervisor *hypervisor);

/* Lists domains, as wss_conn_list(). May hang. */
int wss_hypervisor_list(const struct wss_hypervisor *hypervisor, bool inactive_too,
			struct wss_conn_domain **ret_domains, size_t *ret_n, struct wss_error *err);

/* Opens a guest, as wss_conn_guest(). May hang. */
int wss_hypervisor_guest(const struct wss_hypervisor *hypervisor, const struct wss_domain_ref *ref,
			 const struct wss_deadline *deadline, struct wss_guest **ret_guest,
			 struct wss_error *err);

/* From now on notes which guests reboot without a new QEMU, if the source tells. May hang. */
void wss_hypervisor_follow_reboots(const struct wss_hypervisor *hypervisor);

/* Takes the UUID of a guest that has rebooted since it was last taken; false: none has. Makes no libvirt call. */
bool wss_hypervisor_next_reboot(const struct wss_hypervisor *hypervisor,
				char ret_uuid[WSS_UUID_TEXT_MAX]);

/* Whether its connection to libvirt, if it has one, still works as far as is known. Makes no libvirt call. */
bool wss_hypervisor_alive(const struct wss_hypervisor *hypervisor);

/* libvirt's facts about the host as a whole. */
struct wss_hypervisor_facts {
	struct wss_amount memory_bytes; /* as wss_conn_host_memory() */
	char *name;			/* malloc()ed; NULL if unknown */
};

/*
 * Asks libvirt about its host, in a worker; without libvirt the host is this one. WSS_ERR_TIMEOUT,
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_hypervisor_ask(struct wss_hypervisor *hypervisor, uint64_t deadline_ns,
		       struct wss_hypervisor_facts *ret_facts, struct wss_error *err);

/* Reads the statistics of a running domain's balloon, in a worker, for its QEMU may hang. The same errors. */
int wss_hypervisor_balloon_stats(struct wss_hypervisor *hypervisor, const char *uuid,
				 uint64_t deadline_ns, struct wss_balloon_stats *ret_stats,
				 struct wss_error *err);

struct wss_target {
	struct wss_hypervisor *hypervisor;
	char *name; /* as typed or listed; for messages and lookups */
	char *uuid; /* identifies a listed guest; NULL: use the name */
	/* NULL: not opened yet, or could not be opened (see error) */
	struct wss_guest *guest;
	struct wss_error error;
	struct wss_policy policy; /* empty until the guest has been opened */
	struct wss_cancel cancel;
	struct wss_deadline deadline; /* guest->deadline points here */
	/* CPU time that threads have spent on it, as far as they have told by wss_target_charge(). */
	atomic_uint_fast64_t cpu_ns;
	/* Data of the caller, released with the target by release_data if that is set. */
	void *data;
	void (*release_data)(void *data);
};

/* Charges the target with what the calling thread has used since it was last charged (base/clock.h). */
void wss_target_charge(struct wss_target *target);

/*
 * Makes a target without opening it. deadline_ns is the time that it may take, not counting
 * its windows; 0: no limit. cancel, the parent of its token, may be NULL and must outlive it.
 * Returns NULL with err set: WSS_ERR_NO_MEMORY, WSS_ERR_FAILED.
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

/*
 * Reads the policy of an open target again. Fails as wss_target_open() does, with the guest left open:
 * WSS_ERR_UNSUPPORTED if it has opted out by now.
 */
int wss_target_read_policy(struct wss_target *target, struct wss_error *err);

/* Returns the guest's name if it is open, else the name that was typed or listed. */
const char *wss_target_name(const struct wss_target *target);

/*
 * Whether an opened target should silently be left out of "all running guests", because it was
 * shut off after it was listed, or because it opted out. Call it after wss_target_open().
 */
bool wss_target_is_left_out(const struct wss_target *target);

/* A list of targets. */
struct wss_targets {
	struct wss_hypervisor *hypervisor;
	bool all; /* the list stands for every running guest */
	size_t n;
	struct wss_target **list;
};

struct wss_targets_query {
	const struct wss_domain_ref *refs; /* n == 0: every running guest */
	size_t n;
	bool inactive_too;		 /* with n == 0: every domain, running or not */
	uint64_t deadline_ns;		 /* of each target and of listing; 0: listing's default */
	const struct wss_cancel *cancel; /* parent of each target's token; NULL: the stop signal */
};

/*
 * Lists the targets without opening any; sorted by name if all guests are requested. Free
 * ret_targets with wss_targets_free(). WSS_ERR_CONNECT, WSS_ERR_TIMEOUT, WSS_ERR_FAILED,
 * WSS_ERR_NO_MEMORY.
 */
int wss_targets_find(struct wss_hypervisor *hypervisor, const struct wss_targets_query *query,
		     struct wss_targets *ret_targets, struct wss_error *err);

/*
 * Runs step for each open target, or with unopened_too for each target, in a worker for each.
 * All steps of a target, and its opening, share its deadline. A failure is stored as its target's
 * error. WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_targets_run(struct wss_targets *targets, void (*step)(struct wss_target *target),
		    bool unopened_too, struct wss_error *err);

/*
 * Opens all targets, then drops those that are the same guest as an earlier one and, if all
 * guests were requested, those that are left out. A failure is stored as its target's error,
 * except that an unreachable libvirt makes this function fail. WSS_ERR_CONNECT,
 * WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_targets_open(struct wss_targets *targets, struct wss_error *err);

/*
 * Data that libvirt has about a domain, running or not. A target that replaces one whose
 * worker was left behind has none.
 */
struct wss_target_entry {
	struct wss_conn_entry entry;
	struct wss_conn_size size;
	/* Of a running domain, on request: NULL if they could not be read. */
	struct wss_domxml *config;
	struct wss_balloon_stats *stats;
	struct wss_error stats_error; /* why there is a configuration without statistics */
};

/* What else to read of active domains. */
#define WSS_ENTRY_SIZES 1u  /* size */
#define WSS_ENTRY_CONFIG 2u /* config and stats */

/*
 * Reads each target's metadata element, and what else is asked for of active ones,
 * in workers and without opening a guest. data becomes a struct wss_target_entry. A failure is
 * stored as its target's error. namespace_uri must be a constant. Errors of wss_targets_run().
 */
int wss_targets_read_element(struct wss_targets *targets, const char *namespace_uri, unsigned more,
			     struct wss_error *err);

/* Accepts a list that is all zero. */
void wss_targets_free(struct wss_targets *targets);
