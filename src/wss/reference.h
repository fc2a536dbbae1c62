/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reference set of a recording (wss/refset.h) as its replay goes on: everything touched, less
 * what the balloon took. Within a window it is unknown whether the guest touched a page before
 * the balloon took it or after: pages touched in the window are in the set at its end, and
 * leave it with the next one unless they are touched again. The outstanding set is therefore
 * always part of the reference set.
 */
#ifndef WSS_WSS_REFERENCE_H
#define WSS_WSS_REFERENCE_H

#include "wss/pageset.h"
#include "wss/run-list.h"

/*
 * What the balloon took is either in a list, as long as that is short, or in a set, and the
 * other of both is empty.
 */
struct wss_reference {
	struct wss_pageset *pages;   /* the reference set, correct at the end of a window */
	struct wss_pageset *taken;   /* pages taken by the balloon in the current window */
	struct wss_pageset *leaving; /* pages taken in the last window, and touched in it */
	struct wss_run_list taken_runs;
	struct wss_run_list leaving_runs;
};

/* -1 when out of memory; wss_reference_free() is needed then, too. */
int wss_reference_init(struct wss_reference *reference, uint64_t n_pages);

/* Sets the memory budget of its sets while it is empty. */
void wss_reference_limit(struct wss_reference *reference, struct wss_pageset_budget *budget);

void wss_reference_free(struct wss_reference *reference);

/*
 * Adds pages touched in a window. Returns how many of them were not in the set; -1 when out of
 * memory.
 */
int64_t wss_reference_touched(struct wss_reference *reference, struct wss_run run);

/* Records pages that the balloon takes in a window. -1 when out of memory. */
int wss_reference_ballooned(struct wss_reference *reference, struct wss_run run);

/* Whether pages may leave the set at the end of the current window. */
bool wss_reference_loses(const struct wss_reference *reference);

/*
 * Ends a window in which those pages were touched. Returns how many of them were touched in
 * the previous window, too, and taken by the balloon since; -1 when out of memory.
 */
int64_t wss_reference_end(struct wss_reference *reference, const struct wss_pageset *touched);

#endif
