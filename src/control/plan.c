/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/plan.h"

#include <assert.h>
#include <stddef.h>

static void set_plan(struct wss_plan *plan, enum wss_plan_action action, const char *reason)
{
	plan->action = action;
	plan->reason = reason;
}

void wss_plan_make(const struct wss_look *look, struct wss_plan *ret_plan)
{
	const struct wss_balloon_view *view = &look->view;
	const char *refusal = wss_balloon_refusal(&look->facts);
	uint64_t reserve = wss_balloon_reserve(view), to;

	*ret_plan = (struct wss_plan){ .to_bytes = { 0 } };
	if (!refusal && !view->actual_bytes.known)
		refusal = "the size of its balloon is not known";
	if (refusal) {
		set_plan(ret_plan, WSS_PLAN_REFUSED, refusal);
		return;
	}
	to = wss_balloon_floor(&look->limits, view, reserve);
	if (to >= view->actual_bytes.value) {
		set_plan(ret_plan, WSS_PLAN_NONE, "it needs what it has");
		return;
	}
	ret_plan->gain_bytes = wss_balloon_gain(view, to);
	if (wss_balloon_is_futile(view, to)) {
		set_plan(ret_plan, WSS_PLAN_REFUSED,
			 "the host would gain less than 5 % of the guest (64 MiB at most)");
		return;
	}
	ret_plan->to_bytes = wss_amount_of(to);
	set_plan(ret_plan, WSS_PLAN_SHRINK,
		 to > wss_balloon_history_floor(&look->limits, reserve)
			 ? "the newest window, or what the guest says it could not give up"
			 : "99th percentile and headroom, the miss-rate curve, or the minimum");
}

const char *wss_plan_action_name(enum wss_plan_action action)
{
	static const char *const names[] = { "shrink", "none", "refused" };

	static_assert(sizeof(names) / sizeof(names[0]) == WSS_PLAN_REFUSED + 1, "a name each");
	return names[action];
}
