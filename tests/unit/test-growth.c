/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether a set still grew at the end of its windows, and how far it is extrapolated, on
 * curves with known answers.
 */
#include "hosttest.h"

#include <math.h>

#include "history/growth.h"
#include "sizing/sizing.h"

#define MIB (1ULL << 20)
#define WINDOWS 12

typedef double (*curve)(double seconds);

static double constant_s;

/* A random set and a loop, both of 97 MiB. */
static double at_random(double seconds)
{
	return 97.0 * MIB * (1 - exp(-seconds / constant_s));
}

static double loop(double seconds)
{
	return 97.0 * MIB * fmin(1, seconds / constant_s);
}

/* 40 MiB after a second, and 8 MiB more for each factor e of time, without end. */
static double endless(double seconds)
{
	return fmax(0, (40.0 + 8 * log(seconds)) * MIB);
}

/* Makes n windows of the curve; points are the times of the polls, including the window's end. */
static struct wss_summary windows_of(curve touched, double window_s, double first_s, size_t n)
{
	struct wss_summary summary = {0};

	for (size_t i = 0; i < n; i++) {
		uint64_t ns = (uint64_t)(window_s * 1e9), bytes = (uint64_t)touched(window_s);
		struct wss_sample sample = {
			.wall = (time_t)i, .method = "mmu", .wss_bytes = wss_amount_of(bytes)};

		for (double t = first_s; t < window_s; t *= 1.25)
			wss_sample_curve_add(&sample, (uint64_t)(t * 1e9), (uint64_t)touched(t));
		wss_sample_curve_add(&sample, ns, bytes);
		assert_int_equal(wss_summary_add(&summary, &sample), 0);
	}
	return summary;
}

static struct wss_growth growth_of(curve touched, double window_s, double first_s)
{
	struct wss_summary summary = windows_of(touched, window_s, first_s, WINDOWS);
	struct wss_growth growth = wss_growth_of(&summary);

	wss_summary_free(&summary);
	return growth;
}

/* Windows that have seen all of a set show no growth. */
TEST(test_over)
{
	struct wss_growth growth;

	constant_s = 0.4;
	growth = growth_of(at_random, 4, 0.001);
	assert_true(growth.known);
	assert_true(growth.per_doubling < 0.05);
	assert_false(wss_growth_goes_on(&growth));
	assert_int_equal(wss_growth_beyond_bytes(&growth), 0);
	growth = growth_of(loop, 4, 0.001);
	assert_true(growth.per_doubling < 0.001);
}

/* Windows of 500 ms, which saw 41 MiB of a set of 97. */
TEST(test_cut_short)
{
	static const curve curves[] = {at_random, loop};
	static const double constants[] = {0.909, 1.183};

	for (size_t i = 0; i < 2; i++) {
		struct wss_growth growth;
		double seen;

		constant_s = constants[i];
		seen = curves[i](0.5) / MIB;
		assert_true(seen > 40.9 && seen < 41.2);
		growth = growth_of(curves[i], 0.5, 0.001);
		assert_true(wss_growth_goes_on(&growth));
		assert_true(growth.per_doubling > 0.6 && growth.per_doubling < 1.01);
		/* At least what is missing, and at most a few times that. */
		assert_in_range(wss_growth_beyond_bytes(&growth), (97 - 41) * MIB, 250 * MIB);
	}
}

/* Endless growth, with a pause in the last step of the curve. */
static double pausing(double seconds)
{
	return endless(fmin(seconds, pow(10, 5 / 8.0)));
}

static void growth_is_endless_after_a_pause(void)
{
	struct wss_growth growth = growth_of(pausing, 5.7, 0.01);

	assert_true(growth.decay > 0.9);
}

/*
 * Random accesses slow down: the rest of the set is extrapolated, not growth without end. Windows of
 * 2 time constants see 86 % of it, of 3 of them 95 %, of 4 98 %.
 */
TEST(test_slows_down)
{
	static const double constants_s[] = {5, 4, 10 / 3.0, 2.5};
	/* At most that share of the set. */
	static const double most[] = {1.1, 0.65, 0.4, 0.2};

	for (size_t i = 0; i < 4; i++) {
		struct wss_growth growth;
		double missing, beyond;

		constant_s = constants_s[i];
		growth = growth_of(at_random, 10, 0.01);
		missing = 97.0 * MIB - at_random(growth.seconds);
		assert_true(wss_growth_goes_on(&growth));
		beyond = (double)wss_growth_beyond_bytes(&growth);
		assert_true(beyond >= missing && beyond <= most[i] * 97.0 * MIB);
	}
	growth_is_endless_after_a_pause();
}

