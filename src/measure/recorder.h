/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: which pages of a guest's RAM KVM has mapped, and mapped writable, since an
 * invalidation. It walks the second-level page tables (kvm/kvm.h) as often as the window asks, and adds
 * up what the walks find. So nothing runs at a fault of any guest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "pages/pages.h"

struct wss_recorder;

/* What has become of the VM's memory slots: those of RAM that is plugged or unplugged, and those of devices. */
enum wss_recorder_slots { WSS_SLOTS_SAME, WSS_SLOTS_GREW, WSS_SLOTS_SHRANK, WSS_SLOTS_MOVED };

/* Since wss_recorder_start(). Pages are of 4 KiB; of a larger entry the first page stands for all. */
struct wss_recorder_counts {
	uint64_t touched_pages; /* in guest RAM, each counted once */
	/* Those of touched_pages that are mapped writable: see pagewise.h. */
	uint64_t written_pages;
	/*
	 * Those of touched_pages that the processor has marked as accessed. The rest may have been mapped
	 * in advance. Where KVM does not do that, each mapped page counts.
	 */
	uint64_t accessed_pages;
	/* Of touched_pages, by the sizes of the entries that showed them first. */
	uint64_t touched_bytes;
	uint64_t mapped_bytes; /* under all entries of guest RAM, at the last walk */
	uint64_t entries;      /* at the last walk; a page that two of them map counts twice */
	/* Mapped outside guest RAM at the last walk: device memory, firmware. */
	uint64_t outside_pages;
	/*
	 * Pages that the host may have unmapped between two walks after they were first touched between
	 * them: if it unmapped new pages as often as those that were known.
	 */
	uint64_t lost_pages;
	enum wss_recorder_slots slots; /* the first change that a walk has found */
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
 * Forgets everything, and reads again where the guest's RAM is: 160 KiB per GiB of its address space.
 * Call this right before the invalidation. Fails as wss_recorder_open() does.
 */
int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err);

/*
 * From the next start on, only pages that the processor has marked as accessed count as touched, for a caller that has had
 * the marks cleared instead of an invalidation.
 */
void wss_recorder_need_marks(struct wss_recorder *recorder);

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
