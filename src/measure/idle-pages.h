/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Idle page tracking (Documentation/admin-guide/mm/idle_page_tracking.rst): the kernel's page_idle/bitmap has a bit for each page of
 * the host. One that is set makes the page idle: the kernel clears its accessed bits in all page tables that map it, those
 * of KVM by the MMU notifier (Linux 6.1, mm/page_idle.c, page_idle_clear_pte_refs_one(), ptep_clear_young_notify()). Reading the
 * bit looks at the accessed bits again, and it is 0 from the first access on.
 *
 * A large page (of a transparent huge page, or of another size) has one bit, that of its first page; those of the others
 * read 0. Pages that are on no LRU list cannot be made idle and read 0, too: the zero page, and up to some dozen of each
 * processor that were allocated last. /proc/kpageflags shows both (fs/proc/page.c).
 */
#pragma once

#include <stdint.h>

#include "base/deadline.h"
#include "base/error.h"
#include "host/host.h"
#include "host/process.h"
#include "host/ram.h"

struct wss_idle_pages;

/* In pages of 4 KiB. */
struct wss_idle_counts {
	uint64_t present_pages; /* in the host's memory, and mapped by the process */
	uint64_t tracked_pages; /* those of them that can be idle, whether or not they are */
	/* Of tracked_pages that are not idle: those of large pages all of them, and one for each page of any size. */
	uint64_t touched_pages, touched_units;
	/* Not idle, but they cannot be, or could not be made so before, or KSM shares them with other processes. */
	uint64_t unsure_pages;
	uint64_t largest_pages; /* in the largest page that was seen */
};

/* Checks whether this kernel has the bitmap, and shows it and the numbers of pages. WSS_ERR_UNSUPPORTED with the reason. */
int wss_idle_pages_probe(const struct wss_host *host, struct wss_error *err);

/*
 * process must outlive *ret_idle, which is for wss_idle_pages_close(). Fails as wss_idle_pages_probe() and
 * wss_process_error() do, or with WSS_ERR_NO_MEMORY.
 */
int wss_idle_pages_open(const struct wss_host *host, const struct wss_process *process,
			struct wss_idle_pages **ret_idle, struct wss_error *err);

enum wss_idle_task {
	WSS_IDLE_LOOK, /* count present and tracked pages and the largest */
	WSS_IDLE_SET,  /* make each page idle, and count the same */
	WSS_IDLE_READ, /* count all, since they were made idle */
};

/*
 * Does this for the process's pages behind the ranges. WSS_ERR_GONE if the process has ended; WSS_ERR_UNSUPPORTED if the
 * kernel hides the numbers of pages; WSS_ERR_FAILED if it refuses; WSS_ERR_TIMEOUT or WSS_ERR_INTERRUPTED by the deadline;
 * WSS_ERR_NO_MEMORY.
 */
int wss_idle_pages_run(struct wss_idle_pages *idle, const struct wss_ram *ram,
		       enum wss_idle_task task, const struct wss_deadline *deadline,
		       struct wss_idle_counts *ret_counts, struct wss_error *err);

/* Accepts NULL. Idle pages stay idle until they are used, which changes nothing but this bitmap. */
void wss_idle_pages_close(struct wss_idle_pages *idle);
