/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* recommend --host: what still fits on the host, and which guests to shrink first. */
#ifndef WSS_CMD_RECOMMEND_HOST_H
#define WSS_CMD_RECOMMEND_HOST_H

#include "cmd/cmd.h"
#include "service/host-room.h"

extern const struct wss_report_layout recommend_room_layout;	   /* rows are struct wss_host_room_guest */
extern const struct wss_report_layout recommend_room_total_layout; /* rows are struct wss_host_room */

/* Prints all guests of a finished room, then the host. */
void recommend_room_report(const struct wss_host_room *room, struct wss_report *report);

#endif
