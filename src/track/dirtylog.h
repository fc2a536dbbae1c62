/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * KVM maps a memory slot by 4 KiB while its dirty log is on, whatever the host's page
 * size (Linux 6.1, arch/x86/kvm/mmu/mmu.c, kvm_mmu_max_mapping_level() and
 * kvm_mmu_hugepage_adjust(), through slot->dirty_bitmap); the host's huge pages stay
 * whole. QEMU's dirty-rate calculation in mode dirty-bitmap has the log on for a number
 * of seconds and then ends by itself, so nothing is left behind by a killed tool.
 *
 * When is it really on? QEMU says "measuring" before it starts the log, so that is
 * only a hint, as is that no large entry is mapped. What is sure is that a log that is
 * on lets no large entry come: a window in which one is seen is not one of 4 KiB.
 */
#ifndef WSS_TRACK_DIRTYLOG_H
#define WSS_TRACK_DIRTYLOG_H

#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/kvmstat.h"

/* QEMU takes 1 to 60 s; some of that passes before the window begins. */
#define WSS_DIRTYLOG_MAX_WINDOW_NS 50000000000ULL

enum wss_dirtylog_state {
	WSS_DIRTYLOG_OFF,
	WSS_DIRTYLOG_STARTING, /* asked for, not seen yet */
	WSS_DIRTYLOG_ON,
};

struct wss_dirtylog {
	enum wss_dirtylog_state state;
	uint64_t deadline_ns; /* of starting */
	uint64_t ends_ns;     /* the log may be off from here on */
};

/*
 * May the log be started for this guest at all? Without side effect, and without
 * asking anybody. WSS_ERR_UNSUPPORTED with the reason: not KVM, a device or a setting that
 * would make QEMU abort, a window that is too long.
 */
int wss_dirtylog_check(const struct wss_guest *guest, uint64_t window_ns, struct wss_error *err);

/*
 * Is no calculation under way, so that one may be started? 1: yes; 0: one that an earlier
 * window of ours has left is about to end, call again after 10 ms or so; -1: somebody else's
 * is, WSS_ERR_BUSY. Without side effect.
 */
int wss_dirtylog_free(const struct wss_dirtylog *log, struct wss_guest *guest,
		      struct wss_error *err);

/* Asks for the log: a calculation that is the shortest that fits the window. Only when free. */
int wss_dirtylog_start(struct wss_dirtylog *log, struct wss_guest *guest, uint64_t window_ns,
		       struct wss_error *err);

/*
 * After that, one step towards a log that is on, to be called again after 10 ms or so as long
 * as it returns 0; 1: it is on as far as can be told; -1: done with, as by
 * wss_dirtylog_done(). counts are KVM's newest.
 */
int wss_dirtylog_step(struct wss_dirtylog *log, struct wss_guest *guest,
		      const struct wss_kvm_counts *counts, struct wss_error *err);

enum wss_dirtylog_end {
	WSS_DIRTYLOG_ENDED,
	WSS_DIRTYLOG_LASTS,    /* as it should: ask again in a moment */
	WSS_DIRTYLOG_OVERDUE,  /* well past its time: QEMU puts the end off while it is paused */
	WSS_DIRTYLOG_UNKNOWN,  /* nobody answers; a guest that has ended, for one */
};

/* Has the calculation of the last window ended? Asks nobody before its time. */
enum wss_dirtylog_end wss_dirtylog_ended(const struct wss_dirtylog *log, struct wss_guest *guest);

/* The window is over: the next step starts a new calculation. */
void wss_dirtylog_done(struct wss_dirtylog *log);

#endif
