/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "track/fault-cost.h"

/* A fault is an exit and a walk: no hardware does it within 50 ns, no host takes 10 ms. */
static void test_measures_a_fault(void **unused)
{
	struct wss_error err = WSS_ERROR_INIT;
	double ns = 0;

	(void)unused;
	if (wss_fault_cost_measure(&ns, &err) < 0) {
		print_message("# %s\n", err.text);
		assert_int_equal(err.code, WSS_ERR_UNSUPPORTED);
		assert_true(wss_fault_cost_ns() == WSS_FAULT_COST_FALLBACK_NS);
		skip();
	}
	print_message("# a fault costs %.0f ns\n", ns);
	assert_true(ns > 50);
	assert_true(ns < 1e7);
}

static void test_is_measured_once(void **unused)
{
	double first = wss_fault_cost_ns();

	(void)unused;
	assert_true(first > 0);
	assert_true(wss_fault_cost_ns() == first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_measures_a_fault),
		cmocka_unit_test(test_is_measured_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
