/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The limits of the process: descriptors and tasks. */
#pragma once

#include "watch/watch.h"

/*
 * Sets options->visits_max to what the limits of descriptors (RLIMIT_NOFILE) and of tasks (RLIMIT_NPROC, and the
 * cgroup's pids.max) allow, 1 at least. Raises the former as far as the process may. If that is less than
 * WSS_WATCH_VISITS_MAX, one line says what to raise, and to how much; another one, if the cgroup's memory.max is too
 * small for options->ages_bytes and all else.
 */
void wss_limits_apply(struct wss_watch_options *options);
