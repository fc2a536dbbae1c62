/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reference set of a recording (pages/refset.h) during its replay: everything touched, minus
 * what the balloon took. It is unknown whether the guest touched a page before or after the
 * balloon took it in the same window, so pages touched in the window are in the set at its
 * end, and leave it with the next window unless they are touched again. The outstanding set is
 * therefore always part of the reference set.
 */
#pragma once

#include "pages/pageset.h"
#include "pages/run-list.h"

/*
 * Pages that the balloon took are in a list while that is short, else in a set; the other one
 * is empty.
 */
struct wss_reference {
	struct wss_pageset *pages;   /* the reference set, correct at the end of a window */
	struct wss_pageset *taken;   /* pages taken by the balloon in the current window */
	struct wss_pageset *leaving; /* pages taken in the last window, and touched in it */
	struct wss_run_list taken_runs;
	struct wss_run_list leaving_runs;
};

/* Returns 0, or -1 when out of memory; call wss_reference_free() in either case. */
int wss_reference_init(struct wss_reference *reference, uint64_t n_pages);

/* Sets the memory budget for its sets, which must be empty. */
void wss_reference_limit(struct wss_reference *reference, struct wss_pageset_budget *budget);

void wss_reference_free(struct wss_reference *reference);

/*
 * Adds pages touched in a window. Returns the number of those that were not in the set; -1
 * when out of memory.
 */
int64_t wss_reference_touched(struct wss_reference *reference, struct wss_run run);

/* Records pages that the balloon takes in a window. -1 when out of memory. */
int wss_reference_ballooned(struct wss_reference *reference, struct wss_run run);

/* Whether any pages may leave the set at the end of the current window. */
bool wss_reference_loses(const struct wss_reference *reference);

/*
 * Ends a window in which the pages of touched were touched. Returns the number of those that
 * were touched in the previous window, too, and taken by the balloon since; -1 when out of
 * memory.
 */
int64_t wss_reference_end(struct wss_reference *reference, const struct wss_pageset *touched);
