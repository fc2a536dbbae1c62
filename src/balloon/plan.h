/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A plan: the controller's intention for a guest, according to one look at it. */
#pragma once

#include "balloon/look.h"

enum wss_balloon_plan_action {
	WSS_BALLOON_PLAN_SHRINK,  /* shrink it step by step to to_bytes */
	WSS_BALLOON_PLAN_NONE,	  /* nothing can be taken */
	WSS_BALLOON_PLAN_FUTILE,  /* wait until the host would gain something */
	WSS_BALLOON_PLAN_REFUSED, /* never touch the guest */
};

struct wss_balloon_plan {
	enum wss_balloon_plan_action action;
	char reason[128];
	struct wss_amount to_bytes; /* final size; absent except for WSS_BALLOON_PLAN_SHRINK */
	/* Memory that the host would reclaim; absent if unknown. */
	struct wss_amount gain_bytes;
};

/* Makes the plan from a look that wss_look_journal() and wss_look_join() have completed. */
void wss_balloon_plan_make(const struct wss_look *look, struct wss_balloon_plan *ret_plan);

/* Returns "shrink", "none" (also for WSS_BALLOON_PLAN_FUTILE) or "refused". */
const char *wss_balloon_plan_action_name(enum wss_balloon_plan_action action);
