/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guests as check and top show them, whether the service has measured them or virt-wss itself. */
#pragma once

#include <stdbool.h>

#include "base/bound.h"
#include "client/guests.h"

struct wss_sample;

/* Copies the figures of a measured sample. */
void wss_view_sample(const struct wss_sample *sample, struct wss_guest_sample *ret_sample);

/* Whether that is the state of the guest, as the service names it. */
bool wss_view_is(const struct wss_guest_view *guest, const char *state);

/* Whether its last window was degraded, so that its working set is a lower bound. */
bool wss_view_is_degraded(const struct wss_guest_view *guest);

/* Whether there is a working set, of all accesses. */
bool wss_view_has_wss(const struct wss_guest_view *guest);

/* Returns what the guest may use: the balloon, else its maximum memory; may be unknown. */
struct wss_amount wss_view_size(const struct wss_guest_view *guest);

/*
 * Stores the working set as a percentage of that, and returns true; false if it is unknown, or
 * the size is 0.
 */
bool wss_view_percent(const struct wss_guest_view *guest, double *ret_percent);

/* A sum over guests of which some working sets are bounds. All zero is that of no guest. */
struct wss_view_sum {
	uint64_t bytes;	    /* of the figures as they are shown */
	uint64_t low_bytes; /* of what is at least touched */
	bool at_most, at_least;
};

/* Adds a guest's working set, which is known. Returns its lower bound, in bytes. */
uint64_t wss_view_sum_add(struct wss_view_sum *sum, const struct wss_guest_sample *sample);

/* Returns what bytes is: AT_LEAST where it has bounds of both kinds, of which only low_bytes is one. */
enum wss_bound wss_view_sum_bound(const struct wss_view_sum *sum);
