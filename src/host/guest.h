/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest as the trackers see it, whether libvirt manages it (host/conn.h) or
 * it is addressed by its own QMP socket (host/qmpguest.h).
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

enum wss_guest_state {
	WSS_GUEST_RUNNING,
	WSS_GUEST_PAUSED,
	WSS_GUEST_SHUTOFF,
	WSS_GUEST_INCOMING, /* a migration is still coming in */
	WSS_GUEST_OTHER,    /* crashed, in shutdown, suspended by its own power management */
};

struct wss_guest;

/* What the guest says of its memory through its balloon, and the host of the balloon. */
struct wss_balloon_stats {
	struct wss_amount actual_bytes; /* the size that the balloon leaves */
	struct wss_amount rss_bytes; /* of the whole QEMU process, now */
	struct wss_amount usable_bytes; /* what the guest could give up without swapping */
	struct wss_amount free_bytes, cache_bytes; /* that nobody has; that the page cache has */
	struct wss_amount managed_bytes; /* what the guest's kernel has to hand out in all */
	struct wss_amount swapped_bytes; /* in and out, since it booted */
	struct wss_amount major_faults; /* a number of them */
	struct wss_amount update_s; /* when it last said so, seconds since the epoch; 0: never */
};

/* The dirty-rate calculation, which is what has KVM's dirty log on. */
struct wss_dirty_log {
	bool measuring; /* a calculation, anybody's, is under way */
	bool bitmap;	/* it, or the last one, uses the dirty bitmap */
};

/* What differs between the sources of guests. */
struct wss_guest_ops {
	/* Reads state, job and balloon anew into the guest; may talk to libvirt or QEMU. */
	int (*refresh)(struct wss_guest *guest, struct wss_error *err);
	/* KVM's counters without debugfs: WSS_ERR_UNSUPPORTED where the source has none. */
	int (*kvm_counts)(struct wss_guest *guest, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err);
	/*
	 * Starts a calculation that has the dirty log on for seconds (1-60); it ends by
	 * itself and cannot be cancelled. The caller has made sure that the guest bears it
	 * (kvm, config.dirty_log_hazard) and that none is under way.
	 */
	int (*dirty_log_start)(struct wss_guest *guest, unsigned seconds, struct wss_error *err);
	int (*dirty_log_query)(struct wss_guest *guest, struct wss_dirty_log *ret_log,
			       struct wss_error *err);
	/* Finds the guest's QEMU and holds it in guest->process, checked. */
	int (*attach)(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err);
	/*
	 * Has the guest been paused or stopped since the last refresh? From events that have
	 * arrived by themselves: asks nobody, so it works when libvirtd is gone. May be NULL.
	 */
	bool (*disturbed)(struct wss_guest *guest);
	/*
	 * Stores the profile element (an XML string) in the inventory, for as long as the domain
	 * runs; persistent: also in its configuration, where it has one. WSS_ERR_BUSY, without
	 * waiting, where a job is under way.
	 */
	int (*publish)(struct wss_guest *guest, const char *xml, bool persistent,
		       struct wss_error *err);
	/*
	 * The balloon's statistics, as the guest reported them last; does not wait for it. May be
	 * NULL.
	 */
	int (*balloon_stats)(struct wss_guest *guest, struct wss_balloon_stats *ret_stats,
			     struct wss_error *err);
	/*
	 * What all of its disks together have read, since each was plugged in: no disks have read 0.
	 * Asks QEMU, and can wait for another job of the guest's. WSS_ERR_UNSUPPORTED where that is
	 * not known, or not QEMU that reads for it. May be NULL.
	 */
	int (*disk_reads)(struct wss_guest *guest, uint64_t *ret_bytes, struct wss_error *err);
	/*
	 * Tells the balloon what to leave to the running guest; the guest follows in its
	 * own time. May be NULL.
	 */
	int (*set_balloon)(struct wss_guest *guest, uint64_t bytes, struct wss_error *err);
	/*
	 * An element of the guest's metadata by its namespace (host/inventory.h): a malloc'ed
	 * string, or NULL where there is none.
	 */
	int (*metadata)(struct wss_guest *guest, const char *namespace_uri, char **ret_xml,
			struct wss_error *err);
	/* Releases what the source keeps in guest->source. */
	void (*release)(struct wss_guest *guest);
};

struct wss_guest {
	const struct wss_guest_ops *ops;
	void *source; /* the source's own: a domain and its connection, or a QMP connection */
	/* Of every question that is asked about it; borrowed. NULL: without limit. */
	const struct wss_deadline *deadline;

	struct wss_domxml config;
	enum wss_guest_state state;
	bool kvm; /* type kvm, and QEMU says so too where it was asked */
	bool kept; /* shut off or gone, but not ended: saved, or moved to another host */
	bool job; /* migration, save, dump or another job is under way */
	char state_text[64]; /* for people: "paused (migration)" */
	struct wss_amount balloon_bytes;

	struct wss_process process; /* held after wss_guest_attach() */
	bool ram_known;
	struct wss_ram ram;
	struct wss_error ram_error; /* why ram_known is false after attaching */
};

/* An empty guest, to be filled by a source; NULL when memory is short. */
struct wss_guest *wss_guest_new(const struct wss_guest_ops *ops, void *source,
				const struct wss_deadline *deadline);

/*
 * Fails unless the guest is running, with no job active and no migration coming in:
 * WSS_ERR_FAILED (paused, shut off ...) or WSS_ERR_BUSY (a job). Reads the state anew.
 */
int wss_guest_check_ready(struct wss_guest *guest, struct wss_error *err);

/*
 * Finds and holds the guest's QEMU on this host and looks for its RAM. RAM that
 * cannot be told from QEMU's other mappings is no error here, see ram_error.
 * Does nothing when the guest is attached already.
 */
int wss_guest_attach(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err);

/* Releases the process and the source; takes NULL. Never touches the running guest. */
void wss_guest_free(struct wss_guest *guest);

#endif
