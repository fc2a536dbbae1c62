/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A look at a guest: all input to decisions about its balloon, from libvirt, history and
 * policy.
 */
#pragma once

#include <stdint.h>

#include "balloon/balloon.h"
#include "balloon/need.h"
#include "host/guest.h"

/* Shortest time between two requests to QEMU for its disk-read counters, unless each look counts. */
#define WSS_LOOK_READS_PERIOD_S 10

/* State of a guest's memory reports, kept from look to look; all zero before the first. */
struct wss_reports {
	/* Time of the newest report by the wall clock, which may have been set since. */
	uint64_t update_s;
	/* Times of wss_clock_now_seconds(): */
	int64_t said_s; /* of the newest report */
	/*
	 * Of the newest report, or of the last look at which the guest did not run and so
	 * could not report.
	 */
	int64_t heard_s;
	int64_t looked_s; /* of the previous look */
	int64_t asked_s;  /* time of the last request for its disk reads */
};

struct wss_look {
	struct wss_balloon_facts facts;
	/* The look sets its minimum, need, headroom and period. */
	struct wss_balloon_limits limits;
	struct wss_balloon_view view;
	uint64_t windows;	       /* number of windows in the history */
	enum wss_sizing_reason reason; /* what binds limits.needed_bytes */
};

/*
 * Takes a look at an open guest in the state of its last refresh, with the current statistics
 * of its balloon. reports belongs to that guest. Returns 0, or -1 with libvirt's error.
 */
int wss_look_take(struct wss_guest *guest, const struct wss_policy *policy,
		  struct wss_reports *reports, struct wss_look *ret_look, struct wss_error *err);

/*
 * Adds whether the journal of the history (NULL: there is none) has unfinished steps of the guest. Until the first
 * step these are another's.
 */
int wss_look_journal(struct wss_history *history, const char *uuid, struct wss_look *look,
		     struct wss_error *err);

/* Renews only what comes from the statistics: facts.answers, .statistics and .unsized, and the view. */
int wss_look_statistics(struct wss_guest *guest, struct wss_reports *reports, struct wss_look *look,
			struct wss_error *err);

/*
 * Adds the guest's total disk reads. This takes a request to QEMU's monitor, made at most
 * every period_s and only if the statistics are fresh; otherwise the total stays absent.
 */
void wss_look_disks(struct wss_guest *guest, struct wss_reports *reports, int64_t period_s,
		    struct wss_look *look);

/* Adds the memory pressure of the host; it stays absent where the kernel does not report it. */
void wss_look_pressure(const struct wss_host *host, struct wss_look *look);

/*
 * Replaces the look's resident memory by that of guest RAM alone, read from smaps, and returns
 * QEMU's own. If that cannot be read, as for a guest on another host, the look keeps its figure,
 * which then is the best one, and *ret_qemu_bytes is absent. Fails with WSS_ERR_NO_MEMORY only.
 */
int wss_look_check_memory(struct wss_guest *guest, const struct wss_host *host,
			  struct wss_look *look, struct wss_amount *ret_qemu_bytes,
			  struct wss_error *err);

/* Adds the guest's need to a look. */
void wss_look_join(const struct wss_need *need, struct wss_look *look);
