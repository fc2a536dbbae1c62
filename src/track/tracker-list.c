/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Only the list: a program with a list of its own, such as a test, is linked without this
 * file.
 */
#include "track/methods.h"

#define ADDRESS(name) &wss_tracker_##name,

const struct wss_tracker_ops *const wss_trackers[] = { WSS_METHODS(ADDRESS) NULL };
