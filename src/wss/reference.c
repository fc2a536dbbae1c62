/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/reference.h"

#include <string.h>

int wss_reference_init(struct wss_reference *reference, uint64_t n_pages)
{
	reference->pages = wss_pageset_new(n_pages);
	reference->taken = wss_pageset_new(n_pages);
	reference->leaving = wss_pageset_new(n_pages);
	return reference->pages && reference->taken && reference->leaving ? 0 : -1;
}

void wss_reference_limit(struct wss_reference *reference, struct wss_pageset_budget *budget)
{
	wss_pageset_limit(reference->pages, budget);
	wss_pageset_limit(reference->taken, budget);
	wss_pageset_limit(reference->leaving, budget);
}

void wss_reference_free(struct wss_reference *reference)
{
	wss_pageset_free(reference->pages);
	wss_pageset_free(reference->taken);
	wss_pageset_free(reference->leaving);
	memset(reference, 0, sizeof(*reference));
}

int64_t wss_reference_touched(struct wss_reference *reference, struct wss_run run)
{
	return wss_pageset_add(reference->pages, run.first, run.n);
}

int wss_reference_ballooned(struct wss_reference *reference, struct wss_run run)
{
	return wss_pageset_add(reference->taken, run.first, run.n) < 0 ? -1 : 0;
}

bool wss_reference_loses(const struct wss_reference *reference)
{
	return wss_pageset_count(reference->taken) || wss_pageset_count(reference->leaving);
}

/*
 * Removes pages from the reference set that the balloon took and the guest did not touch;
 * returns their number.
 */
static int64_t leave_set(struct wss_reference *reference, const struct wss_pageset *taken,
			 const struct wss_pageset *touched)
{
	uint64_t n = wss_pageset_count_without(taken, touched);

	/* In most windows the balloon does not move. */
	if (n && wss_pageset_take_out(reference->pages, taken, touched) < 0)
		return -1;
	return (int64_t)n;
}

int64_t wss_reference_end(struct wss_reference *reference, const struct wss_pageset *touched)
{
	struct wss_pageset *left = reference->leaving;
	int64_t gone = leave_set(reference, left, touched), untouched, again;

	if (gone < 0)
		return -1;
	untouched = leave_set(reference, reference->taken, touched);
	if (untouched < 0)
		return -1;
	again = (int64_t)wss_pageset_count(left) - gone;
	/* Pages that were taken and touched leave with the next window. */
	if (untouched && wss_pageset_keep(reference->taken, touched) < 0)
		return -1;
	wss_pageset_remove(left, 0, wss_pageset_size(left));
	reference->leaving = reference->taken;
	reference->taken = left;
	return again;
}
