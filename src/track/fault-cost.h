/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a second-level fault costs a vCPU on this host.
 *
 * After a window's zap the guest takes one fault for each dropped entry that it touches again, so the
 * cost of one decides how often a guest can be measured. It is measured on a guest of our own: a virtual
 * machine of 1 MiB and one vCPU that writes to each of its pages and halts, once after its memory was
 * dropped from KVM's tables and once with all of it mapped. The difference is the faults' alone (Linux
 * 6.1, arch/x86/kvm/mmu/mmu.c, kvm_mmu_page_fault; Documentation/virt/kvm/api.rst,
 * KVM_SET_USER_MEMORY_REGION: a slot of size 0 is deleted).
 */
#ifndef WSS_TRACK_FAULT_COST_H
#define WSS_TRACK_FAULT_COST_H

#include "base/error.h"

/*
 * Used where it cannot be measured: what common hardware takes is 1,000 to 2,000 ns
 * (docs/4k-cost.md), and an emulated host far more.
 */
#define WSS_FAULT_COST_FALLBACK_NS 2000.0

/*
 * Sets *ret_ns to the cost of one fault of 4 KiB, in ns; measured anew with each call, in a child that
 * takes a few ms and at most a second. WSS_ERR_UNSUPPORTED without a usable /dev/kvm or on another
 * architecture than x86-64; WSS_ERR_FAILED, WSS_ERR_TIMEOUT.
 */
int wss_fault_cost_measure(double *ret_ns, struct wss_error *err);

/*
 * The cost of one fault as it was measured first in this process, else WSS_FAULT_COST_FALLBACK_NS. May
 * wait for a second the first time.
 */
double wss_fault_cost_ns(void);

#endif
