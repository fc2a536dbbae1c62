/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include "base/clock.h"
#include "measure/kvm-cost.h"

/*
 * The child may take five minutes instead of a second, as under valgrind on a busy machine: time goes back once its
 * deadline has been set.
 */
static uint64_t set_back_now_ns(void *unused)
{
	static unsigned looks;

	return looks++ ? 0 : 300 * WSS_NS_PER_S;
}

/*
 * The child's CPU time: by pairs of looks, what one after the other takes. All is measured five times, the first time
 * with caches that others have filled.
 */
static uint64_t steps_ns(void *unused)
{
	static const uint64_t steps[] = {
		1,		 /* a run that maps all 512 pages */
		700 + 512 * 40,	 /* they are dropped */
		700,		 /* there is nothing to drop */
		300 + 64 * 1500, /* a run that faults on every eighth page */
		300,		 /* one that does not */
	};
	static uint64_t now_ns;
	static unsigned looks;

	if (looks++ % 2 == 1)
		now_ns += steps[(looks / 2 - 1) % 5] * (looks <= 10 ? 7 : 1);
	return now_ns;
}

TEST(test_measures_what_mappings_cost)
{
	const struct wss_kvm_cost fallback = WSS_KVM_COST_FALLBACK;
	struct wss_error err = WSS_ERROR_INIT;
	static const struct wss_clock_source patient = {.now_ns = set_back_now_ns,
							.thread_ns = steps_ns};
	struct wss_kvm_cost cost;
	int r;

	wss_clock_inject(&patient);
	r = wss_kvm_cost_measure(&cost, &err);
	wss_clock_inject(NULL);
	if (r < 0) {
		print_message("# %s\n", err.text);
		assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
		assert_true(wss_kvm_cost()->fault_ns == fallback.fault_ns);
		assert_true(wss_kvm_cost()->entry_ns == fallback.entry_ns);
		skip();
	}
	assert_true(cost.fault_ns == 1500);
	assert_true(cost.entry_ns == 40);
}

TEST(test_is_measured_once)
{
	double first = wss_kvm_cost()->fault_ns;

	assert_true(first > 0);
	assert_true(wss_kvm_cost()->fault_ns == first);
}

int main(void)
{
	return tests_run();
}