/* A curve that rises forever is extrapolated exactly: to 40 + 8 ln(300) MiB after five minutes. */
TEST(test_endless)
{
	static const double windows_s[] = {0.5, 4, 10};
	struct wss_growth growth;

	for (size_t i = 0; i < 3; i++) {
		double beyond, end;

		growth = growth_of(endless, windows_s[i], 0.01);
		beyond = (double)wss_growth_beyond_bytes(&growth);
		end = growth.seconds;
		assert_true(wss_growth_goes_on(&growth));
		assert_true(end <= windows_s[i] && end > 0.7 * windows_s[i]);
		assert_true(fabs(endless(end) + beyond - endless(300)) < 2.0 * MIB);
	}
	constant_s = 1000;
	/* The horizon lies before the end of such a window. */
	growth = growth_of(loop, 600, 0.1);
	assert_true(wss_growth_goes_on(&growth));
	assert_int_equal(wss_growth_beyond_bytes(&growth), 0);
}

/*
 * A curve of a few points, as from methods whose polls are expensive, is enough; its end alone
 * is not.
 */
TEST(test_few_points)
{
	struct wss_growth growth;

	constant_s = 0.4;
	growth = growth_of(at_random, 4, 2);
	assert_true(growth.known);
	assert_false(wss_growth_goes_on(&growth));
	constant_s = 8;
	growth = growth_of(at_random, 4, 2);
	assert_true(wss_growth_goes_on(&growth));
	growth = growth_of(at_random, 4, 4);
	assert_false(growth.known);
	assert_false(wss_growth_goes_on(&growth));
}

/* Zero, and more than any guest has. */
TEST(test_absurd)
{
	struct wss_summary summary = {0};
	struct wss_growth growth = wss_growth_of(&summary);

	assert_false(growth.known);
	summary.samples = 10;
	for (size_t k = 20; k < 24; k++) {
		summary.curve[k].n = 10;
		summary.curve[k].sum_pages = k < 23 ? 0 : UINT64_MAX;
	}
	growth = wss_growth_of(&summary);
	assert_true(wss_growth_goes_on(&growth));
	assert_true(wss_growth_beyond_bytes(&growth) > 0);
	/* A mean that falls, because later points come from other windows, is not growth. */
	summary.curve[22].sum_pages = UINT64_MAX;
	summary.curve[23].sum_pages = 1;
	summary.curve[20].sum_pages = summary.curve[21].sum_pages = 1000;
	growth = wss_growth_of(&summary);
	assert_false(wss_growth_goes_on(&growth));
}

/* Sizing gives an extrapolated size, limited by the guest's memory, with low confidence. */
TEST(test_sizing)
{
	static const struct wss_sizing_rule rule = {.percentile = 0.95, .headroom_percent = 20};
	static const struct wss_policy none;
	const struct wss_learned proved = {
		.known = true, .target_bytes = 100 * MIB, .confidence = WSS_CONFIDENCE_HIGH};
	struct wss_sizing_state state = {.held_bytes = wss_amount_of(900 * MIB)};
	struct wss_summary summary;
	struct wss_sizing sizing;

	constant_s = 0.909;
	summary = windows_of(at_random, 0.5, 0.001, 1000);
	summary.last = summary.first + 8 * 86400;
	wss_sizing_compute(&summary, &rule, &none, &state, &sizing);
	assert_false(sizing.from_peak);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_in_range(sizing.base_bytes.value, 41 * MIB, 42 * MIB);
	assert_in_range(sizing.recommended_bytes.value, 97 * MIB, 300 * MIB);
	assert_true(sizing.recommended_bytes.value >= sizing.grown_bytes.value);
	state.maximum_bytes = wss_amount_of(128 * MIB);
	wss_sizing_compute(&summary, &rule, &none, &state, &sizing);
	assert_int_equal(sizing.recommended_bytes.value, 128 * MIB);
	wss_summary_free(&summary);
	/* The same guest with windows that are long enough. */
	summary = windows_of(at_random, 8, 0.001, 1000);
	summary.last = summary.first + 8 * 86400;
	wss_sizing_compute(&summary, &rule, &none, &state, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_false(sizing.grown_bytes.known);
	assert_in_range(sizing.recommended_bytes.value, 116 * MIB, 120 * MIB);
	/* Only then a size that has proved itself is trusted. */
	state.learned = &proved;
	wss_sizing_compute(&summary, &rule, &none, &state, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_HIGH);
	wss_summary_free(&summary);
	/* And with windows that do not show growth. */
	summary = windows_of(at_random, 8, 8, 1000);
	summary.last = summary.first + 8 * 86400;
	wss_sizing_compute(&summary, &rule, &none, &state, &sizing);
	assert_int_equal(sizing.confidence, WSS_CONFIDENCE_LOW);
	assert_false(sizing.growth.known);
	wss_summary_free(&summary);
}

int main(void)
{
	return tests_run();
}
