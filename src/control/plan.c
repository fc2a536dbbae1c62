/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static void set_plan(struct wss_plan *plan, enum wss_plan_action action, const char *reason)
{
	plan->action = action;
	snprintf(plan->reason, sizeof(plan->reason), "%s", reason);
}

/* Sets a refusal, with figures where known. */
static void plan_refuse(const struct wss_look *look, const char *refusal,
			struct wss_plan *plan)
{
	set_plan(plan, WSS_PLAN_REFUSED, refusal);
	if (refusal == wss_balloon_too_early)
		snprintf(plan->reason, sizeof(plan->reason),
			 "too early: %" PRIu64 " of %d windows", look->windows,
			 WSS_SIZING_SAMPLES_MIN);
	else if (refusal == wss_balloon_outdated)
		snprintf(plan->reason, sizeof(plan->reason),
			 "last measured %" PRIu64 " min ago, limit %" PRIu64,
			 look->view.wss_age_s / 60, 2 * look->limits.period_s / 60);
}

void wss_plan_make(const struct wss_look *look, struct wss_plan *ret_plan)
{
	const struct wss_balloon_view *view = &look->view;
	const char *refusal = wss_balloon_refusal(&look->facts);
	uint64_t reserve = wss_balloon_reserve(view), to;

	*ret_plan = (struct wss_plan){.to_bytes = {0}};
	if (refusal) {
		plan_refuse(look, refusal, ret_plan);
		return;
	}
	to = wss_balloon_floor(&look->limits, view, reserve);
	if (to >= view->actual_bytes.value) {
		set_plan(ret_plan, WSS_PLAN_NONE, "the guest needs what it has");
		return;
	}
	ret_plan->gain_bytes = wss_balloon_gain(view, to);
	if (wss_balloon_is_futile(view, to)) {
		set_plan(ret_plan, WSS_PLAN_FUTILE,
			 "the host would gain less than 5 % of the guest (64 MiB at most)");
		return;
	}
	ret_plan->to_bytes = wss_amount_of(to);
	set_plan(ret_plan, WSS_PLAN_SHRINK,
		 to > wss_balloon_history_floor(&look->limits, reserve)
			 ? "limited by the newest window, or by memory that the guest cannot "
			   "give up"
			 : "limited by the 99th percentile with headroom, the miss-rate curve "
			   "or the minimum");
}

const char *wss_plan_action_name(enum wss_plan_action action)
{
	static const char *const names[] = {"shrink", "none", "none", "refused"};

	static_assert(sizeof(names) / sizeof(names[0]) == WSS_PLAN_REFUSED + 1, "a name each");
	return names[action];
}
