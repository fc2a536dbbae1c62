/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include "measure/budget.h"

#define MS 1000000ULL
#define S (1000 * MS)
#define PERIOD (60 * S)

static const struct wss_budget budget = WSS_BUDGET_INIT;

static const struct wss_window_cost cheap = {
	.stall_ns = 4 * MS, .faults = 1000, .faults_ns = 2 * MS, .vcpu_ns = 18 * MS};

static struct wss_window_plan plan_of(const struct wss_pace *pace,
				      const struct wss_window_cost *cost)
{
	return wss_pace_plan(pace, &budget, cost, 4, WSS_WINDOW_FINE, PERIOD);
}

static void account(struct wss_pace *pace, double factor)
{
	struct wss_window_cost measured = cheap;

	measured.faults_ns = (uint64_t)(factor * (double)cheap.faults_ns);
	wss_pace_account(pace, &budget, plan_of(pace, &cheap).kind, &cheap, &measured);
}

TEST(test_cost)
{
	struct wss_window_cost cost = wss_window_cost_of(10 * MS, 1000, 2000.0, 4);

	assert_int_equal(cost.stall_ns, 10 * MS);
	assert_int_equal(cost.faults, 1000);
	assert_int_equal(cost.faults_ns, 2 * MS);
	assert_int_equal(cost.vcpu_ns, 42 * MS);
	cost = wss_window_cost_of(UINT64_MAX / 2, UINT64_MAX, 1e9, 512);
	assert_int_equal(cost.vcpu_ns, UINT64_MAX);
}

TEST(test_begins_with_a_canary)
{
	struct wss_pace pace = {0};

	assert_int_equal(plan_of(&pace, &cheap).verdict, WSS_VERDICT_ALLOWED);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_CANARY);
	assert_int_equal(plan_of(&pace, &cheap).period_ns, PERIOD);
	account(&pace, 1.0);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_COARSE);
	account(&pace, 1.4);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_FINE);
	/* Never more than what is wanted. */
	assert_int_equal(wss_pace_plan(&pace, &budget, &cheap, 4, WSS_WINDOW_COARSE, PERIOD).kind,
			 WSS_WINDOW_COARSE);
	wss_pace_reset(&pace);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_CANARY);
}

TEST(test_cheaper_windows_prove_nothing_of_dearer)
{
	struct wss_pace pace = {0};

	account(&pace, 1.0);
	for (int i = 0; i < 5; i++)
		wss_pace_account(&pace, &budget, WSS_WINDOW_CANARY, &cheap, &cheap);
	assert_int_equal(pace.kind, WSS_WINDOW_COARSE);
}

TEST(test_backs_off_within_two_windows)
{
	struct wss_pace pace = {0};

	account(&pace, 1.0);
	account(&pace, 10.0);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_COARSE);
	assert_int_equal(plan_of(&pace, &cheap).period_ns, PERIOD);
	account(&pace, 10.0);
	assert_int_equal(plan_of(&pace, &cheap).kind, WSS_WINDOW_CANARY);
	assert_int_equal(plan_of(&pace, &cheap).period_ns, 2 * PERIOD);
	/* One in between that is not dearer, and the count begins again. */
	account(&pace, 10.0);
	account(&pace, 1.0);
	account(&pace, 10.0);
	assert_int_equal(plan_of(&pace, &cheap).period_ns, 2 * PERIOD);
}

/* A fraction of a millisecond is no matter, however many times as much it is. */
TEST(test_noise_is_not_dearer)
{
	const struct wss_window_cost tiny = {.stall_ns = 1000, .faults = 1, .faults_ns = 2000};
	const struct wss_window_cost noisy = {.stall_ns = MS, .faults = 500, .faults_ns = MS};
	struct wss_pace pace = {0};

	wss_pace_account(&pace, &budget, WSS_WINDOW_CANARY, &tiny, &noisy);
	assert_int_equal(pace.dearer, 0);
	assert_int_equal(pace.kind, WSS_WINDOW_COARSE);
}

