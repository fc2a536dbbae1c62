/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What still fits on this host, and which guests to shrink first, as a table. */
#pragma once

#include "fleet/host-room.h"
#include "show/report.h"

extern const struct wss_report_layout
	wss_host_room_layout; /* rows are struct wss_host_room_guest */
extern const struct wss_report_layout
	wss_host_room_total_layout; /* rows are struct wss_host_room */

/* Prints all guests of a finished room, then the host. */
void wss_host_room_report(const struct wss_host_room *room, struct wss_report *report);
