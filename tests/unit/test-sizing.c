/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hosttest.h"

#include <sys/time.h>

#include "base/number.h"
#include "sizing/sizing.h"

#define MIB (1ULL << 20)

static const struct wss_sizing_rule rule = {
	.percentile = 0.95, .headroom_percent = 20, .minimum_bytes = 64 * MIB};
static const struct wss_policy no_policy;
static const struct wss_sizing_state unknown;

static void add(struct wss_summary *summary, uint64_t bytes, time_t when, bool doubtful)
{
	struct wss_sample sample = {.wall = when,
				    .method = "mmu",
				    .quality = doubtful ? WSS_QUALITY_DEGRADED : WSS_QUALITY_OK,
				    .wss_bytes = wss_amount_of(bytes),
				    .low_bytes = wss_amount_of(bytes / 2)};

	/* All memory is touched early in the window. */
	wss_sample_curve_add(&sample, 1000000, bytes);
	wss_sample_curve_add(&sample, 4000000000, bytes);
	assert_int_equal(wss_summary_add(summary, &sample), 0);
}

/* The known numbers: 59 and 299 windows for the largest, 93 for the last but one at 95 %. */
TEST(test_ranks)
{
	assert_int_equal(wss_sizing_rank(0, 0.95), 0);
	assert_int_equal(wss_sizing_rank(58, 0.95), 0);
	assert_int_equal(wss_sizing_rank(59, 0.95), 59);
	assert_int_equal(wss_sizing_rank(92, 0.95), 92);
	assert_int_equal(wss_sizing_rank(93, 0.95), 92);
	assert_int_equal(wss_sizing_rank(298, 0.99), 0);
	assert_int_equal(wss_sizing_rank(299, 0.99), 299);
	assert_int_equal(wss_sizing_rank(5, 0.5), 5);
	/* Large numbers approach the percentile from above: mean + 1.645 sigma. */
	assert_in_range(wss_sizing_rank(100000, 0.95), 95000, 95000 + 120);
	assert_in_range(wss_sizing_rank(100000, 0.99), 99000, 99000 + 60);
}

/* Too many to be counted; the exact ranks are known, and the result is never below them. */
TEST(test_ranks_of_many)
{
	static const struct {
		uint64_t n;
		double p;
		uint64_t rank;
	} known[] = {
		{1000001, 0.5, 500824},	   {1000001, 0.99, 990165},    {1000001, 0.999, 999054},
		{20000000, 0.5, 10003679}, {20000000, 0.95, 19001604}, {20000000, 0.999, 19980233},
	};
	/* Counting would take minutes, and centuries; what takes a minute of processor time ends the program. */
	const struct itimerval limit = {.it_value.tv_sec = 60}, none = {.it_value.tv_sec = 0};
	uint64_t rank;

	setitimer(ITIMER_VIRTUAL, &limit, NULL);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		rank = wss_sizing_rank(known[i].n, known[i].p);
		assert_in_range(rank, known[i].rank, known[i].rank + 2);
	}
	rank = wss_sizing_rank(300000000000, 0.99);
	assert_in_range(rank, 297000000000, 297000100000);
	assert_true(wss_sizing_rank(UINT64_MAX, 0.999) > 0);
	setitimer(ITIMER_VIRTUAL, &none, NULL);
}

/* The rank covers the percentile in 95 of 100 draws, whatever the distribution. */
TEST(test_rank_covers)
{
	uint64_t state = 42;
	unsigned covered = 0, draws = 2000, n = 200;
	uint64_t rank = wss_sizing_rank(n, 0.95);

	for (unsigned i = 0; i < draws; i++) {
		unsigned below = 0;

		/* The value of that rank is above the percentile if fewer than rank are below. */
		for (unsigned k = 0; k < n; k++) {
			state = state * 6364136223846793005ULL + 1442695040888963407ULL;
			below += (double)(state >> 11) / 9007199254740992.0 < 0.95;
		}
		covered += below < rank;
	}
	assert_true(covered >= draws * 94 / 100);
}

TEST(test_too_early)
{
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 0; i < WSS_SIZING_SAMPLES_MIN - 1; i++)
		add(&summary, MIB, i, false);
	for (time_t i = 0; i < 50; i++)
		add(&summary, MIB, i, true);
	wss_sizing_compute(&summary, &rule, &no_policy, &unknown, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_NONE);
	assert_false(sizing.recommended_bytes.known);
	assert_false(sizing.p50_bytes.known);
	assert_false(sizing.reclaimable_bytes.known);
	wss_summary_free(&summary);
}

