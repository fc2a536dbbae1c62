/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room cold/: how long ago each page of a guest was touched, as the windows of the service
 * show.
 *
 *   aging.h          one guest
 *   coldness.h       the time of the last touch of each page, within a budget of memory
 *   cold-timeline.h  what these times mean: how much memory has been idle for how long, with bounds
 *   ages.h           the file that keeps them, "ages/UUID" beside the history
 *
 * In: the windows of a guest (struct wss_aging_window) from watch/watch-visit.c. Out: struct
 * wss_cold_report, for the history, the metrics and the pages of the service; the command cold
 * reads the files.
 *
 * Windows are added in the threads that measure; any thread may ask for a report. Ages are those of
 * one run of the guest: when its process or its RAM has changed, they start again from nothing. After
 * a reboot within the same process the watch takes another aging.
 *
 * Begin with cold-timeline.h. A new figure of a report belongs to cold-timeline.c; what else is to
 * survive a restart goes into ages.c, with a new version of the file.
 */
#pragma once
