/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The edge of a guest: the size below which its kernel begins to scan for memory to reclaim,
 * and the one below which it begins to page, from a series of observations while its balloon
 * grows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"

/* Number of observations at the guest's full size with which all others are compared. */
#define WSS_EDGE_BASE_POINTS 5
/* Largest number of observations at one size below that: two of three decide. */
#define WSS_EDGE_LEVEL_POINTS 3

/* One observation, over an interval at one size of the guest. */
struct wss_edge_point {
	uint64_t size_bytes; /* that the balloon left to the guest */
	bool returned;	     /* the guest had all memory back after the smallest size */
	/* Rates over the interval; absent if unknown. */
	struct wss_amount major_faults_per_s, swapped_bytes_per_s, read_bytes_per_s;
	/* Time in which tasks of the host waited for memory, in thousandths. */
	struct wss_amount pressure_permille;
	/* By the guest's newest report of the interval. */
	struct wss_amount usable_bytes; /* could be given up without swapping */
	struct wss_amount free_bytes;
	struct wss_amount refused_bytes; /* size that it did not shrink to in time */
	bool grew;			 /* it took memory back by itself */
};

enum wss_edge_verdict {
	WSS_EDGE_UNSURE,    /* observe it at this size again */
	WSS_EDGE_CLEAR,	    /* does not page at this size */
	WSS_EDGE_PAGES,	    /* does */
	WSS_EDGE_DISTURBED, /* nothing can be said: the host itself is short of memory */
};

/*
 * Returns the memory that a guest must still be able to give up, for its size: with less, an
 * allocation might end in swapping, or in the death of a process.
 */
uint64_t wss_edge_guard(uint64_t size_bytes);

/* Judges the size of the last of n points, oldest first. n is at least 1. */
enum wss_edge_verdict wss_edge_judge(const struct wss_edge_point *points, size_t n);

/* An edge lies above low_bytes, and not above high_bytes. */
struct wss_edge {
	/*
	 * edge_bytes is the middle of the other two. All three are absent if the edge was not
	 * reached; high_bytes is then known if the guest was seen without the sign: it is the
	 * smallest such size.
	 */
	struct wss_amount edge_bytes, low_bytes, high_bytes;
	const char *sign;   /* what showed it, static; NULL if it was not reached */
	const char *reason; /* why it is absent, static; NULL if it is not */
};

struct wss_edges {
	struct wss_edge scanning, paging;
};

/*
 * Finds the edges in n points, oldest first. The first ones are those at the full size, in
 * which a guest may page, too: a rate counts as paging if it exceeds the second largest of
 * those by a quarter and a little noise, in two of three observations. A guest scans at a size
 * if less of the last step came from its free memory than the step took, there and at the next
 * size. If there are returned points, paging must have ended in the last of them:
 * otherwise the size was not the cause.
 */
void wss_edges_find(const struct wss_edge_point *points, size_t n, struct wss_edges *ret_edges);