TEST(test_few_windows)
{
	struct wss_sizing_state state = {.held_bytes = wss_amount_of(900 * MIB),
					 .balloon_bytes = wss_amount_of(1024 * MIB)};
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 1; i <= 10; i++)
		add(&summary, (uint64_t)i * 20 * MIB, i, false);
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_true(sizing.from_peak);
	assert_int_equal(sizing.base_bytes.value, 200 * MIB);
	assert_int_equal(sizing.recommended_bytes.value, 240 * MIB);
	assert_int_equal(sizing.reclaimable_bytes.value, 660 * MIB);
	assert_in_range(sizing.p50_bytes.value, 100 * MIB, 102 * MIB);
	wss_summary_free(&summary);
}

TEST(test_enough)
{
	const struct wss_learned proved = {
		.known = true, .target_bytes = 200 * MIB, .confidence = WSS_CONFIDENCE_HIGH};
	struct wss_sizing_state small = {.held_bytes = wss_amount_of(100 * MIB)};
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	/* One burst in a thousand does not size the guest. */
	for (time_t i = 0; i < 1000; i++)
		add(&summary, i == 500 ? 3000 * MIB : 200 * MIB, i * 60, false);
	wss_sizing_compute(&summary, &rule, &no_policy, &small, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_false(sizing.from_peak);
	assert_in_range(sizing.base_bytes.value, 200 * MIB, 204 * MIB);
	assert_in_range(sizing.recommended_bytes.value, 240 * MIB, 245 * MIB);
	assert_int_equal(sizing.peak_bytes.value, 3000 * MIB);
	assert_int_equal(sizing.reclaimable_bytes.value, 0);
	/* Its confidence is what the size has proved. */
	small.learned = &proved;
	wss_sizing_compute(&summary, &rule, &no_policy, &small, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_HIGH);
	small.held_bytes.known = false;
	wss_sizing_compute(&summary, &rule, &no_policy, &small, &sizing);
	assert_false(sizing.reclaimable_bytes.known);
	/* Many degraded windows, and larger ones: confidence falls, and the peak includes them. */
	for (time_t i = 0; i < 300; i++)
		add(&summary, 8000 * MIB, i, true);
	wss_sizing_compute(&summary, &rule, &no_policy, &small, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_int_equal(sizing.peak_bytes.value, 4000 * MIB);
	wss_summary_free(&summary);
}

TEST(test_policy)
{
	struct wss_policy policy = {.minimum_bytes = wss_amount_of(512 * MIB),
				    .headroom_percent = wss_amount_of(100)};
	struct wss_sizing_rule mine = rule;
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 0; i < 10; i++)
		add(&summary, 200 * MIB + 1, i, false);
	wss_sizing_apply_policy(&mine, &policy, wss_amount_of(600 * MIB));
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 512 * MIB);
	mine.minimum_bytes = 0;
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 401 * MIB);
	policy.maximum_bytes = wss_amount_of(300 * MIB + 5);
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 300 * MIB + 5);
	wss_summary_free(&summary);
}

/* A default minimum asks for no more than half of a small guest; one that was asked for is kept. */
TEST(test_default_minimum)
{
	struct wss_sizing_rule mine = {.minimum_bytes = 256 * MIB, .minimum_is_default = true};
	struct wss_policy policy = {.opt_out = false};

	wss_sizing_apply_policy(&mine, &policy, (struct wss_amount){0});
	assert_int_equal(mine.minimum_bytes, 256 * MIB);
	wss_sizing_apply_policy(&mine, &policy, wss_amount_of(512 * MIB));
	assert_int_equal(mine.minimum_bytes, 256 * MIB);
	wss_sizing_apply_policy(&mine, &policy, wss_amount_of(128 * MIB));
	assert_int_equal(mine.minimum_bytes, 64 * MIB);
	mine = (struct wss_sizing_rule){.minimum_bytes = 256 * MIB};
	wss_sizing_apply_policy(&mine, &policy, wss_amount_of(128 * MIB));
	assert_int_equal(mine.minimum_bytes, 256 * MIB);
	mine.minimum_is_default = true;
	policy.minimum_bytes = wss_amount_of(512 * MIB);
	wss_sizing_apply_policy(&mine, &policy, wss_amount_of(128 * MIB));
	assert_int_equal(mine.minimum_bytes, 512 * MIB);
}

