/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A guest is open, and then attached or not: until wss_guest_attach() its process and RAM are
 * unknown. Its source answers through struct wss_guest_ops: domain.c for libvirt, qmpguest.c for a
 * socket, kvmguest.c for what the kernel knows.
 */
#pragma once

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
	WSS_GUEST_PAUSED, /* also crashed, or suspended by its own power management: it holds what it has */
	WSS_GUEST_SHUTOFF,
	WSS_GUEST_INCOMING, /* an incoming migration is not complete */
	WSS_GUEST_OTHER,    /* in shutdown, or unknown */
};

struct wss_kvm_slots;

/*
 * Memory statistics that the guest reports through its balloon, and the host's size of the
 * balloon.
 */
struct wss_balloon_stats {
	struct wss_amount actual_bytes; /* size that the balloon leaves to the guest */
	struct wss_amount rss_bytes;	/* resident memory of the whole QEMU process, now */
	struct wss_amount usable_bytes; /* memory that the guest could give up without swapping */
	struct wss_amount free_bytes, cache_bytes; /* unused memory, and page cache */
	struct wss_amount managed_bytes;	   /* all memory that the guest's kernel manages */
	struct wss_amount swapped_bytes;	   /* swapped in and out since it booted */
	struct wss_amount major_faults;		   /* a count */
	struct wss_amount update_s; /* time of the guest's last report, seconds since the
					    epoch; 0: never */
};

/*
 * Whether what the guest reported at this time (wall clock) may stand for its present state: for two periods of
 * its statistics, but at least ten seconds and at most ten minutes. A guest without a period reports once, when it boots.
 */
bool wss_balloon_report_is_current(const struct wss_domxml *config, struct wss_amount update_s);

/*
 * Returns the memory that the guest's kernel keeps from programs and from the page cache, so that a working set
 * does not fit into a guest of its size: memory that it never hands out (its image, its table of
 * all pages, a crash kernel), and the free memory below which it reclaims. From Linux's MemTotal,
 * MemFree, page cache and MemAvailable: free plus cached memory exceeds MemAvailable by the high
 * watermark and up to the low one (si_mem_available()), and free memory is kept between the two; so
 * half of the difference counts. At most 7.5 % of the guest, because more is no watermark:
 * khugepaged asks for 5 % at most, and the high one is half more
 * (set_recommended_min_free_kbytes(), __setup_per_zone_wmarks()). In bytes, saturated; figures that
 * are unknown or impossible count as 0. managed_of_bytes: wss_balloon_managed_of().
 */
uint64_t wss_balloon_stats_reserve(const struct wss_balloon_stats *stats,
				   struct wss_amount managed_of_bytes);

/* Returns the size of the guest of which it reports what its kernel manages. */
struct wss_amount wss_balloon_managed_of(const struct wss_domxml *config,
					 struct wss_amount actual_bytes);

struct wss_guest;

/*
 * Takes into the guest what it reported of its memory, if that is current (wss_balloon_report_is_current()); else all of that
 * is unknown.
 */
void wss_balloon_report_take(struct wss_guest *guest, const struct wss_balloon_stats *stats);

/* The dirty-rate calculation, which turns KVM's dirty log on. */
struct wss_dirty_log {
	bool measuring; /* a calculation is running, no matter who started it */
	bool bitmap;	/* that calculation, or the last one, uses the dirty bitmap */
	/* Result of the last one, rounded down; unknown until it ends. */
	struct wss_amount mib_per_s;
	uint64_t left_s; /* how long the one that is running still takes; 0: unknown */
};

/*
 * Returns left_s of a calculation of length_s that began at start_s of CLOCK_MONOTONIC (QEMU 7.2, migration/dirtyrate.c).
 * 0: these cannot be those of one that is running.
 */
uint64_t wss_dirty_log_left_s(uint64_t start_s, uint64_t length_s);

