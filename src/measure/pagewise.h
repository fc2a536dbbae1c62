/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds the recorder to a window measured by KVM's counters, to find out which pages were
 * touched, not only how many, and which pages were written.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/kvmstat.h"
#include "measure/recorder.h"
#include "measure/tracker.h"
#include "pages/pages.h"

struct wss_pagewise {
	const struct wss_host *host;
	const struct wss_guest *guest;
	enum wss_recorder_choice choice;
	struct wss_recorder *recorder; /* NULL: only KVM's counters */
	struct wss_error why_not;      /* why there is no recorder */
	bool large_seen;	       /* KVM mapped large entries right before or in the window */
	bool exact;		       /* the newest reading is the recorder's */
	bool blocks;		       /* in it, at least the touched blocks of 2 MiB are known */
	bool nested;		       /* a nested guest has run */
	bool shadow; /* KVM shadows the guest's page tables: its counters do not count pages of the guest */
	bool inconsistent;     /* KVM counts more entries than the walks have found */
	uint64_t mapped_bytes; /* according to KVM's counters */
	uint64_t start_ns;     /* of the window */
	uint64_t next_ns;      /* when the next walk is due */
	uint64_t walked_ns;    /* time that its walks have taken */
	uint64_t flushes;      /* requested by the host until the last walk */
	struct wss_error walk_error;
	struct wss_recorder_counts counts;
};

/*
 * Host and guest must outlive it. With WSS_RECORDER_AUTO this always succeeds, with or without
 * a recorder; with WSS_RECORDER_PAGES it fails as wss_recorder_open() does.
 */
int wss_pagewise_open(struct wss_pagewise *pages, const struct wss_host *host,
		      const struct wss_guest *guest, enum wss_recorder_choice choice,
		      struct wss_error *err);

/*
 * Call this before each invalidation with KVM's current counts. Fails as wss_pagewise_open()
 * does.
 */
int wss_pagewise_begin(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
		       struct wss_error *err);

/* Call this when a window of this length has begun, at start_ns, with KVM's counts since the invalidation. */
void wss_pagewise_started(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
			  uint64_t start_ns, uint64_t window_ns);

/* Walks the tables if that is due: early in the window, and where the host has unmapped something since the last walk. */
void wss_pagewise_poll(struct wss_pagewise *pages, const struct wss_kvm_counts *counts);

/*
 * Walks the tables, and replaces the gauge's reading by the recorder's if KVM maps by 4 KiB; otherwise the recorder
 * only raises bounds. If a nested guest has run, the figure is the recorder's, within bounds. counts: KVM's when the
 * reading was taken. Does nothing if KVM counts more entries than the walks have found, or without a recorder.
 */
void wss_pagewise_refine(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
			 bool nested, struct wss_reading *reading);

/* Whether KVM keeps a dirty log of guest RAM now; unknown without a recorder. */
enum wss_tristate wss_pagewise_logs_writes(const struct wss_pagewise *pages);

/*
 * Implements pages() of a tracker: the recorder's bitmaps if the newest reading is the
 * recorder's. Where KVM has mapped 2 MiB at a time, they show which blocks of 2 MiB were touched.
 */
void wss_pagewise_view(const struct wss_pagewise *pages, struct wss_page_view *ret_view);

/*
 * Adds the recorder's figures to a sample whose memory figures are filled in.
 *
 * Written pages: KVM maps a page writable for a read, too, if the host's own entry is writable
 * (Linux 6.1, virt/kvm/kvm_main.c, hva_to_pfn()). In a kernel with soft-dirty tracking the invalidation
 * has write-protected the host's entries (fs/proc/task_mmu.c, clear_soft_dirty()), so that KVM maps a
 * page writable only when it is written, and the count is exact. But a huge page has one entry for 512
 * pages, and the entries of hugetlb and of pages pinned by a device stay writable: there nothing but the
 * number of touched pages bounds it.
 */
void wss_pagewise_explain(const struct wss_pagewise *pages, struct wss_sample *sample);

/* Closes the recorder; accepts a struct that is all zero. */
void wss_pagewise_close(struct wss_pagewise *pages);
