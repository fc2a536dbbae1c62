/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a recording of a guest says, as plain data: who was recorded, how, which memory
 * it has, and one entry for each window of time. The file that holds it is read and
 * written by rec/.
 *
 * Guest-physical pages are 4 KiB. A page has a guest-physical frame number (gfn, its
 * address / 4096), and an index: its place among the pages of all regions, in the order
 * of their addresses. Everything that counts or compares uses the index, so that
 * holes of the address space cost nothing.
 */
#ifndef WSS_WSS_RECORDING_H
#define WSS_WSS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wss/pageset.h"

#define WSS_PAGE_SHIFT 12
#define WSS_PAGE_BYTES (1ULL << WSS_PAGE_SHIFT)

#define WSS_REGIONS_MAX 1024
#define WSS_RECORDING_TEXT_MAX 256 /* a name, with its final NUL */
#define WSS_MARK_TEXT_MAX 256

enum wss_region_kind {
	WSS_REGION_BELOW_1M, /* guest-physical 0 to 1 MiB */
	WSS_REGION_LOW,	     /* RAM from 1 MiB to 4 GiB */
	WSS_REGION_HIGH,     /* RAM above 4 GiB */
	WSS_REGION_DEVICE,   /* a memory device: DIMM, virtio-mem */
};
#define WSS_REGION_KINDS 4

/* "below-1m", "low", "high", "device". */
const char *wss_region_kind_name(enum wss_region_kind kind);

struct wss_region {
	uint64_t start;	 /* guest-physical address, bytes; a multiple of the page size, as is length */
	uint64_t length; /* bytes */
	enum wss_region_kind kind;
	int node;	 /* the guest's NUMA node; -1: not known */
	char name[64];	 /* of a memory device; "" else */
};

struct wss_recording {
	char tool[32]; /* version of virt-wss that made it */
	char domain[WSS_RECORDING_TEXT_MAX];
	char uuid[37];
	char method[32];
	char boot_id[37]; /* of the host; "" if not known */
	char host[WSS_RECORDING_TEXT_MAX]; /* its name; "" if not known */
	uint64_t granularity_bytes;
	uint64_t interval_ns; /* from start to start of two windows, as was asked for */
	uint64_t window_ns;   /* length of a window, as was asked for */
	int64_t start_realtime_ns;
	uint64_t start_boottime_ns;
	size_t n_regions;
	struct wss_region regions[WSS_REGIONS_MAX]; /* by address, disjoint */
};

/* What the pages of the set "written" are. */
enum wss_written {
	WSS_WRITTEN_ABSENT, /* not observed */
	WSS_WRITTEN_EXACT,
	WSS_WRITTEN_HIGH, /* an upper bound: pages that were only read may be among them */
	WSS_WRITTEN_LOW,  /* a lower bound */
};
#define WSS_WRITTEN_KINDS 4

/* "absent", "exact", "upper bound", "lower bound". */
const char *wss_written_name(enum wss_written written);

/* One stretch of time. Times are since the recording's start. */
struct wss_interval {
	bool gap; /* nothing was observed: no set of it is known */
	bool degraded;
	enum wss_written written;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t granularity_bytes; /* the largest entry that was seen */
	uint64_t balloon_bytes;	    /* what the balloon leaves to the guest; 0: not known */
	char note[WSS_MARK_TEXT_MAX]; /* why there is a gap, or why it is degraded; "" else */
};

/* Changes of the sets from one window to the next. */
enum wss_change {
	WSS_CHANGE_TOUCHED,	/* touched in this window, not in the one before */
	WSS_CHANGE_UNTOUCHED,	/* touched in the one before, not in this */
	WSS_CHANGE_WRITTEN,	/* the same for writes */
	WSS_CHANGE_UNWRITTEN,
	WSS_CHANGE_BALLOONED, /* taken away by the balloon */
	WSS_CHANGE_RETURNED,  /* given back */
};
#define WSS_CHANGES 6

/* The sets as they are after a window, by page index. */
struct wss_recording_sets {
	const struct wss_pageset *touched;
	const struct wss_pageset *written;
	const struct wss_pageset *ballooned;
};

/* Pages of all regions. */
uint64_t wss_recording_pages(const struct wss_recording *recording);

/*
 * Is this a memory map that can be worked with? Regions by address, disjoint, of whole pages,
 * none empty, below 2^52, at most WSS_PAGESET_MAX_PAGES in all.
 */
bool wss_recording_map_valid(const struct wss_recording *recording);

/* Where the regions lie, for those who look up many pages. */
struct wss_region_index {
	size_t n;
	size_t hint; /* the region that was found last */
	uint64_t gfn[WSS_REGIONS_MAX];
	uint64_t first[WSS_REGIONS_MAX + 1]; /* index of the first page; last of all, pages in all */
};

void wss_region_index_init(struct wss_region_index *index, const struct wss_recording *recording);

/* The region of a page index; n when outside. Fastest where it was last. */
size_t wss_region_index_of(struct wss_region_index *index, uint64_t page);

/*
 * The page index of a gfn and for how many pages from there on gfns and indices go together;
 * false where it is in no region.
 */
bool wss_region_index_gfn(struct wss_region_index *index, uint64_t gfn, uint64_t *ret_page,
			  uint64_t *ret_n);

/* The region of an index, and the index of its first page; n_regions when outside. */
size_t wss_recording_region(const struct wss_recording *recording, uint64_t index,
			    uint64_t *ret_first);

/* The guest-physical address of an index that is inside. */
uint64_t wss_recording_address(const struct wss_recording *recording, uint64_t index);

/* Have both the same memory, so that their page indices mean the same? */
bool wss_recording_same_map(const struct wss_recording *a, const struct wss_recording *b);

#endif
