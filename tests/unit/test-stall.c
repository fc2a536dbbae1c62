/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/resource.h>
#include <unistd.h>

#include "tests/testing.h"

#include "base/clock.h"
#include "measure/stall.h"

/* KVM's entries take ten times as long as the host's. */
static uint64_t predict(uint64_t host_entries, uint64_t kvm_entries, double entry_ns)
{
	const struct wss_stall_load load = {host_entries, kvm_entries};

	return wss_stall_predict_ns(&load, entry_ns, 10 * entry_ns);
}

/* A guest that has touched nothing still costs something. */
TEST(test_formula)
{
	uint64_t fixed = predict(0, 0, 2);

	assert_true(fixed > 0 && fixed < WSS_NS_PER_MS);
	assert_int_equal(predict(1000000, 0, 2) - fixed, 2000000);
	assert_int_equal(predict(0, 1000000, 2) - fixed, 20000000);
	assert_int_equal(predict(500000, 500000, 2) - fixed, 11000000);
	/* 8 GiB of 4 KiB pages at 2 ns and 20, mapped by both: some 46 ms. */
	assert_in_range(predict(2097152, 2097152, 2), 46000000, 47000000);
}

/* The log's cost depends on the RAM, however much of it is touched. */
TEST(test_log)
{
	uint64_t once = wss_stall_log_ns(16 << 20, 2);

	assert_int_equal(once, 32 << 20);
	assert_int_equal(wss_stall_log_ns(64 << 20, 2), 4 * once);
	assert_int_equal(wss_stall_log_ns(0, 2), 0);
}

TEST(test_huge_numbers)
{
	assert_true(predict(UINT64_MAX, UINT64_MAX, 1e9) == (uint64_t)1e18);
	assert_true(predict(UINT64_MAX, 0, 10) == (uint64_t)1e18);
	assert_true(wss_stall_log_ns(UINT64_MAX, 10) == (uint64_t)1e18);
}

/* On a busy host single passes wait for the CPU, whether there is something to walk or not. */
TEST(test_disturbed_passes)
{
	const struct wss_stall_times quiet = {{100, 100, 100, 100, 100},
					      {50100, 50100, 50100, 50100, 50100}};
	const struct wss_stall_times busy = {{4000000, 100, 100, 100, 90000},
					     {50100, 9000000, 50100, 50000, 50100}};
	const struct wss_stall_times failed = {.empty_ns = {0}};
	const struct wss_stall_times nothing = {{100, 100, 100, 100, 100},
						{101, 101, 101, 101, 101}};

	assert_true(wss_stall_entry_of(&quiet, 1000) == 50);
	assert_true(wss_stall_entry_of(&busy, 1000) == 50);
	assert_true(wss_stall_entry_of(&failed, 1000) == 10);
	/* No hardware is that fast. */
	assert_true(wss_stall_entry_of(&nothing, 1000) == 1);
}

/* The child's CPU time: by pairs of looks, one pass each, five before the pages are mapped and five after. */
static uint64_t passes_ns(void *unused)
{
	static const uint64_t empty_ns = 1000, full_ns = 1000 + 50 * 16384, disturbed_ns = 9000000;
	static uint64_t now_ns;
	static unsigned looks;

	if (looks++ % 2 == 1)
		now_ns += looks == 4 || looks == 18 ? disturbed_ns
			  : looks <= 10		    ? empty_ns
						    : full_ns;
	return now_ns;
}

/* Time goes back once the child's deadline has been set: it may take five minutes instead of a second. */
static uint64_t set_back_now_ns(void *unused)
{
	static unsigned looks;

	return looks++ ? 0 : 300 * WSS_NS_PER_S;
}

/* The cost is measured once. */
TEST(test_calibration)
{
	static const struct wss_clock_source source = {.now_ns = set_back_now_ns,
						       .thread_ns = passes_ns};
	/* Some kernels have no clear_refs; the guess then is on the safe side. */
	double entry_ns = access("/proc/self/clear_refs", F_OK) == 0 ? 50 : 10;
	struct rusage before, after;

	wss_clock_inject(&source);
	assert_true(wss_stall_entry_ns() == entry_ns);
	wss_clock_inject(NULL);
	getrusage(RUSAGE_CHILDREN, &before);
	for (int i = 0; i < 1000; i++)
		assert_true(wss_stall_entry_ns() == entry_ns);
	getrusage(RUSAGE_CHILDREN, &after);
	/* A child that measures has page faults. */
	assert_int_equal(after.ru_minflt, before.ru_minflt);
}

int main(void)
{
	return tests_run();
}
