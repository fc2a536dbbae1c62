/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Predicts how long a zap stalls a guest's vCPUs.
 *
 * clear_refs walks every page-table entry of the process while it holds the mmap lock, and the
 * MMU notifier that it opens makes every faulting vCPU retry until the walk ends (Linux 6.1,
 * fs/proc/task_mmu.c, clear_refs_write; virt/kvm/kvm_main.c, mmu_invalidate_in_progress). So
 * the stall grows with the resident pages of the host and with the entries that KVM has to
 * drop. What one of the host's entries costs here is measured with a child process of our own, what one of KVM's does
 * with a virtual machine of our own (measure/kvm-cost.h).
 */
#pragma once

#include <stdint.h>

/* Resident memory, in entries of the host's and KVM's page tables. */
struct wss_stall_load {
	uint64_t host_entries; /* resident 4 KiB pages and huge pages, each counted as one */
	uint64_t kvm_entries;  /* second-level entries mapped */
};

#define WSS_STALL_PASSES 5

/* How long clear_refs takes with and without the entries, in ns; 0: it failed. */
struct wss_stall_times {
	uint64_t empty_ns[WSS_STALL_PASSES], full_ns[WSS_STALL_PASSES];
};

/*
 * Returns the time in ns that each of n_entries (at least 1) costs, by the medians: any of the passes may have
 * waited for the CPU. A guess on the safe side if they say nothing. A pure function.
 */
double wss_stall_entry_of(const struct wss_stall_times *times, uint64_t n_entries);

/*
 * Returns the time in ns that one entry of the host's page tables costs here. Measured once per process, which
 * takes some 10 ms.
 */
double wss_stall_entry_ns(void);

/*
 * Returns the predicted stall in ns, from what an entry of the host's page tables takes and what one of KVM's does. A pure
 * function.
 */
uint64_t wss_stall_predict_ns(const struct wss_stall_load *load, double host_entry_ns,
			      double kvm_entry_ns);

/* Returns how long the vCPUs may wait while the dirty log is started for so many 4 KiB pages of RAM. A pure function. */
uint64_t wss_stall_log_ns(uint64_t pages, double host_entry_ns);