/* What has happened to a guest that should have run. */
struct wss_disturbance {
	bool stopped;	    /* it was paused or stopped, or has crashed */
	uint64_t paused_ns; /* for how long, as far as that is known */
	bool reset;	    /* it was reset, so that it boots again */
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
	 * What the events that were received say about the time since the last refresh, or a short question to QEMU. Sends
	 * nothing to libvirt, so it works without libvirtd, too. May be NULL.
	 */
	struct wss_disturbance (*disturbed)(struct wss_guest *guest);
	/*
	 * Notes for disturbed() whether the guest is paused now; called at each look within a window (standstill.h). NULL: not
	 * needed.
	 */
	void (*look)(struct wss_guest *guest);
	/*
	 * Stores the profile element (an XML string) in the inventory for as long as the
	 * domain runs; with persistent also in its configuration, if it has one. Does not wait
	 * for a job: WSS_ERR_BUSY. NULL: the source has no inventory, and so no metadata() either.
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
	 * Has QEMU ask the guest for the statistics of its balloon each so many seconds, for as long as it runs. Waits for
	 * its monitor, and for another job. May be NULL.
	 */
	int (*ask_for_statistics)(struct wss_guest *guest, unsigned seconds, struct wss_error *err);
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
	 * malloc()ed string, or NULL if there is none. May be NULL.
	 */
	int (*metadata)(struct wss_guest *guest, const char *namespace_uri, char **ret_xml,
			struct wss_error *err);
	/* Releases guest->source. */
	void (*release)(struct wss_guest *guest);
};

struct wss_guest {
	const struct wss_guest_ops *ops;
	/* Owned by the source: a domain and its connection, or a socket's path. */
	void *source;
	/* Applies to every request about the guest; borrowed. NULL: no limit. */
	const struct wss_deadline *deadline;

	struct wss_domxml config;
	enum wss_guest_state state;
	bool kvm;     /* type kvm, and not denied by QEMU if it was asked */
	bool foreign; /* of a libvirt driver that runs no QEMU */
	bool kept;    /* shut off or gone but not ended: saved, or perhaps migrated away */
	bool ended;   /* gone, and seen to end; else it may be back */
	/* A job that is running, such as "backup" or "block copy of vda"; "": none */
	char job[WSS_JOB_MAX];
	char state_text[64]; /* for messages: "paused (migration)" */
	struct wss_amount balloon_bytes;
	/* By its balloon, read with the state: memory that it cannot give up without swapping, that of its kernel included. */
	struct wss_amount unreclaimable_bytes;
	struct wss_amount cache_bytes;	 /* page cache that it could give up */
	struct wss_amount reserve_bytes; /* wss_balloon_stats_reserve() */

	struct wss_process process; /* valid after wss_guest_attach() */
	uint64_t vm; /* which of the process's VMs it is (kvm/kvm.h); 0: the only one */
	/* That VM, once the kernel was asked for it: see wss_guest_kernel_vm(). */
	struct wss_kvm_vm *kernel_vm;
	bool shares_process; /* with other VMs, which a window disturbs, too */
	/* Why nobody but the guest's manager may set its balloon; NULL: anybody may. A constant. */
	const char *balloon_owner;
	/*
	 * Under what else a policy may name it, of the source; NULL: nothing. Its own name is among them where another guest has
	 * that, too, so that nobody can void a guest's policy by giving another guest its name.
	 */
	const char *aliases[2];
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

/* Adds to a guest's configuration what its process shows, if it is held: devices and locked memory. */
void wss_domxml_see_process(struct wss_domxml *config, const struct wss_process *process);

/*
 * Finds and holds the guest's QEMU on this host and looks for its RAM. If RAM cannot be
 * distinguished from QEMU's other mappings, that is not a failure: see ram_error. Does nothing
 * if the guest is already attached.
 */
int wss_guest_attach(struct wss_guest *guest, const struct wss_host *host, struct wss_error *err);

/* Releases the process again, and forgets its memory. Does nothing if it is not attached. */
void wss_guest_detach(struct wss_guest *guest);

/*
 * Whether the kernel can be asked about an attached guest (kvm/kvm.h). Loads the programs for that when it is called first.
 */
bool wss_guest_kernel_vm(struct wss_guest *guest);

/* Reads the memory slots of such a guest, for wss_kvm_slots_free(). Fails as wss_kvm's slots() does. */
int wss_guest_slots(const struct wss_guest *guest, struct wss_kvm_slots *ret_slots,
		    struct wss_error *err);

/*
 * Reads the memory of the guest's QEMU from smaps, separately for guest RAM and for all else. Finds
 * both again unless the guest is attached, and releases them again. This takes a walk of the
 * process's page tables, so call it rarely. Errors of wss_guest_attach() and wss_smaps_read(), and
 * WSS_ERR_FAILED if RAM cannot be distinguished.
 */
int wss_guest_read_memory(struct wss_guest *guest, const struct wss_host *host,
			  struct wss_smaps *ret_smaps, struct wss_error *err);

/* Releases the process and the source; accepts NULL. Never touches the running guest. */
void wss_guest_free(struct wss_guest *guest);
