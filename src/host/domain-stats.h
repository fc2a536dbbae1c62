/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statistics that libvirt reports for a running domain (virDomainListGetStats()). Private to
 * host/. Functions that return int return 0, or -1 with err set; WSS_ERR_GONE if the domain
 * does not run.
 */
#pragma once

#include <libvirt/libvirt.h>

#include "host/guest.h"

/*
 * Reads the size of the domain's balloon and what the guest's kernel has counted; unknown if it does not run,
 * counters also if they are old (wss_balloon_report_is_current()). Never waits.
 */
void wss_domain_read_balloon(virDomainPtr dom, struct wss_guest *guest);

/*
 * Returns the memory statistics that the guest reports through its balloon. Never waits for
 * the guest's monitor.
 */
int wss_domain_balloon_stats(virDomainPtr dom, struct wss_balloon_stats *ret_stats,
			     struct wss_error *err);

/*
 * Returns the size that the balloon leaves to the guest now. Waits for the guest's monitor, and up to 30 s
 * for another job. WSS_ERR_UNSUPPORTED if libvirt does not report it.
 */
int wss_domain_balloon_size(virDomainPtr dom, uint64_t *ret_bytes, struct wss_error *err);

/*
 * Returns the total number of bytes read from the disks, 0 without disks. Waits for the
 * guest's monitor, and up to 30 s for another job (then WSS_ERR_TIMEOUT). WSS_ERR_UNSUPPORTED
 * if libvirt does not report it.
 */
int wss_domain_disk_reads(virDomainPtr dom, uint64_t *ret_bytes, struct wss_error *err);

/*
 * Returns KVM's counters, summed over all vCPUs, for hosts without debugfs. Waits for the
 * monitor. WSS_ERR_UNSUPPORTED if libvirt or QEMU does not report them.
 */
int wss_domain_kvm_counts(virDomainPtr dom, struct wss_kvm_counts *ret_counts,
			  struct wss_error *err);

/* Whether the dirty log is on. WSS_ERR_UNSUPPORTED if libvirt does not report it. */
int wss_domain_dirty_log(virDomainPtr dom, struct wss_dirty_log *ret_log, struct wss_error *err);
