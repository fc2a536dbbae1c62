/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What methods have in common that let the kernel clear the processor's accessed bits, and count which are set again.
 *
 * No method of the kernel's flushes the TLB when it clears such a bit (arch/x86/mm/pgtable.c, ptep_clear_flush_young();
 * virt/kvm/kvm_main.c, kvm_mmu_notifier_clear_young()), and an access by a translation that is still there sets none. So
 * what is hidden is at most what a TLB holds, unless a vCPU moves to another processor or KVM flushes for another reason. That is
 * what a guest uses most.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "measure/sample.h"

/*
 * Checks whether this host's KVM keeps accessed bits that the method can have cleared: KVM uses two-dimensional paging, with
 * accessed bits. WSS_ERR_UNSUPPORTED with the reason.
 */
int wss_marks_probe_host(const struct wss_host *host, const char *method, struct wss_error *err);

/* Checks whether the guest's memory has them: it runs on KVM, and is not confidential. WSS_ERR_UNSUPPORTED with the reason. */
int wss_marks_probe_guest(const struct wss_guest *guest, struct wss_error *err);

/* Returns what TLBs may hide of unmarked_bytes, which are mapped by entries of at most granularity_bytes and not marked. */
uint64_t wss_marks_hidden_bytes(const struct wss_guest *guest, uint64_t granularity_bytes,
				uint64_t unmarked_bytes);

/* Notes in the sample that so much may be missing; nothing if it is 0. */
void wss_marks_explain_hidden(uint64_t hidden_bytes, struct wss_sample *sample);
