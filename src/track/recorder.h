/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: which pages of a guest's RAM KVM has mapped, and mapped writable, since an
 * invalidation. It walks the second-level page tables (kvm/vm.h) as often as the window asks, and adds
 * up what the walks find. So nothing runs at a fault of any guest.
 */
#ifndef WSS_TRACK_RECORDER_H
#define WSS_TRACK_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "wss/pages.h"

struct wss_recorder;

/* Since wss_recorder_start(). Pages are of 4 KiB; of a larger entry the first page stands for all. */
struct wss_recorder_counts {
	uint64_t touched_pages; /* in guest RAM, each counted once */
	uint64_t written_pages; /* those of touched_pages that are mapped writable: see pagewise.h */
	/*
	 * Those of touched_pages that the processor has marked as accessed. The rest may have been mapped
	 * in advance. Only where KVM does that, else touched_pages.
	 */
	uint64_t accessed_pages;
	uint64_t outside_pages; /* mapped outside guest RAM at the last walk: device memory, firmware */
	/*
	 * Pages that the host may have unmapped between two walks after they were first touched between
	 * them: if it unmapped new pages as often as those that were known.
	 */
	uint64_t lost_pages;
	unsigned walks;
	bool incomplete; /* the last walk could not read everything */
};

/*
 * Checks whether the recorder can record this guest or, if guest is NULL, any guest of this host.
 * WSS_ERR_UNSUPPORTED with the reason: not built in, no privilege, or an unknown layout of the
 * guest's memory. Loads nothing.
 */
int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest,
		       struct wss_error *err);

/* For an attached guest; host and guest must outlive it. Fails as wss_recorder_probe() does. */
int wss_recorder_open(const struct wss_host *host, const struct wss_guest *guest,
		      struct wss_recorder **ret_recorder, struct wss_error *err);

/*
 * Forgets everything, and reads anew where the guest's RAM is: 128 KiB per GiB of its address space.
 * Call this right before the invalidation. Fails as wss_recorder_open() does.
 */
int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err);

/*
 * Adds what is mapped now. Never waits for the guest, and works while QEMU is stopped. WSS_ERR_GONE;
 * WSS_ERR_FAILED.
 */
int wss_recorder_walk(struct wss_recorder *recorder, struct wss_error *err);

/* Whether KVM keeps a dirty log of guest RAM now, where it was at the last wss_recorder_start(). */
enum wss_tristate wss_recorder_logs_writes(const struct wss_recorder *recorder);

struct wss_recorder_counts wss_recorder_counts(const struct wss_recorder *recorder);

/* Return views of the bitmaps, which must not outlive the recorder and change at each walk. */
struct wss_pages wss_recorder_touched(const struct wss_recorder *recorder);
struct wss_pages wss_recorder_written(const struct wss_recorder *recorder);

/* Accepts NULL. */
void wss_recorder_close(struct wss_recorder *recorder);

#endif
