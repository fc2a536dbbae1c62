/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* KVM's counters of a guest, from the best source that this host has. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "host/kvmstat.h"

struct wss_counters;

/*
 * Opens the counters of an attached guest: those in debugfs, which are read without a program; else those in the
 * kernel's own description of the VM (kvm/kvm.h); else those that QEMU reports, which takes an answer from QEMU: one
 * that is told to end while it has a command may wait for ever instead (7.2, monitor_cleanup()).
 * guest and host must outlive *ret_counters. WSS_ERR_UNSUPPORTED if there are none, with the last source's reason;
 * WSS_ERR_NO_MEMORY; errors of the guest's kvm_counts().
 */
int wss_counters_open(const struct wss_host *host, struct wss_guest *guest,
		      struct wss_counters **ret_counters, struct wss_error *err);

/* Reads them. Fails as wss_kvm_debugfs_read(), the kernel's count() and the guest's kvm_counts() do. */
int wss_counters_read(const struct wss_counters *counters, struct wss_kvm_counts *ret_counts,
		      struct wss_error *err);

/* Whether each read takes an answer from QEMU. */
bool wss_counters_need_qemu(const struct wss_counters *counters);

/* Accepts NULL. */
void wss_counters_close(struct wss_counters *counters);
