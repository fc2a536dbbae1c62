/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A look at a guest: what decides about its balloon, gathered from libvirt, history and
 * policy. */
#ifndef WSS_CONTROL_LOOK_H
#define WSS_CONTROL_LOOK_H

#include <stdint.h>

#include "control/need.h"
#include "host/guest.h"
#include "wss/balloon.h"

/* A guest's reports of its memory, from look to look: all 0 before the first. */
struct wss_reports {
	uint64_t update_s; /* the newest, by the time of day, which may have been set since */
	/* Of wss_clock_now_seconds(): */
	int64_t said_s;	  /* when that was */
	int64_t heard_s;  /* likewise, or when the guest was last seen not to run, so that it
			     could not */
	int64_t looked_s; /* the look before */
	int64_t asked_s;  /* when its disks were last asked for what they have read */
};

struct wss_look {
	struct wss_balloon_facts facts;
	struct wss_balloon_limits limits; /* of these minimum, need, headroom and period */
	struct wss_balloon_view view;
	uint64_t windows; /* that the history has counted */
};

/*
 * Takes a look at an open guest as it was when it was last refreshed, with its balloon's
 * statistics of now. reports is that guest's. 0, or -1 with the error of libvirt's answer.
 */
int wss_look_take(struct wss_guest *guest, const struct wss_policy *policy,
		  struct wss_reports *reports, struct wss_look *ret_look,
		  struct wss_error *err);

/* Renews only what the statistics say: facts.answers, facts.statistics and the view. */
int wss_look_statistics(struct wss_guest *guest, struct wss_reports *reports,
			struct wss_look *look, struct wss_error *err);

/*
 * Adds what the guest's disks have read in all. As that is a question to QEMU's monitor, it is
 * asked every 10 s at most, and not without fresh statistics; otherwise it stays absent.
 */
void wss_look_disks(struct wss_guest *guest, struct wss_reports *reports,
		    struct wss_look *look);

/* Adds what the guest needs. */
void wss_look_join(const struct wss_need *need, struct wss_look *look);

#endif