/* Small changes of a curve seldom change a size. */
TEST(test_coarse)
{
	assert_int_equal(wss_sizing_coarse(0), 0);
	assert_int_equal(wss_sizing_coarse(1), MIB);
	assert_int_equal(wss_sizing_coarse(63 * MIB + 1), 64 * MIB);
	assert_int_equal(wss_sizing_coarse(1024 * MIB), 1024 * MIB);
	assert_int_equal(wss_sizing_coarse(1024 * MIB + 1), 1056 * MIB);
	assert_int_equal(wss_sizing_coarse(UINT64_MAX), UINT64_MAX);
	for (uint64_t bytes = 64 * MIB; bytes < (1ULL << 50); bytes += bytes / 7) {
		assert_in_range(wss_sizing_coarse(bytes), bytes, bytes + bytes / 32);
		assert_int_equal(wss_sizing_coarse(wss_sizing_coarse(bytes)),
				 wss_sizing_coarse(bytes));
	}
}

/* Whatever is largest binds the size, and the next largest is named. */
TEST(test_reasons)
{
	struct wss_learned learned = {.known = true,
				      .target_bytes = 210 * MIB,
				      .quantile_bytes = 200 * MIB,
				      .peak_bytes = 230 * MIB,
				      .confidence = WSS_CONFIDENCE_LOW};
	struct wss_sizing_state state = {.learned = &learned};
	struct wss_policy policy = {.opt_out = false};
	struct wss_sizing_rule mine = rule;
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 0; i < 10; i++)
		add(&summary, 200 * MIB, i, false);
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.reason, WSS_SIZING_PEAK);
	wss_sizing_compute(&summary, &mine, &policy, &state, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 210 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_PERCENTILE);
	learned.peak_bytes = learned.quantile_bytes;
	wss_sizing_compute(&summary, &mine, &policy, &state, &sizing);
	assert_int_equal(sizing.reason, WSS_SIZING_PEAK);
	mine.minimum_bytes = 300 * MIB;
	wss_sizing_compute(&summary, &mine, &policy, &state, &sizing);
	assert_int_equal(sizing.reason, WSS_SIZING_MINIMUM);
	policy.maximum_bytes = wss_amount_of(250 * MIB);
	wss_sizing_compute(&summary, &mine, &policy, &state, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 250 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_MAXIMUM);
	wss_summary_free(&summary);
}

/* A size that rounding makes larger says so, with the size before; the policy's maximum stays final. */
TEST(test_rounding)
{
	struct wss_rounding rounding = {.step_bytes = 256 * MIB};
	struct wss_policy policy = {.opt_out = false};
	struct wss_sizing_rule mine = rule;
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	mine.headroom_percent = 20;
	for (time_t i = 0; i < 10; i++)
		add(&summary, 400 * MIB, i, false);
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_false(sizing.unrounded_bytes.known);
	mine.rounding = &rounding;
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 512 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_ROUNDING);
	assert_int_equal(sizing.unrounded_bytes.value, 480 * MIB);
	policy.maximum_bytes = wss_amount_of(500 * MIB);
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 500 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_MAXIMUM);
	policy.maximum_bytes.known = false;
	rounding.step_bytes = 120 * MIB;
	wss_sizing_compute(&summary, &mine, &policy, &unknown, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 480 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_PEAK);
	wss_summary_free(&summary);
}

static void rounding_parse(struct wss_rounding *rounding, const char *text, const char *error)
{
	struct wss_error err = WSS_ERROR_INIT;
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", text);
	*rounding = (struct wss_rounding){.n = 0};
	assert_int_equal(wss_rounding_parse(rounding, copy, &err), error ? -1 : 0);
	if (!error)
		return;
	assert_non_null(strstr(err.text, error));
	wss_rounding_free(rounding);
}

