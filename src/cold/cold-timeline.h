/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The timeline of a guest's coldness: when it was observed, and how many pages were last touched
 * when. cold/coldness.h has the pages themselves.
 *
 * Theory of operation. Time is a row of slots, each a window or several adjacent ones, and each page has
 * the number of the slot in which it was last touched: its serial. When the row is full, old slots are
 * merged: a merged slot is at most 1/32 as long as it is old, or 1/16 where that is not enough, and so
 * on, so that a few hundred slots reach back for years, and recent time keeps its resolution. Within its
 * slot a page may have been touched at any moment, which is what the two bounds of an age are about.
 *
 *   idle for A, high: not seen touched after now - A. The touch may have been as early as its slot began.
 *   idle for A, low:  surely not touched after now - A. Its slot ended before that, and all of the time
 *                     since then was observed. If any of it was not, the low bound is 0.
 *
 * Time between two windows is a gap, unless it is a seam: at most WSS_COLD_SEAM_NS, about as long as
 * arming takes, or WSS_COLD_LONG_SEAM_NS on a busy host if one window went on until the next was armed. In a seam a page that was touched in the window before still has its
 * mapping, so that its touches are not seen until the mapping is dropped: therefore the seam belongs to the
 * slot of the window before. Seams count as observed for the bounds, and as not observed for the share of
 * time that a report states.
 *
 * Times are those of wss_clock_now_ns().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/amount.h"

#define WSS_COLD_SLOTS_MAX 512
#define WSS_COLD_SEAM_NS 500000000ULL
#define WSS_COLD_LONG_SEAM_NS 2000000000ULL

/* Serials: slot i has i + 1. */
#define WSS_COLD_NEVER 0U	/* not touched in any slot */
#define WSS_COLD_ABSENT 0xffffU /* the host does not hold the page: it has no age */

struct wss_cold_slot {
	uint64_t start_ns, end_ns;
	uint64_t observed_ns; /* of that time */
	bool holes;	      /* part of it was not observed, besides seams */
	uint64_t pages;	      /* that were last touched in it */
};

/* All zero, with never_pages set to the number of all pages: nothing has been observed yet. */
struct wss_cold_timeline {
	size_t n;
	struct wss_cold_slot slots[WSS_COLD_SLOTS_MAX]; /* sorted by time, disjoint */
	uint64_t last_window_ns;			/* length of the newest window */
	uint64_t never_pages;
	uint64_t absent_pages;
	/* Bytes that the balloon has taken of pages that are not known, and so have an age. */
	uint64_t taken_bytes;
	uint64_t granularity_bytes; /* of the newest window */
	bool no_memory; /* its ages are those of units, because there was no memory for those of pages */
};

/*
 * Adds a slot for a window, which must end after the last one and becomes the newest; the row must not
 * be full. follows: the last window went on until this one was armed. Returns its serial, or 0, and adds
 * nothing, if the window is empty or does not end later.
 */
uint16_t wss_cold_timeline_add(struct wss_cold_timeline *timeline, uint64_t start_ns,
			       uint64_t end_ns, bool follows);

static inline bool wss_cold_timeline_full(const struct wss_cold_timeline *timeline)
{
	return timeline->n == WSS_COLD_SLOTS_MAX;
}

/*
 * Merges slots until a quarter of the row is free. ret_serials[s] becomes the new serial of what had
 * serial s up to now (0 to WSS_COLD_SLOTS_MAX).
 */
void wss_cold_timeline_merge(struct wss_cold_timeline *timeline,
			     uint16_t ret_serials[WSS_COLD_SLOTS_MAX + 1]);

/*
 * Whether a timeline from outside is possible: slots in order, times that end by now_ns, and pages that
 * add up to n_pages.
 */
bool wss_cold_timeline_valid(const struct wss_cold_timeline *timeline, uint64_t n_pages,
			     uint64_t now_ns);

enum wss_cold_age {
	WSS_COLD_2MIN,
	WSS_COLD_10MIN,
	WSS_COLD_1H,
	WSS_COLD_24H,
	WSS_COLD_SINCE_WATCHED, /* never touched since the first window */
};
#define WSS_COLD_AGES 5

/* "2m", "10m", "1h", "24h", "never". */
const char *wss_cold_age_name(enum wss_cold_age age);

struct wss_cold_class {
	/* For readers: wss_cold_low() and wss_cold_high(). */
	uint64_t low_bytes, high_bytes;
	double observed; /* share of that time, 0 to 1 */
	/* All of that time was observed, but for seams. Otherwise the low bound is 0, because nothing is sure. */
	bool whole;
};

struct wss_cold_report {
	uint64_t as_of_ns;   /* the time to which ages are counted */
	uint64_t since_ns;   /* when the first window began */
	uint64_t held_bytes; /* memory that has an age */
	/* Never touched since the guest began, or taken by balloon or discard. */
	uint64_t absent_bytes;
	uint64_t granularity_bytes;
	bool no_memory; /* that is why it is larger than a page */
	struct wss_cold_class ages[WSS_COLD_AGES];
};

/*
 * Whether the guest has been watched for as long as an age asks for. Before that the bounds say nothing: what has not
 * been seen touched includes all that was touched before.
 */
bool wss_cold_watched(const struct wss_cold_report *report, enum wss_cold_age age);

/* Memory that has been idle for at least that age, at least and at most: unknown before wss_cold_watched(). */
struct wss_amount wss_cold_low(const struct wss_cold_report *report, enum wss_cold_age age);
struct wss_amount wss_cold_high(const struct wss_cold_report *report, enum wss_cold_age age);

/*
 * Reports the ages at now_ns; false if nothing has been observed yet. Ages are counted to the end of
 * the newest window as long as the next one may be open, which is for as long as the newest was; to
 * now_ns after that, and the time in between was not observed.
 */
bool wss_cold_timeline_report(const struct wss_cold_timeline *timeline, uint64_t now_ns,
			      struct wss_cold_report *ret_report);
