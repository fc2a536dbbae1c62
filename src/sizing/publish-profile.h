/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The profile of a guest from its newest window and its history. */
#pragma once

#include <time.h>

#include "history/history.h"
#include "measure/profile.h"
#include "sizing/sizing.h"

/* Adds the figures of the history, of that many samples since first: percentiles, peak and confidence. */
void wss_profile_add_sizing(struct wss_profile *profile, uint64_t samples, time_t first,
			    const struct wss_sizing *sizing);

/*
 * Makes a profile from a measured sample and the history of windows of the same kind in the
 * last seven days. If history is NULL or cannot be read, the profile has only the figures of
 * this window.
 */
void wss_publish_profile(struct wss_history *history, const struct wss_sample *sample,
			 const struct wss_policy *policy, struct wss_profile *ret_profile);
