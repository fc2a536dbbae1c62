/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include "measure/lessons.h"

static struct wss_lessons lessons;

/* A window that was predicted to stall the guest for 1 ms and cause 8000 faults. */
static const struct wss_prediction said = {.stall_ns = 1000000, .faults = {true, 8000}};

static void learn(uint64_t stall_ns, uint64_t faults)
{
	const struct wss_amount stall = wss_amount_of(stall_ns), counted = wss_amount_of(faults);

	wss_lessons_learn(&lessons, &said, &stall, &counted);
}

static struct wss_prediction applied(void)
{
	struct wss_prediction prediction = said;

	wss_lessons_apply(&lessons, &prediction);
	return prediction;
}

static void assert_predicts(uint64_t stall_ns, uint64_t faults)
{
	struct wss_prediction prediction = applied();

	assert_int_equal(prediction.stall_ns, stall_ns);
	assert_int_equal(prediction.faults.value, faults);
}

TEST(test_constants_at_first)
{
	lessons = (struct wss_lessons){0};
	assert_predicts(1000000, 8000);
	assert_false(wss_lessons_raise_stall(&lessons));
}

/* A dear window may be one in which virt-wss waited for a processor; a second one is believed. */
TEST(test_no_single_window_makes_it_dearer)
{
	lessons = (struct wss_lessons){0};
	learn(30000000, 8000);
	assert_predicts(1000000, 8000);
	learn(2000000, 1000);
	assert_predicts(2000000, 8000);
	assert_true(wss_lessons_raise_stall(&lessons));
	learn(2000000, 1000);
	assert_predicts(2000000, 1000);
	learn(2000000, 1000);
	learn(2000000, 1000);
	assert_predicts(2000000, 1000);
	learn(90000000, 8000);
	assert_predicts(2000000, 1000);
}

TEST(test_the_last_windows_count)
{
	lessons = (struct wss_lessons){0};
	for (int i = 0; i < 20; i++)
		learn(4000000, 1000);
	learn(500000, 4000);
	learn(500000, 4000);
	assert_predicts(4000000, 1000);
	learn(500000, 4000);
	assert_predicts(500000, 4000);
	assert_false(wss_lessons_raise_stall(&lessons));
}

/* What is learnt is a share, so that it holds for a guest that has more mapped. */
TEST(test_shares)
{
	struct wss_prediction prediction = {.stall_ns = 10000000, .faults = {true, 80000}};

	lessons = (struct wss_lessons){0};
	for (int i = 0; i < WSS_LESSONS_KEPT; i++)
		learn(1500000, 1000);
	wss_lessons_apply(&lessons, &prediction);
	assert_int_equal(prediction.stall_ns, 15000000);
	assert_int_equal(prediction.faults.value, 10000);
}

/* The method says the most faults that there can be; others are the guest's own. */
TEST(test_never_more_faults_than_entries)
{
	lessons = (struct wss_lessons){0};
	for (int i = 0; i < WSS_LESSONS_KEPT; i++)
		learn(1000000, 100000);
	assert_predicts(1000000, 8000);
}

TEST(test_what_is_unknown_teaches_nothing)
{
	const struct wss_amount unknown = {.known = false}, none = wss_amount_of(0);
	const struct wss_prediction nothing = {.stall_ns = 0};
	struct wss_prediction prediction = {.stall_ns = 0};

	lessons = (struct wss_lessons){0};
	for (int i = 0; i < WSS_LESSONS_KEPT; i++) {
		wss_lessons_learn(&lessons, &said, &unknown, &unknown);
		wss_lessons_learn(&lessons, &nothing, &none, &none);
	}
	assert_int_equal(lessons.stall.n, 0);
	assert_int_equal(lessons.faults.n, 0);
	assert_predicts(1000000, 8000);
	wss_lessons_apply(&lessons, &prediction);
	assert_int_equal(prediction.stall_ns, 0);
	assert_false(prediction.faults.known);
	/* A guest that stands still takes none. */
	for (int i = 0; i < WSS_LESSONS_KEPT; i++)
		wss_lessons_learn(&lessons, &said, &none, &none);
	assert_predicts(1000000, 0);
}

int main(void)
{
	return tests_run();
}
