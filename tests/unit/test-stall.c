/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "track/stall.h"

static uint64_t predict(uint64_t host_entries, uint64_t kvm_entries, double entry_ns)
{
	const struct wss_stall_load load = { host_entries, kvm_entries, 0 };

	return wss_stall_predict_ns(&load, entry_ns);
}

/* A guest that has touched nothing still costs something; all entries cost the same. */
static void test_formula(void **unused)
{
	uint64_t fixed = predict(0, 0, 2);

	(void)unused;
	assert_true(fixed > 0 && fixed < WSS_NS_PER_MS);
	assert_int_equal(predict(1000000, 0, 2) - fixed, 2000000);
	assert_int_equal(predict(0, 1000000, 2) - fixed, 2000000);
	assert_int_equal(predict(500000, 500000, 2) - fixed, 2000000);
	/* 8 GiB of 4 KiB pages at 2 ns, mapped by both: some 8 ms. */
	assert_in_range(predict(2097152, 2097152, 2), 8000000, 9000000);
}

/* The log's cost depends on the RAM, however much of it is touched. */
static void test_log(void **unused)
{
	struct wss_stall_load load = { 1000, 1000, 0 };
	uint64_t without = wss_stall_predict_ns(&load, 2), with;

	(void)unused;
	load.logged_pages = 16 << 20;
	with = wss_stall_predict_ns(&load, 2);
	assert_true(with > without);
	load.logged_pages *= 4;
	assert_int_equal(wss_stall_predict_ns(&load, 2) - without, 4 * (with - without));
}

static void test_huge_numbers(void **unused)
{
	(void)unused;
	assert_true(predict(UINT64_MAX, UINT64_MAX, 1e9) == (uint64_t)1e18);
	assert_true(predict(UINT64_MAX, 0, 10) == (uint64_t)1e18);
}

/* On a busy host single passes wait for the CPU, whether there is something to walk or not. */
static void test_disturbed_passes(void **unused)
{
	const struct wss_stall_times quiet = { { 100, 100, 100, 100, 100 },
					       { 50100, 50100, 50100, 50100, 50100 } };
	const struct wss_stall_times busy = { { 4000000, 100, 100, 100, 90000 },
					      { 50100, 9000000, 50100, 50000, 50100 } };
	const struct wss_stall_times failed = { .empty_ns = { 0 } };
	const struct wss_stall_times nothing = { { 100, 100, 100, 100, 100 },
						 { 101, 101, 101, 101, 101 } };

	(void)unused;
	assert_true(wss_stall_entry_of(&quiet, 1000) == 50);
	assert_true(wss_stall_entry_of(&busy, 1000) == 50);
	assert_true(wss_stall_entry_of(&failed, 1000) == 10);
	/* No hardware is that fast. */
	assert_true(wss_stall_entry_of(&nothing, 1000) == 1);
}

/* The cost is measured once, and is between 0.01 ns and 0.1 ms an entry. */
static void test_calibration(void **unused)
{
	double entry_ns = wss_stall_entry_ns();
	uint64_t before = wss_clock_now_ns();

	(void)unused;
	assert_true(entry_ns > 0.01);
	assert_true(entry_ns < 1e5);
	for (int i = 0; i < 1000; i++)
		assert_true(wss_stall_entry_ns() == entry_ns);
	assert_true(wss_clock_now_ns() - before < WSS_NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_huge_numbers),
		cmocka_unit_test(test_disturbed_passes),
		cmocka_unit_test(test_calibration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
