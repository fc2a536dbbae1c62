/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Guest as the trackers see it: one that libvirt manages (host/conn.h), or one addressed by
 * its own QMP socket (host/qmpguest.h).
 */
#ifndef WSS_HOST_GUEST_H
#define WSS_HOST_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/amount.h"
#include "base/deadline.h"
#include "base/error.h"
#include "host/domxml.h"
#include "host/host.h"
#include "host/kvmstat.h"
#include "host/process.h"
#include "host/ram.h"

/* Room for the name of a job, with its final NUL. */
#define WSS_JOB_MAX 64

enum wss_guest_state {
	WSS_GUEST_RUNNING,
	WSS_GUEST_PAUSED,
	WSS_GUEST_SHUTOFF,
	WSS_GUEST_INCOMING, /* an incoming migration is not complete */
	WSS_GUEST_OTHER,    /* crashed, in shutdown, suspended by its own power management */
};

struct wss_guest;

/*
 * Memory statistics that the guest reports through its balloon, and the host's size of the
 * balloon.
 */
struct wss_balloon_stats {
	struct wss_amount actual_bytes; /* size that the balloon leaves to the guest */
	struct wss_amount rss_bytes;	/* resident memory of the whole QEMU process, now */
	struct wss_amount
		usable_bytes; /* memory that the guest could give up without swapping */
	struct wss_amount free_bytes, cache_bytes; /* unused memory, and page cache */
	struct wss_amount managed_bytes; /* all memory that the guest's kernel manages */
	struct wss_amount swapped_bytes; /* swapped in and out since it booted */
	struct wss_amount major_faults;	 /* a count */
	struct wss_amount update_s;	 /* time of the guest's last report, seconds since the
					    epoch; 0: never */
};

/*
 * Whether what the guest reported at this time (wall clock) may stand for its present state: for two periods of
 * its statistics, but at least ten seconds and at most ten minutes. A guest without a period reports once, when it boots.
 */
bool wss_balloon_report_is_current(const struct wss_domxml *config, struct wss_amount update_s);

/* The dirty-rate calculation, which turns KVM's dirty log on. */
struct wss_dirty_log {
	bool measuring; /* a calculation is running, no matter who started it */
	bool bitmap;	/* that calculation, or the last one, uses the dirty bitmap */
	struct wss_amount mib_per_s; /* result of the last one, rounded down; unknown until it ends */
};

/* What has happened to a guest that should have run. */
struct wss_disturbance {
	bool stopped;	    /* it was paused or stopped, or has crashed */
	uint64_t paused_ns; /* for how long, as far as that is known */
	bool reset;	    /* it was reset, so that it boots anew */
};

/* Operations that depend on the source of the guest. */
struct wss_guest_ops {
	/* Reads state, job and balloon into the guest again; may talk to libvirt or QEMU. */
	int (*refresh)(struct wss_guest *guest, struct wss_error *err);
	/* Reads KVM's counters without debugfs. WSS_ERR_UNSUPPORTED if the source has none. */
	int (*kvm_counts)(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err);
	/*
	 * Starts a calculation that keeps the dirty log on for seconds (1-60). It ends by
	 * itself and cannot be cancelled. The caller has checked that the guest survives it
	 * (kvm, config.dirty_log_hazard) and that none is running.
	 */
	int (*dirty_log_start)(struct wss_guest *guest, unsigned seconds, struct wss_error *err);
	int (*dirty_log_query)(struct wss_guest *guest, struct wss_dirty_log *ret_log,
			       struct wss_error *err);
	/*
	 * Starts a calculation that compares the content of sampled pages at its start with that
	 * at its end, after seconds (1-60). Any guest survives it. The caller has checked that no
	 * calculation is running. *ret_per_gib is the number of pages sampled in a GiB. The
	 * result comes from dirty_log_query. NULL: unsupported.
	 */
	int (*page_sampling_start)(struct wss_guest *guest, unsigned seconds, unsigned *ret_per_gib,
				   struct wss_error *err);
	/* Finds the guest's QEMU, checks it, and holds it in guest->process. */
	int (*attach)(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err);
	/*
	 * What the events that were received say about the time since the last refresh. Sends
	 * nothing, so it works without libvirtd, too. May be NULL.
	 */
	struct wss_disturbance (*disturbed)(struct wss_guest *guest);
	/*
	 * Stores the profile element (an XML string) in the inventory for as long as the
	 * domain runs; with persistent also in its configuration, if it has one. Does not wait
	 * for a job: WSS_ERR_BUSY.
	 */
	int (*publish)(struct wss_guest *guest, const char *xml, bool persistent,
		       struct wss_error *err);
	/*
	 * Returns the balloon's statistics as the guest last reported them, without waiting
	 * for it. May be NULL.
	 */
	int (*balloon_stats)(struct wss_guest *guest, struct wss_balloon_stats *ret_stats,
			     struct wss_error *err);
	/*
	 * Returns the number of bytes read from its disks since each was plugged in, 0 without
	 * disks. Asks QEMU, and may wait for another job of the guest. WSS_ERR_UNSUPPORTED if
	 * that is unknown, or if a process other than QEMU reads for the guest. May be NULL.
	 */
	int (*disk_reads)(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err);
	/*
	 * Asks QEMU for the size that the balloon leaves to the running guest; waits for its monitor. The
	 * size in balloon_stats() is that of QEMU's last event, which is an old one after the guest was
	 * saved or migrated.
	 */
	int (*balloon_size)(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err);

