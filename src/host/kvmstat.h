/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * KVM's per-VM statistics, above all the number of second-level entries currently mapped.
 * Source: Documentation/virt/kvm/api.rst (KVM_GET_STATS_FD), arch/x86/kvm/x86.c
 * (kvm_vm_stats_desc: pages_4k, pages_2m, pages_1g; kvm_vcpu_stats_desc: pf_fixed, nested_run,
 * guest_mode) of Linux 6.1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/root.h"

struct wss_kvm_counts {
	uint64_t pages_4k;
	uint64_t pages_2m;
	uint64_t pages_1g;
	/* Cumulative over all vCPUs; has_* is false if this source or kernel lacks them. */
	uint64_t pf_fixed;
	uint64_t nested_run;
	/*
	 * Requests to flush the guest's TLBs. Each entry that the host removes causes one
	 * (kvm_mmu_notifier_invalidate_range_start() in virt/kvm/kvm_main.c), so nothing was
	 * unmapped in a window without a request. Linux 5.15.
	 */
	uint64_t tlb_flushes;
	uint64_t guest_mode; /* gauge: vCPUs running a nested guest now */
	bool has_pf_fixed;
	bool has_tlb_flushes;
	bool has_nested;     /* both nested_run and guest_mode */
	bool has_guest_mode; /* at least guest_mode: see below on lockdown */
};

/* Sum of the entries of all sizes. */
uint64_t wss_kvm_counts_entries(const struct wss_kvm_counts *counts);

/*
 * The counters in debugfs: holds the directory /sys/kernel/debug/kvm/<pid>-<fd>/. Only the
 * directory is held, and each read opens the files again: they return their value once (no
 * seek, no pread), and an open file keeps the VM from being destroyed (kvm_debugfs_open() in
 * virt/kvm/kvm_main.c takes a reference), so holding one would tie up a dead guest. The held
 * directory does not: it never becomes another VM's, and opening a file in it fails once the
 * VM is destroyed.
 *
 * A kernel in lockdown (Secure Boot) denies debugfs files that are writable
 * (debugfs_locked_down() in fs/debugfs/file.c): pages_* and guest_mode, which are mode 0444,
 * can then be read, but pf_fixed and nested_run (0644) cannot, so has_pf_fixed and has_nested
 * are false, and has_guest_mode is true. QMP query-stats has no such limit.
 */
struct wss_kvm_debugfs;

/*
 * Opens the counters of QEMU's pid, in the host's (initial) pid namespace, as KVM itself names
 * the directory. Exactly one directory must match. WSS_ERR_UNSUPPORTED: debugfs is not mounted
 * or not readable, has no directory for this pid (so it is no KVM guest) or several, or lacks
 * the counters (Linux before 5.15).
 */
int wss_kvm_debugfs_open(const struct wss_root *root, pid_t pid,
			 struct wss_kvm_debugfs **ret_debugfs, struct wss_error *err);

/*
 * Reads the counters. WSS_ERR_GONE when the VM is gone. While a QEMU exits, its counters fall
 * to 0 before the VM is destroyed: a caller that reads a low value must check
 * wss_process_alive() after the read before it trusts the value.
 */
int wss_kvm_debugfs_read(struct wss_kvm_debugfs *debugfs, struct wss_kvm_counts *ret_counts,
			 struct wss_error *err);

struct qmp;

/*
 * Reads the same figures through QMP's query-stats (QEMU 7.1, Linux 5.15). WSS_ERR_UNSUPPORTED
 * if this QEMU, kernel or accelerator does not count pages.
 */
int wss_kvm_counts_qmp(struct qmp *qmp, struct wss_kvm_counts *ret_counts, struct wss_error *err);

/* Closes the counters; accepts NULL. */
void wss_kvm_debugfs_close(struct wss_kvm_debugfs *debugfs);
