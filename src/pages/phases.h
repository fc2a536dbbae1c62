/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds phases: times at which the graph of the outstanding set is level. */
#pragma once

#include "pages/refset.h"

/*
 * Finds the phases among the windows of the viewport, which are marked in result's points, and
 * the steady state: the size of the last phase, if at most one window follows it.
 */
void wss_phases_find(struct wss_refset_result *result);
