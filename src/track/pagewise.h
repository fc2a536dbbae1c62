/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the recorder adds to a window that is measured by KVM's counters: the pages
 * themselves in place of a gauge, when they were touched, and what was written.
 */
#ifndef WSS_TRACK_PAGEWISE_H
#define WSS_TRACK_PAGEWISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/kvmstat.h"
#include "track/recorder.h"
#include "track/tracker.h"
#include "wss/pages.h"

struct wss_pagewise {
	const struct wss_host *host;
	const struct wss_guest *guest;
	enum wss_recorder_choice choice;
	struct wss_recorder *recorder; /* NULL: KVM's counters alone */
	struct wss_error why_not;      /* why there is none */
	bool large_seen;    /* KVM had large entries right before the window, or in it */
	bool exact;	    /* the newest reading is that of the recorder */
	bool nested;	    /* a nested guest has run: addresses may be its own */
	bool inconsistent;  /* KVM maps more than the recorder has seen faults for */
	uint64_t mapped_bytes; /* what KVM's counters say */
	struct wss_recorder_counts counts;
};

/*
 * host and guest outlive it. With WSS_RECORDER_AUTO it always succeeds, with a recorder or
 * without; with WSS_RECORDER_PAGES it fails as wss_recorder_open() does.
 */
int wss_pagewise_open(struct wss_pagewise *pages, const struct wss_host *host,
		      const struct wss_guest *guest, enum wss_recorder_choice choice,
		      struct wss_error *err);

/* Before each invalidation. counts: KVM's, of now. Errors as open. */
int wss_pagewise_begin(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
		       struct wss_error *err);

/* The window has begun, at start_ns. */
void wss_pagewise_started(struct wss_pagewise *pages, uint64_t start_ns);

/*
 * Puts the recorder's count in the place of the gauge's where it is exact: KVM maps by
 * 4 KiB, no nested guest has run, no event was missed, KVM does not prefetch (as it does
 * without its TDP MMU), and both tell of the same pages. Else it only raises bounds; where a
 * nested guest has run, or both tell of other pages, not even that.
 */
void wss_pagewise_refine(struct wss_pagewise *pages, bool nested, struct wss_reading *reading);

/* As tracker.h's curve: 0 unless the newest reading is the recorder's. */
size_t wss_pagewise_curve(const struct wss_pagewise *pages, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n);

/* As tracker.h's pages: the recorder's bitmaps, where the newest reading is the recorder's. */
void wss_pagewise_view(const struct wss_pagewise *pages, struct wss_page_view *ret_view);

/*
 * Adds the recorder's figures to a sample whose memory figures are filled in.
 *
 * Written: KVM maps a page for reading writable too where the host's own entry is
 * writable (Linux 6.1, virt/kvm/kvm_main.c, hva_to_pfn()), and then no later write faults.
 * Where soft-dirty tracking is in the kernel the invalidation has write-protected the host's
 * entries (fs/proc/task_mmu.c, clear_soft_dirty()), so a page's first write does fault: the
 * count is exact. But the entry of a huge page is one for 512 pages, that of hugetlb is left
 * alone, as is a page that a device has pinned: there the count is the low bound, and
 * what was touched the high one.
 */
void wss_pagewise_explain(const struct wss_pagewise *pages, struct wss_sample *sample);

/* The window is over: nothing stays attached. */
void wss_pagewise_rest(struct wss_pagewise *pages);

/* Takes one that is all zero. */
void wss_pagewise_close(struct wss_pagewise *pages);

#endif
