/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counters of the cgroup that QEMU has for itself, as libvirt makes it for each guest. A cgroup that QEMU may
 * share with other programs says nothing about the guest.
 */
#ifndef WSS_HOST_VMM_CGROUP_H
#define WSS_HOST_VMM_CGROUP_H

#include "base/amount.h"
#include "base/root.h"

struct wss_vmm_cgroup {
	struct wss_amount oom_kills;
	struct wss_amount stall_us; /* in which some task waited for memory (PSI) */
	struct wss_amount refaults; /* pages that were read again after they had been reclaimed */
	struct wss_amount huge_bytes; /* in transparent huge pages */
	struct wss_amount swap_bytes; /* of its memory, shared memory too */
};

/*
 * Reads the counters of the cgroup (version 2) of the process whose /proc directory is proc, below root; what
 * cannot be read is unknown, and so is all where QEMU has no cgroup for itself.
 */
struct wss_vmm_cgroup wss_vmm_cgroup_read(const struct wss_root *root, const struct wss_root *proc);

#endif
