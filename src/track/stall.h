/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long a zap keeps a guest's vCPUs waiting, before it is done.
 *
 * clear_refs walks every page-table entry of the process while it holds the
 * mmap lock, and the MMU notifier that it opens makes every faulting vCPU retry
 * until the walk ends (Linux 6.1, fs/proc/task_mmu.c, clear_refs_write;
 * virt/kvm/kvm_main.c, mmu_invalidate_in_progress). So the stall grows with resident
 * pages of the host and with entries that KVM has to drop; each costs about the
 * same, and what it costs on this host is measured on a child of our own.
 */
#ifndef WSS_TRACK_STALL_H
#define WSS_TRACK_STALL_H

#include <stdint.h>

/* What is resident, in entries of the host's and KVM's page tables. */
struct wss_stall_load {
	uint64_t host_entries; /* 4 KiB pages and huge pages that are resident, each as one */
	uint64_t kvm_entries;  /* second-level entries that are mapped */
	uint64_t logged_pages; /* pages of 4 KiB of RAM for which the dirty log is started; 0: it is not */
};

/* ns that one entry costs on this host; measured once per process, takes about 10 ms. */
double wss_stall_entry_ns(void);

/* Pure: the predicted stall, ns. */
uint64_t wss_stall_predict_ns(const struct wss_stall_load *load, double entry_ns);

#endif
