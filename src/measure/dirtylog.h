/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * KVM maps a memory slot by 4 KiB while its dirty log is on, whatever the host's page size
 * (Linux 6.1, arch/x86/kvm/mmu/mmu.c, kvm_mmu_max_mapping_level() and
 * kvm_mmu_hugepage_adjust(), through slot->dirty_bitmap); the host's huge pages stay whole.
 * QEMU's dirty-rate calculation in mode dirty-bitmap turns the log on for a number of seconds
 * and then ends by itself, so a killed tool leaves nothing behind.
 *
 * Nothing shows directly that the log is on. QEMU reports "measuring" before it starts the
 * log, so that is only a hint, and so is the absence of large entries. The one certainty is
 * that KVM maps no large entry while the log is on: a window in which one is seen does not
 * have 4 KiB granularity.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/kvmstat.h"

/* QEMU accepts 1 to 60 s; some of that passes before the window begins. */
#define WSS_DIRTYLOG_MAX_WINDOW_NS 50000000000ULL

enum wss_dirtylog_state {
	WSS_DIRTYLOG_OFF,
	WSS_DIRTYLOG_STARTING, /* requested but not yet seen on */
	WSS_DIRTYLOG_ON,
};

struct wss_dirtylog {
	enum wss_dirtylog_state state;
	uint64_t deadline_ns; /* by when the log must be on */
	uint64_t ends_ns;     /* from then on the log may be off */
	/* Since when a calculation has been waited for that may be somebody else's; 0: none is. */
	uint64_t busy_since_ns;
};

/*
 * Checks whether the log may be started for this guest at all. Has no side effect and asks
 * neither libvirt nor QEMU. WSS_ERR_UNSUPPORTED with the reason: not KVM, a device or a
 * setting that would make QEMU abort, or too long a window.
 */
int wss_dirtylog_check(const struct wss_guest *guest, uint64_t window_ns, struct wss_error *err);

/* Sets WSS_ERR_BUSY, and returns -1: a calculation is running that is not the caller's. */
int wss_dirtylog_busy(const struct wss_dirty_log *now, struct wss_error *err);

/*
 * Checks that no calculation is running, so that one may be started. Returns 1 if so; 0 if one
 * is about to end, above all one of an earlier window: call again after 10 ms or so; -1
 * with WSS_ERR_BUSY if one has more than 10 s left, or has been waited for as long. Changes nothing in QEMU.
 */
int wss_dirtylog_free(struct wss_dirtylog *log, struct wss_guest *guest, struct wss_error *err);

/*
 * Requests the log by starting the shortest calculation that covers the window. Call it only
 * after wss_dirtylog_free() has returned 1.
 */
int wss_dirtylog_start(struct wss_dirtylog *log, struct wss_guest *guest, uint64_t window_ns,
		       struct wss_error *err);

/*
 * Takes one step, after the request, towards a log that is on. Returns 0: call again after 10
 * ms or so; 1: the log appears to be on; -1: the request was given up, as by
 * wss_dirtylog_done(). counts are KVM's newest.
 */
int wss_dirtylog_step(struct wss_dirtylog *log, struct wss_guest *guest,
		      const struct wss_kvm_counts *counts, struct wss_error *err);

enum wss_dirtylog_end {
	WSS_DIRTYLOG_ENDED,
	WSS_DIRTYLOG_LASTS, /* not due yet: ask again in a moment */
	/* Long overdue: QEMU defers the end while the guest is paused. */
	WSS_DIRTYLOG_OVERDUE,
	WSS_DIRTYLOG_UNKNOWN, /* nobody answers, for example because the guest has ended */
};

/*
 * Whether the calculation of the last window has ended. Sends no request before it is due to
 * end.
 */
enum wss_dirtylog_end wss_dirtylog_ended(const struct wss_dirtylog *log, struct wss_guest *guest);

/* Ends the use of the log: the next step starts a new calculation. */
void wss_dirtylog_done(struct wss_dirtylog *log);
