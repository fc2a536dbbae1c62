/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * KVM's per-VM statistics: how many second-level entries are mapped now.
 * Source: Documentation/virt/kvm/api.rst (KVM_GET_STATS_FD), arch/x86/kvm/x86.c
 * (kvm_vm_stats_desc: pages_4k, pages_2m, pages_1g; kvm_vcpu_stats_desc: pf_fixed,
 * nested_run, guest_mode) of Linux 6.1.
 */
#ifndef WSS_HOST_KVMSTAT_H
#define WSS_HOST_KVMSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"

struct wss_kvm_counts {
	uint64_t pages_4k;
	uint64_t pages_2m;
	uint64_t pages_1g;
	/* Cumulative over all vCPUs; has_* is false where this source or kernel lacks them. */
	uint64_t pf_fixed;
	uint64_t nested_run;
	/*
	 * Requests to flush the guest's TLBs. Every entry that the host takes away asks for one
	 * (kvm_mmu_notifier_invalidate_range_start() in virt/kvm/kvm_main.c), so none in a
	 * window means that nothing was unmapped in it. Linux 5.15.
	 */
	uint64_t tlb_flushes;
	uint64_t guest_mode; /* vCPUs that run a nested guest now: a gauge */
	bool has_pf_fixed;
	bool has_tlb_flushes;
	bool has_nested;     /* both nested_run and guest_mode */
	bool has_guest_mode; /* that one at least: see below on lockdown */
};

/* Entries of all sizes. */
uint64_t wss_kvm_counts_entries(const struct wss_kvm_counts *counts);

/*
 * A held source of counters in debugfs: the directory /sys/kernel/debug/kvm/<pid>-<fd>/.
 * Only the directory is held, and each read opens the files anew: they give their value
 * once (no seek, no pread), and an open one keeps the VM itself from being destroyed
 * (kvm_debugfs_open() in virt/kvm/kvm_main.c takes a reference), so that a held one
 * would tie up the remains of a dead guest. The held directory does not: it is never
 * another VM's, and opening below it fails once the VM is destroyed.
 *
 * A kernel in lockdown (Secure Boot) lets nobody open files of debugfs that could also
 * be written (debugfs_locked_down() in fs/debugfs/file.c): pages_* and guest_mode, which
 * are mode 0444, can then be read, but pf_fixed and nested_run (0644) cannot, so that
 * has_pf_fixed and has_nested are false, and has_guest_mode is not. QMP query-stats
 * knows no such limit.
 */
struct wss_kvm_debugfs;

/*
 * pid: QEMU's, in the host's (initial) namespace, as KVM itself names the directory.
 * Exactly one directory must match. WSS_ERR_UNSUPPORTED where debugfs is not mounted,
 * not readable, or has no directory for this pid (then it is not a KVM guest), or
 * several, or lacks the counters (Linux before 5.15).
 */
int wss_kvm_debugfs_open(const struct wss_root *root, pid_t pid,
			 struct wss_kvm_debugfs **ret_debugfs, struct wss_error *err);

/*
 * WSS_ERR_GONE when the VM has gone. While a QEMU exits, its counters fall to 0 before
 * the VM is destroyed: a caller that reads a low value must look at wss_process_alive()
 * after the read before it believes it.
 */
int wss_kvm_debugfs_read(struct wss_kvm_debugfs *debugfs, struct wss_kvm_counts *ret_counts,
			 struct wss_error *err);

struct qmp;

/*
 * The same figures by QMP's query-stats (QEMU 7.1, Linux 5.15); WSS_ERR_UNSUPPORTED where
 * this QEMU, kernel or accelerator does not count pages.
 */
int wss_kvm_counts_qmp(struct qmp *qmp, struct wss_kvm_counts *ret_counts, struct wss_error *err);

/* Takes NULL. */
void wss_kvm_debugfs_close(struct wss_kvm_debugfs *debugfs);

#endif
