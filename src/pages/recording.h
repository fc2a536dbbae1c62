/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording as plain data: which guest was recorded and how, its memory layout, and the windows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pages/pageset.h"

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
	uint64_t start;	 /* guest-physical address in bytes; a multiple of the page size, as is
			    length */
	uint64_t length; /* bytes */
	enum wss_region_kind kind;
	int node;      /* guest NUMA node; -1: unknown */
	char name[64]; /* name of a memory device; else "" */
};

struct wss_recording {
	char tool[32]; /* program and version that made it */
	char domain[WSS_RECORDING_TEXT_MAX];
	char uuid[37];
	char method[32];
	char boot_id[37];		   /* the host's boot id; "" if unknown */
	char host[WSS_RECORDING_TEXT_MAX]; /* the host's name; "" if unknown */
	uint64_t granularity_bytes;
	uint64_t interval_ns; /* requested time from one window's start to the next */
	uint64_t window_ns;   /* requested length of a window */
	int64_t start_realtime_ns;
	uint64_t start_boottime_ns;
	size_t n_regions;
	struct wss_region regions[WSS_REGIONS_MAX]; /* sorted by address, disjoint */
};

/* Meaning of the set of written pages. */
enum wss_written {
	WSS_WRITTEN_ABSENT, /* not observed */
	WSS_WRITTEN_EXACT,
	WSS_WRITTEN_HIGH, /* an upper bound: may include pages that were only read */
	WSS_WRITTEN_LOW,  /* a lower bound */
};
#define WSS_WRITTEN_KINDS 4

/* "absent", "exact", "upper bound", "lower bound". */
const char *wss_written_name(enum wss_written written);

/* One interval of time. Times are since the recording's start. */
struct wss_interval {
	bool gap; /* nothing was observed, and no set is known */
	bool degraded;
	enum wss_written written;
	uint64_t start_ns;
	uint64_t end_ns;
	uint64_t granularity_bytes;   /* size of the largest entry */
	uint64_t balloon_bytes;	      /* memory that the balloon leaves to the guest; 0: unknown */
	char note[WSS_MARK_TEXT_MAX]; /* reason for a gap or a degraded window; else "" */
};

/* Changes of the sets from one window to the next. */
enum wss_change {
	WSS_CHANGE_TOUCHED,   /* touched in this window, not in the previous one */
	WSS_CHANGE_UNTOUCHED, /* touched in the previous window, not in this one */
	WSS_CHANGE_WRITTEN,   /* the same for writes */
	WSS_CHANGE_UNWRITTEN,
	WSS_CHANGE_BALLOONED, /* taken away by the balloon */
	WSS_CHANGE_RETURNED,  /* given back */
};
#define WSS_CHANGES 6

/* Sets of page indices after a window. */
struct wss_recording_sets {
	const struct wss_pageset *touched;
	const struct wss_pageset *written;
	const struct wss_pageset *ballooned;
};

/* Returns the number of pages in all regions. */
uint64_t wss_recording_pages(const struct wss_recording *recording);

/*
 * Whether this is a valid memory layout: regions sorted by address, disjoint, of whole pages,
 * not empty, below 2^52, with at most WSS_PAGESET_MAX_PAGES in all.
 */
bool wss_recording_map_valid(const struct wss_recording *recording);

/* Index of the regions, for looking up many pages. */
struct wss_region_index {
	size_t n;
	size_t hint; /* region found last */
	uint64_t gfn[WSS_REGIONS_MAX];
	/* Index of each region's first page; after the last region, the number of all pages. */
	uint64_t first[WSS_REGIONS_MAX + 1];
};

void wss_region_index_init(struct wss_region_index *index, const struct wss_recording *recording);

/* Returns the region of a page index; n if outside. Lookups near the previous one are fastest. */
size_t wss_region_index_of(struct wss_region_index *index, uint64_t page);

/*
 * Finds the page index of a gfn, and the number of pages from there on in the same region;
 * false if it is in no region.
 */
bool wss_region_index_gfn(struct wss_region_index *index, uint64_t gfn, uint64_t *ret_page,
			  uint64_t *ret_n);

/* Returns the region of an index, and the index of its first page; n_regions if outside. */
size_t wss_recording_region(const struct wss_recording *recording, uint64_t index,
			    uint64_t *ret_first);

/* Returns the guest-physical address of an index, which must be inside. */
uint64_t wss_recording_address(const struct wss_recording *recording, uint64_t index);

/* Whether both have the same memory layout, so that page indices mean the same. */
bool wss_recording_same_map(const struct wss_recording *a, const struct wss_recording *b);
