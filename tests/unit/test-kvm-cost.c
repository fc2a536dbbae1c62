/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include <poll.h>

#include "measure/kvm-cost.h"
#include "tests/divert.h"

static int (*real_poll)(struct pollfd *fds, nfds_t n, int timeout_ms);

/* The child may take its time, as under valgrind on a busy machine. */
static int patient_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return real_poll(fds, n, timeout_ms > 0 ? 300000 : timeout_ms);
}

/* A fault is an exit and a walk: no hardware does it within 50 ns, no host takes 10 ms. */
TEST(test_measures_what_mappings_cost)
{
	const struct wss_kvm_cost fallback = WSS_KVM_COST_FALLBACK;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_kvm_cost cost;

	if (wss_kvm_cost_measure(&cost, &err) < 0) {
		print_message("# %s\n", err.text);
		assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
		assert_true(wss_kvm_cost()->fault_ns == fallback.fault_ns);
		assert_true(wss_kvm_cost()->entry_ns == fallback.entry_ns);
		skip();
	}
	print_message("# a fault costs %.0f ns, dropping an entry %.1f ns\n", cost.fault_ns,
		      cost.entry_ns);
	assert_true(cost.fault_ns > 50);
	assert_true(cost.fault_ns < 1e7);
	assert_true(cost.entry_ns > 1);
	assert_true(cost.entry_ns < cost.fault_ns);
}

TEST(test_is_measured_once)
{
	double first = wss_kvm_cost()->fault_ns;

	assert_true(first > 0);
	assert_true(wss_kvm_cost()->fault_ns == first);
}

int main(void)
{
	divert(poll, patient_poll, &real_poll);
	return tests_run();
}