TEST(test_flavours)
{
	struct wss_sizing_rule mine = rule;
	struct wss_summary summary = {0};
	struct wss_rounding rounding;
	struct wss_sizing sizing;

	rounding_parse(&rounding,
		       "# sizes\n\nlarge 2GiB # the largest\r\nsmall 512MiB\n1GiB\nsame 512MiB",
		       NULL);
	assert_int_equal(rounding.n, 3);
	assert_int_equal(wss_rounding_up(&rounding, 1).value, 512 * MIB);
	assert_int_equal(wss_rounding_up(&rounding, 512 * MIB).value, 512 * MIB);
	assert_int_equal(wss_rounding_up(&rounding, 512 * MIB + 1).value, 1024 * MIB);
	assert_false(wss_rounding_up(&rounding, 2048 * MIB + 1).known);
	assert_string_equal(wss_rounding_name(&rounding, 512 * MIB), "small");
	assert_null(wss_rounding_name(&rounding, 1024 * MIB));
	assert_null(wss_rounding_name(&rounding, 600 * MIB));
	mine.rounding = &rounding;
	for (time_t i = 0; i < 10; i++)
		add(&summary, 3000 * MIB, i, false);
	wss_sizing_compute(&summary, &mine, &no_policy, &unknown, &sizing);
	assert_true(sizing.outgrows);
	assert_int_equal(sizing.recommended_bytes.value, sizing.unrounded_bytes.value);
	assert_int_equal(sizing.reason, WSS_SIZING_PEAK);
	wss_summary_free(&summary);
	wss_rounding_free(&rounding);
	rounding_parse(&rounding, "", "no flavour");
	rounding_parse(&rounding, "# none\n", "no flavour");
	rounding_parse(&rounding, "1GiB\nsmall 512\n", "line 2: ");
	rounding_parse(&rounding, "small 512MiB 1\n", "line 1: '1' is one word too many");
	rounding_parse(&rounding, "0", "larger than 0");
}

/* A guest that touches little is not sized below what it cannot give up, nor where that is unknown. */
TEST(test_floor)
{
	struct wss_sizing_state state = {.held_bytes = wss_amount_of(900 * MIB),
					 .balloon_bytes = wss_amount_of(1024 * MIB)};
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 0; i < 10; i++)
		add(&summary, 200 * MIB, i, false);
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.need_bytes.value, 240 * MIB);
	assert_int_equal(sizing.recommended_bytes.value, 240 * MIB);
	/* With a fifth of the set on top, or a tenth of all that it holds. */
	state.floor =
		(struct wss_floor){.source = WSS_FLOOR_STATISTICS, .bytes = 300 * MIB, .time = 1};
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.need_bytes.value, 240 * MIB);
	assert_int_equal(sizing.recommended_bytes.value, 340 * MIB);
	assert_int_equal(sizing.reclaimable_bytes.value, 560 * MIB);
	assert_int_equal(sizing.reason, WSS_SIZING_IN_USE);
	state.floor.bytes = 600 * MIB;
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 660 * MIB);
	/* It has run with so little. */
	state.floor.source = WSS_FLOOR_BALLOONING;
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 600 * MIB);
	state.floor = (struct wss_floor){.source = WSS_FLOOR_UNKNOWN};
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_int_equal(sizing.need_bytes.value, 240 * MIB);
	assert_false(sizing.recommended_bytes.known);
	assert_false(sizing.wanted_bytes.known);
	assert_false(sizing.reclaimable_bytes.known);
	wss_summary_free(&summary);
}

/* A guest whose set fills its memory may want more: whatever else binds, nothing is taken from it. */
TEST(test_full_memory)
{
	const struct wss_policy maximum = {.maximum_bytes = wss_amount_of(512 * MIB)};
	const struct wss_learned small = {
		.known = true, .target_bytes = 300 * MIB, .confidence = WSS_CONFIDENCE_HIGH};
	struct wss_sizing_state state = {.held_bytes = wss_amount_of(1024 * MIB),
					 .balloon_bytes = wss_amount_of(1024 * MIB),
					 .maximum_bytes = wss_amount_of(1024 * MIB),
					 .in_use_bytes = wss_amount_of(100 * MIB),
					 .reserve_bytes = wss_amount_of(40 * MIB),
					 .learned = &small};
	struct wss_summary summary = {0};
	struct wss_sizing sizing;

	for (time_t i = 0; i < 10; i++)
		add(&summary, 930 * MIB, i, false);
	wss_sizing_compute(&summary, &rule, &no_policy, &state, &sizing);
	assert_false(sizing.filled_bytes.known);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_HIGH);
	add(&summary, 936 * MIB, 10, false);
	for (int i = 0; i < 2; i++) {
		wss_sizing_compute(&summary, &rule, i ? &maximum : &no_policy, &state, &sizing);
		assert_int_equal(sizing.filled_bytes.value, 1024 * MIB);
		assert_int_equal(sizing.recommended_bytes.value, i ? 512 * MIB : 1064 * MIB);
		assert_int_equal(sizing.reason, i ? WSS_SIZING_MAXIMUM : WSS_SIZING_FILLS);
		assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
		assert_int_equal(sizing.reclaimable_bytes.value, 0);
	}
	wss_summary_free(&summary);
}

