/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the controller would do with a guest, from one look at it. */
#ifndef WSS_CONTROL_PLAN_H
#define WSS_CONTROL_PLAN_H

#include "control/look.h"

enum wss_plan_action {
	WSS_PLAN_SHRINK,  /* step by step to to_bytes */
	WSS_PLAN_NONE,	  /* there is nothing to take */
	WSS_PLAN_FUTILE,  /* not before the host would gain something by it */
	WSS_PLAN_REFUSED, /* it would not touch the guest */
};

struct wss_plan {
	enum wss_plan_action action;
	char reason[128];
	struct wss_amount to_bytes; /* the size at the end; absent but for WSS_PLAN_SHRINK */
	struct wss_amount gain_bytes; /* what the host would reclaim; absent if unknown */
};

/* Decides by a look that wss_look_join() has completed. */
void wss_plan_make(const struct wss_look *look, struct wss_plan *ret_plan);

/* "shrink", "none" or "refused"; futile is refused, too. */
const char *wss_plan_action_name(enum wss_plan_action action);

#endif
