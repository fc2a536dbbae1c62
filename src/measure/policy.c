/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/policy.h"

#include "base/units.h"

#define NS_PER_S 1000000000ULL

bool wss_policy_is_empty(const struct wss_policy *policy)
{
	return !policy->opt_out && !policy->minimum_bytes.known && !policy->maximum_bytes.known &&
	       !policy->headroom_percent.known && !policy->period_ns.known;
}

int wss_policy_check(const struct wss_policy *policy, struct wss_error *err)
{
	char minimum[24], maximum[24];

	if (policy->minimum_bytes.known && policy->maximum_bytes.known &&
	    policy->minimum_bytes.value > policy->maximum_bytes.value) {
		wss_size_format(policy->minimum_bytes.value, minimum, sizeof(minimum));
		wss_size_format(policy->maximum_bytes.value, maximum, sizeof(maximum));
		return wss_error_set(err, WSS_ERR_USAGE,
				     "the minimum of %s is above the maximum of %s", minimum,
				     maximum);
	}
	if (policy->headroom_percent.known &&
	    policy->headroom_percent.value > WSS_POLICY_HEADROOM_MAX)
		return wss_error_set(err, WSS_ERR_USAGE, "the headroom is above %d %%",
				     WSS_POLICY_HEADROOM_MAX);
	return 0;
}

bool wss_policy_due(const struct wss_policy *policy, struct wss_amount last, time_t now)
{
	uint64_t age_s;

	if (!policy->period_ns.known || !last.known || (time_t)last.value > now)
		return true;
	age_s = (uint64_t)now - last.value;
	/*
	 * Compares whole seconds, so that a round every five minutes never misses a period of
	 * five minutes by a fraction of a second.
	 */
	return (age_s + 1) * NS_PER_S > policy->period_ns.value;
}
