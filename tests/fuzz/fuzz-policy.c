/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The policy in a domain's metadata: whoever may edit the domain may have written it. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "measure/policy-element.h"
#include "sizing/sizing.h"

static bool same(struct wss_amount a, struct wss_amount b)
{
	return a.known == b.known && (!a.known || a.value == b.value);
}

/* A policy that was read can be written, and reads back the same, to a microsecond. */
static void check_stable(const struct wss_policy *policy)
{
	wss_auto_free char *xml = NULL;
	struct wss_policy again;

	fuzz_require(wss_policy_write(policy, &xml, NULL) == 0);
	fuzz_require(wss_policy_read(xml, &again, NULL) == 0);
	fuzz_require(again.opt_out == policy->opt_out);
	fuzz_require(same(again.minimum_bytes, policy->minimum_bytes));
	fuzz_require(same(again.maximum_bytes, policy->maximum_bytes));
	fuzz_require(same(again.headroom_percent, policy->headroom_percent));
	fuzz_require(again.period_ns.known == policy->period_ns.known);
	fuzz_require(!again.period_ns.known ||
		     again.period_ns.value / 1000000 == policy->period_ns.value / 1000000 ||
		     again.period_ns.value / 1000000 + 1 == policy->period_ns.value / 1000000);
}

static void policy_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *xml = fuzz_text(data, size);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_policy policy;
	struct wss_sizing_rule rule = {.percentile = 0.99};
	int r = wss_policy_read(xml, &policy, &err);

	fuzz_check(r, &err);
	if (r < 0)
		return;
	fuzz_require(!policy.headroom_percent.known ||
		     policy.headroom_percent.value <= WSS_POLICY_HEADROOM_MAX);
	check_stable(&policy);
	wss_policy_due(&policy, wss_amount_of(1795197600), 1795197601);
	wss_policy_due(&policy, wss_amount_of(0), 1795197601);
	wss_sizing_apply_policy(&rule, &policy, (struct wss_amount){0});
}

const struct fuzz_target fuzz_target = {
	.name = "policy",
	.run = policy_run,
	.max_bytes = 8192,
	.mutations = 40000,
};
