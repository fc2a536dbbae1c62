/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The policy of a guest: its operator's decisions, stored in the domain's metadata or, of
 * guests without any, in files. Only the operator writes it, never a measurement. Plain data; undecided values are absent.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "measure/sample.h"

#define WSS_POLICY_VERSION 1
#define WSS_POLICY_HEADROOM_MAX 1000
#define WSS_POLICY_PERIOD_MAX_NS (366 * 24 * 3600 * WSS_NS_PER_S)

struct wss_policy {
	bool opt_out; /* never measure it, never change it */
	struct wss_amount minimum_bytes;
	struct wss_amount maximum_bytes;
	/* On top of the working set; at most WSS_POLICY_HEADROOM_MAX. */
	struct wss_amount headroom_percent;
	struct wss_amount period_ns; /* shortest time between two windows in rounds */
};

/* Whether nothing is decided, which is equivalent to having no policy. */
bool wss_policy_is_empty(const struct wss_policy *policy);

/* Fails with WSS_ERR_USAGE if the minimum is above the maximum, or the headroom above its limit. */
int wss_policy_check(const struct wss_policy *policy, struct wss_error *err);

/*
 * Whether a guest that was last measured at this time (absent: never) is due. A time in the
 * future, from before the clock was set back, counts as long ago.
 */
bool wss_policy_due(const struct wss_policy *policy, struct wss_amount last, time_t now);
