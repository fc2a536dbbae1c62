/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The coldness of a guest's memory: for each page the time of its last touch, as far as windows have
 * seen it. cold/cold-timeline.h says what follows from that, and which times are uncertain.
 *
 * Theory of operation. Memory is divided into units of 2 MiB, aligned like the host's huge pages. A unit
 * has one serial for all of its pages; it is split into one serial for each page once a window that knows
 * single pages finds some of them touched and others not, and is whole again when they agree. A serial
 * takes 2 bytes, so that the ages of a guest take at most 0.05% of its memory, and less than a thousandth
 * of a percent where the host maps it by 2 MiB. Where the memory for a split is not there, the unit stays
 * whole and counts as touched by the touch of any page.
 *
 * The coldness of several guests may share a budget, which none of them exceeds together. Once it is short, the one that
 * takes most has to give its splits up (wss_coldness_coarsen()): it knows only whole units from then on, until the
 * budget has room for all of its pages again.
 *
 * Pages that the host does not hold have no age: the guest has never touched them, or the balloon or a
 * discard took them.
 *
 * Pages are 4 KiB and numbered by guest-physical address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cold/cold-timeline.h"
#include "pages/pages.h"

#define WSS_COLD_UNIT_PAGES 512U
/* Parts of a guest's address space that have RAM. */
#define WSS_COLD_PARTS_MAX 64

struct wss_coldness;

/* Memory that the ages of several guests may take, in any thread; reference-counted. */
struct wss_cold_budget;

/* NULL: out of memory. */
struct wss_cold_budget *wss_cold_budget_new(uint64_t limit_bytes);

/* Accepts NULL. */
struct wss_cold_budget *wss_cold_budget_ref(struct wss_cold_budget *budget);

/* Accepts NULL. */
void wss_cold_budget_unref(struct wss_cold_budget *budget);

/* What is taken already stays, also beyond the limit. */
void wss_cold_budget_set_limit(struct wss_cold_budget *budget, uint64_t limit_bytes);

uint64_t wss_cold_budget_used(const struct wss_cold_budget *budget); /* in bytes */

/* Whether memory was refused since this was asked last, or more is taken than the limit. */
bool wss_cold_budget_is_short(struct wss_cold_budget *budget);

/*
 * Makes the coldness of a guest whose RAM is n parts (1 to WSS_COLD_PARTS_MAX), sorted and disjoint runs
 * of pages, WSS_PAGESET_MAX_PAGES in all at most. limit_bytes: memory that it may take, besides 64 KiB; budget, of
 * which it keeps a reference, has all that it takes; NULL: none. For wss_coldness_free(); NULL: out of memory, the
 * budget has no room for its units, or the parts are not valid.
 */
struct wss_coldness *wss_coldness_new(const struct wss_run *parts, size_t n, uint64_t limit_bytes,
				      struct wss_cold_budget *budget);

/* Accepts NULL. */
void wss_coldness_free(struct wss_coldness *coldness);

/* Sets ret_parts, and returns their number. */
size_t wss_coldness_parts(const struct wss_coldness *coldness,
			  struct wss_run ret_parts[WSS_COLD_PARTS_MAX]);

uint64_t wss_coldness_pages(const struct wss_coldness *coldness); /* in all parts */

/* Returns the memory that it takes, in bytes. */
uint64_t wss_coldness_bytes(const struct wss_coldness *coldness);

/* Returns the part of that which wss_coldness_coarsen() frees. */
uint64_t wss_coldness_split_bytes(const struct wss_coldness *coldness);

/*
 * Gives up the ages of single pages: each unit counts as touched when the last of its pages was. Pages of a unit that
 * the host does not hold while it holds others count as taken.
 */
void wss_coldness_coarsen(struct wss_coldness *coldness);

/* What a window has seen. Times are those of wss_clock_now_ns(). */
struct wss_cold_window {
	uint64_t start_ns, end_ns;
	struct wss_pages touched; /* known */
	/* The last one went on until this one was armed. */
	bool follows;
	/* A touched page stands for all pages of its unit: the host maps the guest by 2 MiB. */
	bool by_unit;
};

/*
 * Adds a window that ends later than the last one; any other is ignored. Time since the last one was not
 * observed, if it is longer than a seam.
 */
void wss_coldness_add(struct wss_coldness *coldness, const struct wss_cold_window *window);

/*
 * Sets which pages the host holds, now. Pages that it held and holds no longer lose their age; pages
 * that it holds again count as touched in the newest window.
 */
void wss_coldness_set_held(struct wss_coldness *coldness, const struct wss_pages *held);

/*
 * Where it is not known which pages the host holds: the balloon has taken so many bytes of those that
 * have an age.
 */
void wss_coldness_set_taken(struct wss_coldness *coldness, uint64_t bytes);

const struct wss_cold_timeline *wss_coldness_timeline(const struct wss_coldness *coldness);

/* As wss_cold_timeline_report(). */
bool wss_coldness_report(const struct wss_coldness *coldness, uint64_t now_ns,
			 struct wss_cold_report *ret_report);

/* --- to store it --- */

/* Pages in a row, in the order of the parts, that have the same serial. */
struct wss_cold_run {
	uint64_t n;
	uint16_t serial; /* of the timeline, WSS_COLD_NEVER or WSS_COLD_ABSENT */
};

/*
 * Finds the run that begins at page index from, counted through all parts, and may end early: the next
 * one can have the same serial. False at the end.
 */
bool wss_coldness_next(const struct wss_coldness *coldness, uint64_t from,
		       struct wss_cold_run *ret_run);

/*
 * Restores a new coldness: first a valid timeline, whose numbers of pages are counted again, then the runs
 * in their order. from is the page index at which a run begins.
 */
void wss_coldness_restore(struct wss_coldness *coldness, const struct wss_cold_timeline *timeline);
void wss_coldness_restore_run(struct wss_coldness *coldness, uint64_t from,
			      const struct wss_cold_run *run);

/*
 * Returns a copy that knows only whole units, each as touched when the last of its pages was: 10 bytes a unit,
 * and a file of a few bytes a unit. Pages of a unit that the host does not hold while it holds others count as
 * taken (wss_coldness_set_taken()). For wss_coldness_free(); NULL: out of memory.
 */
struct wss_coldness *wss_coldness_coarse(const struct wss_coldness *coldness);