TEST(test_fit)
{
	struct wss_fit_result result;
	struct wss_fit fit;

	assert_int_equal(wss_fit_init(&fit, 1000, 1000 + 400 * 3600), 0);
	assert_int_equal(wss_fit_result(&fit, 0.95, &result), 0);
	assert_false(result.bytes.known);
	/* Two guests whose peaks never meet, one that is never measured. */
	for (int hour = 0; hour < 400; hour++)
		wss_fit_hour(&fit, 3600 * hour, hour % 2 ? 100 : 900);
	wss_fit_hour(&fit, -1, 5000);
	wss_fit_hour(&fit, 10000 * 3600, 5000);
	wss_fit_guest(&fit, 900);
	for (int hour = 0; hour < 400; hour++)
		wss_fit_hour(&fit, 3600 * hour, hour % 2 ? 900 : 100);
	wss_fit_guest(&fit, 900);
	wss_fit_guest(&fit, 50);
	assert_int_equal(wss_fit_result(&fit, 0.95, &result), 0);
	assert_int_equal(result.hours, 400);
	assert_false(result.from_peak);
	assert_int_equal(result.bytes.value, 1050);
	/* Another guest that was measured in one hour only: its peak counts in the others. */
	wss_fit_hour(&fit, 3600, 10);
	wss_fit_guest(&fit, 2000);
	assert_int_equal(wss_fit_result(&fit, 0.95, &result), 0);
	assert_int_equal(result.bytes.value, 3050);
	wss_fit_free(&fit);
	/* Few hours: the largest. */
	assert_int_equal(wss_fit_init(&fit, 0, 36000), 0);
	wss_fit_hour(&fit, 0, 7);
	wss_fit_hour(&fit, 3600, 9);
	wss_fit_guest(&fit, 1000);
	assert_int_equal(wss_fit_result(&fit, 0.95, &result), 0);
	assert_int_equal(result.hours, 2);
	assert_true(result.from_peak);
	assert_int_equal(result.bytes.value, 9);
	wss_fit_free(&fit);
	assert_int_equal(wss_fit_init(&fit, 0, INT64_C(1) << 40), 0);
	assert_true(fit.n_hours <= 366 * 24);
	wss_fit_free(&fit);
}

/* An overflowing size becomes the largest number, never a small one. */
TEST(test_absurd_sizes)
{
	struct wss_sizing_rule most = rule;
	struct wss_summary summary = {0};
	struct wss_sizing sizing;
	struct wss_fit_result result;
	struct wss_fit fit;

	assert_true(wss_u64_add(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(wss_u64_add(UINT64_MAX - 1, 2) == UINT64_MAX);
	assert_true(wss_u64_add(3, 4) == 7);
	assert_int_equal(wss_fit_init(&fit, 0, 7200), 0);
	for (int guest = 0; guest < 3; guest++) {
		wss_fit_hour(&fit, 0, INT64_MAX);
		wss_fit_guest(&fit, guest ? INT64_MAX : UINT64_MAX);
		assert_true(fit.hours[0].bytes >= INT64_MAX);
		assert_true(fit.hours[1].bytes == UINT64_MAX);
	}
	assert_int_equal(wss_fit_result(&fit, 0.99, &result), 0);
	assert_true(result.bytes.value == UINT64_MAX);
	wss_fit_free(&fit);
	for (time_t i = 0; i < 10; i++)
		add(&summary, MIB, i, false);
	most.minimum_bytes = UINT64_MAX;
	wss_sizing_compute(&summary, &most, &no_policy, &unknown, &sizing);
	assert_true(sizing.recommended_bytes.value == UINT64_MAX / MIB * MIB);
	wss_summary_free(&summary);
}

int main(void)
{
	return tests_run();
}
