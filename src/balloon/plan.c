/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/plan.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"

static void set_plan(struct wss_balloon_plan *plan, enum wss_balloon_plan_action action,
		     const char *reason)
{
	plan->action = action;
	snprintf(plan->reason, sizeof(plan->reason), "%s", reason);
}

/* Sets a refusal, with figures where known. */
static void plan_refuse(const struct wss_look *look, const char *refusal,
			struct wss_balloon_plan *plan)
{
	char age[16];

	set_plan(plan, WSS_BALLOON_PLAN_REFUSED, refusal);
	if (refusal == wss_balloon_too_early)
		snprintf(plan->reason, sizeof(plan->reason), "too early: %" PRIu64 " of %d windows",
			 look->windows, WSS_SIZING_SAMPLES_MIN);
	if (refusal != wss_balloon_outdated)
		return;
	wss_age_format(look->view.wss_age_s, age, sizeof(age));
	snprintf(plan->reason, sizeof(plan->reason), "last measured %s ago", age);
}

/* Returns what keeps the guest from being shrunk further than to this size, its floor. */
static const char *limit_of(const struct wss_look *look, uint64_t floor_bytes,
			    uint64_t reserve_bytes)
{
	struct wss_balloon_view silent = look->view;

	if (floor_bytes <= look->limits.minimum_bytes)
		return "minimum";
	if (floor_bytes <= wss_balloon_history_floor(&look->limits, reserve_bytes))
		return wss_sizing_reason_name(look->reason);
	silent.usable_bytes.known = false;
	return floor_bytes > wss_balloon_floor(&look->limits, &silent, reserve_bytes)
		       ? "memory in use"
		       : "newest window";
}

void wss_balloon_plan_make(const struct wss_look *look, struct wss_balloon_plan *ret_plan)
{
	const struct wss_balloon_view *view = &look->view;
	const char *refusal = wss_balloon_refusal(&look->facts);
	uint64_t reserve = wss_balloon_reserve(view), to;
	char least[16];

	*ret_plan = (struct wss_balloon_plan){.to_bytes = {0}};
	if (refusal) {
		plan_refuse(look, refusal, ret_plan);
		return;
	}
	to = wss_balloon_floor(&look->limits, view, reserve);
	if (to >= view->actual_bytes.value) {
		set_plan(ret_plan, WSS_BALLOON_PLAN_NONE, "needs what it has");
		return;
	}
	ret_plan->gain_bytes = wss_balloon_gain(view, to);
	if (wss_balloon_is_futile(view, to)) {
		wss_size_format(wss_keep_least_gain(view->actual_bytes.value), least,
				sizeof(least));
		ret_plan->action = WSS_BALLOON_PLAN_FUTILE;
		snprintf(ret_plan->reason, sizeof(ret_plan->reason), "would free under %s", least);
		return;
	}
	ret_plan->to_bytes = wss_amount_of(to);
	ret_plan->action = WSS_BALLOON_PLAN_SHRINK;
	snprintf(ret_plan->reason, sizeof(ret_plan->reason), "limit: %s",
		 limit_of(look, to, reserve));
}

const char *wss_balloon_plan_action_name(enum wss_balloon_plan_action action)
{
	static const char *const names[] = {"shrink", "none", "none", "refused"};

	static_assert(sizeof(names) / sizeof(names[0]) == WSS_BALLOON_PLAN_REFUSED + 1,
		      "a name each");
	return names[action];
}
