/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Guests as check and top show them, whether the service has measured them or virt-wss itself. */
#ifndef WSS_CMD_GUEST_VIEW_H
#define WSS_CMD_GUEST_VIEW_H

#include <stdbool.h>

#include "client/guests.h"

struct wss_sample;

/* Copies the figures of a measured sample. */
void wss_view_sample(const struct wss_sample *sample, struct wss_guest_sample *ret_sample);

/* Whether that is the state of the guest, as the service names it. */
bool wss_view_is(const struct wss_guest_view *guest, const char *state);

/* Whether there is a working set, of all accesses. */
bool wss_view_has_wss(const struct wss_guest_view *guest);

/* Returns what the guest may use: the balloon, else its maximum memory; may be unknown. */
struct wss_amount wss_view_size(const struct wss_guest_view *guest);

/*
 * Stores the working set as a percentage of that, and returns true; false if it is unknown, or
 * the size is 0.
 */
bool wss_view_percent(const struct wss_guest_view *guest, double *ret_percent);

#endif
