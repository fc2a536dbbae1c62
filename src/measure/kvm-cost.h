/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What it costs on this host that KVM drops a second-level mapping, and that it comes back.
 *
 * A zap drops each entry while vCPUs that fault wait, and afterwards the guest takes a fault for each that it touches again.
 * Both depend on the host's processor and on how its KVM keeps its tables: an entry of shadow paging, which has a
 * reverse mapping, takes twenty times as long as the host's own entry of the same page. So both are measured on a guest
 * of our own: a virtual machine of one vCPU, whose program writes to pages in ring 3, where every KVM runs it, and ends
 * with an output to a port.
 *
 * Fault: a run that writes to every eighth page after all were dropped, less a run while all are mapped. KVM may map up to
 * seven pages beside the one that was touched (Linux 6.1, arch/x86/kvm/mmu/mmu.c, direct_pte_prefetch()), but never
 * that which is touched next. Entry: clear_refs of this process with all pages mapped by KVM, less one with none.
 */
#pragma once

#include "base/error.h"

struct wss_kvm_cost {
	double fault_ns; /* a fault of 4 KiB */
	double entry_ns; /* to drop an entry of 4 KiB */
};

/* Used where they cannot be measured: on the safe side of what common hardware takes (docs/measurements.md). */
#define WSS_KVM_COST_FALLBACK                    \
	{                                        \
		.fault_ns = 2000, .entry_ns = 50 \
	}

/*
 * Measures both again, in a child that takes some 20 ms and at most a second. WSS_ERR_UNSUPPORTED without a usable
 * /dev/kvm or on another architecture than x86-64; WSS_ERR_FAILED, WSS_ERR_TIMEOUT.
 */
int wss_kvm_cost_measure(struct wss_kvm_cost *ret_cost, struct wss_error *err);

/* What was measured first in this process, else WSS_KVM_COST_FALLBACK. May wait for a second the first time. */
const struct wss_kvm_cost *wss_kvm_cost(void);
