/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reference set of a recording (wss/refset.h), as its replay goes on: what has been touched,
 * less what the balloon took. Within a window nobody knows whether the guest touched a page
 * before the balloon took it or after: what was touched in the window is in the set at its end,
 * and leaves it with the next one, unless it is touched again. So what is outstanding is always
 * part of the reference set.
 */
#ifndef WSS_WSS_REFERENCE_H
#define WSS_WSS_REFERENCE_H

#include "wss/pageset.h"

struct wss_reference {
	struct wss_pageset *pages;   /* the reference set, right at the end of a window */
	struct wss_pageset *taken;   /* by the balloon, in the window under way */
	struct wss_pageset *leaving; /* taken in the last window, and touched in it */
};

/* -1 when memory is short; wss_reference_free() is then due as well. */
int wss_reference_init(struct wss_reference *reference, uint64_t n_pages);

/* While it is empty: what its sets may take. */
void wss_reference_limit(struct wss_reference *reference, struct wss_pageset_budget *budget);

void wss_reference_free(struct wss_reference *reference);

/* What comes in a window: how many of the pages were not in the set; -1 when memory is short. */
int64_t wss_reference_touched(struct wss_reference *reference, struct wss_run run);

/* What the balloon takes in a window. -1 when memory is short. */
int wss_reference_ballooned(struct wss_reference *reference, struct wss_run run);

/* Whether pages may leave the set at the end of the window under way. */
bool wss_reference_loses(const struct wss_reference *reference);

/*
 * The end of a window, in which those pages were touched: how many of them were touched in the
 * window before as well, and taken by the balloon since. -1 when memory is short.
 */
int64_t wss_reference_end(struct wss_reference *reference, const struct wss_pageset *touched);

#endif