/* A budget of longer stalls takes larger differences of stalls for noise, but not of faults. */
TEST(test_what_is_small_depends_on_the_budget)
{
	struct wss_budget generous = budget;
	struct wss_pace pace = {0};
	struct wss_window_cost measured = cheap;

	measured.stall_ns = 10 * cheap.stall_ns;
	generous.stall_ns = 30 * S;
	assert_false(wss_pace_account(&pace, &generous, WSS_WINDOW_CANARY, &cheap, &measured));
	assert_true(wss_pace_account(&pace, &budget, WSS_WINDOW_CANARY, &cheap, &measured));
	measured = cheap;
	measured.faults_ns = 10 * cheap.faults_ns;
	assert_true(wss_pace_account(&pace, &generous, WSS_WINDOW_CANARY, &cheap, &measured));
}

TEST(test_a_stall_counts_as_well)
{
	struct wss_pace pace = {0};
	struct wss_window_cost stalled = cheap;

	stalled.stall_ns = 3 * cheap.stall_ns;
	for (int i = 0; i < 2; i++)
		wss_pace_account(&pace, &budget, WSS_WINDOW_CANARY, &cheap, &stalled);
	assert_int_equal(pace.doublings, 1);
}

TEST(test_gives_up_and_tries_again_the_next_day)
{
	struct wss_pace pace = {0};
	struct wss_window_plan plan;
	unsigned windows = 0;

	for (; !pace.given_up; windows++)
		account(&pace, 10.0);
	assert_int_equal(windows, 2 * (WSS_PACE_DOUBLINGS_MAX + 1));
	plan = plan_of(&pace, &cheap);
	assert_int_equal(plan.verdict, WSS_VERDICT_DEARER);
	assert_int_equal(plan.period_ns, WSS_PACE_RETRY_NS);
	account(&pace, 1.0);
	assert_int_equal(plan_of(&pace, &cheap).verdict, WSS_VERDICT_ALLOWED);
	assert_int_equal(plan_of(&pace, &cheap).period_ns, PERIOD << WSS_PACE_DOUBLINGS_MAX);
}

TEST(test_good_windows_win_the_period_back)
{
	struct wss_pace pace = {.doublings = 2};

	for (int i = 0; i < WSS_PACE_GOOD - 1; i++)
		account(&pace, 1.0);
	assert_int_equal(pace.doublings, 2);
	account(&pace, 1.0);
	assert_int_equal(pace.doublings, 1);
	for (int i = 0; i < WSS_PACE_GOOD; i++)
		account(&pace, 1.0);
	assert_int_equal(pace.doublings, 0);
}

TEST(test_what_the_budget_does_not_cover)
{
	struct wss_pace pace = {0};
	struct wss_window_cost cost = cheap;

	/* 0.5 % of four vCPUs are 20 ms in a second. */
	cost.vcpu_ns = 20 * MS * 300;
	assert_int_equal(plan_of(&pace, &cost).verdict, WSS_VERDICT_ALLOWED);
	assert_int_equal(plan_of(&pace, &cost).period_ns, 300 * S);
	cost.vcpu_ns = 20 * MS * 3601;
	assert_int_equal(plan_of(&pace, &cost).verdict, WSS_VERDICT_VCPU);
	assert_int_equal(plan_of(&pace, &cost).period_ns, PERIOD);
	/* A period that was asked for is no refusal, however long it is. */
	assert_int_equal(wss_pace_plan(&pace, &budget, &cost, 4, WSS_WINDOW_FINE, 7200 * S).verdict,
			 WSS_VERDICT_ALLOWED);
	cost = cheap;
	cost.stall_ns = budget.stall_ns + 1;
	assert_int_equal(plan_of(&pace, &cost).verdict, WSS_VERDICT_STALL);
}

TEST(test_no_budget_allows_nothing)
{
	struct wss_pace pace = {0};
	struct wss_budget none = budget;

	none.guest_share = 0;
	assert_int_equal(wss_pace_plan(&pace, &none, &cheap, 4, WSS_WINDOW_COARSE, PERIOD).verdict,
			 WSS_VERDICT_VCPU);
}

int main(void)
{
	return tests_run();
}
