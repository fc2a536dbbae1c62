/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Adds the recorder to a window measured by KVM's counters, to find out which pages were
 * touched, not only how many, when that was, and which pages were written.
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
	struct wss_recorder *recorder; /* NULL: only KVM's counters */
	struct wss_error why_not;      /* why there is no recorder */
	bool large_seen; /* KVM mapped large entries right before or in the window */
	bool exact;	 /* the newest reading is the recorder's */
	bool blocks;	 /* in it, at least the touched blocks of 2 MiB are known */
	/* A nested guest has run: addresses may be those of its own memory. */
	bool nested;
	bool inconsistent;     /* KVM maps more pages than the recorder has seen faults for */
	uint64_t mapped_bytes; /* according to KVM's counters */
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

/* Call this when the window has begun, at start_ns. */
void wss_pagewise_started(struct wss_pagewise *pages, uint64_t start_ns);

/*
 * Replaces the gauge's count by the recorder's if that is exact: KVM maps by 4 KiB, no nested
 * guest has run, no event was missed, KVM does not prefetch (as it does without its TDP MMU),
 * and both agree on the pages. Otherwise the recorder only raises bounds; if a nested guest
 * has run, or the two disagree, not even that.
 */
void wss_pagewise_refine(struct wss_pagewise *pages, bool nested, struct wss_reading *reading);

/* Implements curve() of a tracker: 0 unless the newest reading is the recorder's. */
size_t wss_pagewise_curve(const struct wss_pagewise *pages, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n);

/*
 * Implements pages() of a tracker: the recorder's bitmaps if the newest reading is the
 * recorder's. Where KVM has mapped 2 MiB at a time, each entry has caused one fault, for one of
 * its pages: then they show which blocks of 2 MiB were touched.
 */
void wss_pagewise_view(const struct wss_pagewise *pages, struct wss_page_view *ret_view);

/*
 * Adds the recorder's figures to a sample whose memory figures are filled in.
 *
 * Written pages: KVM maps a page writable for a read, too, if the host's own entry is writable
 * (Linux 6.1, virt/kvm/kvm_main.c, hva_to_pfn()), and a later write then causes no fault. In a
 * kernel with soft-dirty tracking the invalidation has write-protected the host's entries
 * (fs/proc/task_mmu.c, clear_soft_dirty()), so that the first write to a page does fault, and
 * the count is exact. But a huge page has one entry for 512 pages, and the entries of hugetlb
 * and of pages pinned by a device stay writable: there the count is the low bound, and the
 * number of touched pages the high one.
 */
void wss_pagewise_explain(const struct wss_pagewise *pages, struct wss_sample *sample);

/* Call this when the window is over: detaches the recorder. */
void wss_pagewise_rest(struct wss_pagewise *pages);

/* Closes the recorder; accepts a struct that is all zero. */
void wss_pagewise_close(struct wss_pagewise *pages);

#endif