	/*
	 * Sets the size that the balloon leaves to the running guest, which follows at its own
	 * pace. May be NULL.
	 */
	int (*set_balloon)(struct wss_guest *guest, uint64_t bytes, struct wss_error *err);
	/*
	 * Returns an element of the guest's metadata by its namespace (host/inventory.h): a
	 * malloc()ed string, or NULL if there is none.
	 */
	int (*metadata)(struct wss_guest *guest, const char *namespace_uri, char **ret_xml,
			struct wss_error *err);
	/* Releases guest->source. */
	void (*release)(struct wss_guest *guest);
};

struct wss_guest {
	const struct wss_guest_ops *ops;
	/* Owned by the source: a domain and its connection, or a QMP connection. */
	void *source;
	/* Applies to every request about the guest; borrowed. NULL: no limit. */
	const struct wss_deadline *deadline;

	struct wss_domxml config;
	enum wss_guest_state state;
	bool kvm;  /* type kvm, and not denied by QEMU if it was asked */
	bool foreign; /* of a libvirt driver that runs no QEMU */
	bool kept; /* shut off or gone but not ended: saved, or perhaps migrated away */
	bool ended; /* gone, and seen to end; else it may be back */
	/* A job that is running, such as "backup" or "block copy of vda"; "": none */
	char job[WSS_JOB_MAX];
	char state_text[64]; /* for messages: "paused (migration)" */
	struct wss_amount balloon_bytes;
	/* What the guest's kernel counts, by its balloon; read with the state. */
	struct wss_amount swap_in_bytes, major_faults;

	struct wss_process process; /* valid after wss_guest_attach() */
	bool ram_known;
	struct wss_ram ram;
	struct wss_error ram_error; /* why ram_known is false after attaching */
};

/* Creates an empty guest, which a source fills; NULL: out of memory. */
struct wss_guest *wss_guest_new(const struct wss_guest_ops *ops, void *source,
				const struct wss_deadline *deadline);

/*
 * Reads the guest's state and configuration again, with what its process shows if it is attached, and finds its RAM
 * again if a plugged or unplugged device has moved it. Errors of ops->refresh().
 */
int wss_guest_refresh(struct wss_guest *guest, struct wss_error *err);

/*
 * Fails unless the guest is running, without a job or an incoming migration: WSS_ERR_FAILED
 * (paused, shut off ...) or WSS_ERR_BUSY (a job). Reads the state again.
 */
int wss_guest_check_ready(struct wss_guest *guest, struct wss_error *err);

/*
 * Finds and holds the guest's QEMU on this host and looks for its RAM. If RAM cannot be
 * distinguished from QEMU's other mappings, that is not a failure: see ram_error. Does nothing
 * if the guest is already attached.
 */
int wss_guest_attach(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err);

/* Releases the process again, and forgets its memory. Does nothing if it is not attached. */
void wss_guest_detach(struct wss_guest *guest);

/*
 * Reads the memory of the guest's QEMU from smaps, separately for guest RAM and for all else. Finds
 * both anew unless the guest is attached, and releases them again. This takes a walk of the
 * process's page tables, so call it rarely. Errors of wss_guest_attach() and wss_smaps_read(), and
 * WSS_ERR_FAILED if RAM cannot be distinguished.
 */
int wss_guest_read_memory(struct wss_guest *guest, const struct wss_host *host,
			  struct wss_smaps *ret_smaps, struct wss_error *err);

/* Releases the process and the source; accepts NULL. Never touches the running guest. */
void wss_guest_free(struct wss_guest *guest);

#endif
