/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The figures that libvirt has of a running domain (virDomainListGetStats()). Private to host/.
 * All that return int: 0, or -1 with err set; WSS_ERR_GONE where the domain does not run.
 */
#ifndef WSS_HOST_DOMAIN_STATS_H
#define WSS_HOST_DOMAIN_STATS_H

#include <libvirt/libvirt.h>

#include "host/guest.h"

/* The size of its balloon; absent where it does not run or that is not known. Never waits. */
struct wss_amount wss_domain_balloon(virDomainPtr dom);

/* What the guest says of its memory by its balloon. Never waits for the guest's monitor. */
int wss_domain_balloon_stats(virDomainPtr dom, struct wss_balloon_stats *ret_stats,
			     struct wss_error *err);

/*
 * What its disks have read in all, 0 where it has none. Waits for the guest's monitor, and up to 30 s
 * for another job: WSS_ERR_TIMEOUT then; WSS_ERR_UNSUPPORTED where libvirt does not tell.
 */
int wss_domain_disk_reads(virDomainPtr dom, uint64_t *ret_bytes, struct wss_error *err);

/*
 * KVM's counters of all vCPUs. This does wait for the monitor: for where debugfs is not there.
 * WSS_ERR_UNSUPPORTED where libvirt or QEMU has none.
 */
int wss_domain_kvm_counts(virDomainPtr dom, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err);

/* Is the dirty log on? WSS_ERR_UNSUPPORTED where libvirt does not tell. */
int wss_domain_dirty_log(virDomainPtr dom, struct wss_dirty_log *ret_log, struct wss_error *err);

#endif
