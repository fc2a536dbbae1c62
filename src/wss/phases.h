/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds phases: times at which the graph of the outstanding set is level. */
#ifndef WSS_WSS_PHASES_H
#define WSS_WSS_PHASES_H

#include "base/error.h"
#include "wss/refset.h"

/*
 * Finds the phases among the windows of the viewport, which are marked in result's points, and
 * the steady state: the size of the last phase, if at most one window follows it.
 * WSS_ERR_NO_MEMORY.
 */
int wss_phases_find(struct wss_refset_result *result, struct wss_error *err);

#endif
