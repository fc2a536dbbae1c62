/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A guest's figures of the last 24 hours. */
#include "hosttest.h"

#include "base/units.h"
#include "sizing/trend.h"

#define NOW ((time_t)1800000000)

static struct wss_trend trend;

static int setup(void **unused)
{
	memset(&trend, 0, sizeof(trend));
	return 0;
}

static void add(time_t when, uint64_t wss_bytes, uint64_t granularity_bytes, uint64_t window_s)
{
	const struct wss_sample sample = {
		.wall = when,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(granularity_bytes),
		.requested_window_ns = window_s * WSS_NS_PER_S,
		.wss_bytes = wss_amount_of(wss_bytes),
		.memory.balloon_bytes = wss_amount_of(8 * WSS_MIB),
	};

	wss_trend_add(&trend, &sample);
}

/* Fails if the slot of a time is not known. */
static const struct wss_trend_slot *slot_at(time_t when)
{
	for (size_t i = 0; i < WSS_TREND_SLOTS; i++) {
		time_t start;
		const struct wss_trend_slot *slot = wss_trend_slot(&trend, NOW, i, &start);

		if (slot && start <= when && when < start + WSS_TREND_SLOT_S)
			return slot;
	}
	fail_msg("no slot");
	return NULL;
}

static size_t count(time_t now)
{
	time_t start;
	size_t n = 0;

	for (size_t i = 0; i < WSS_TREND_SLOTS; i++)
		n += wss_trend_slot(&trend, now, i, &start) != NULL;
	return n;
}

TEST(test_figures)
{
	const struct wss_trend_slot *slot;

	add(NOW, 3 * WSS_MIB + 1, 4096, 4);
	slot = slot_at(NOW);
	assert_int_equal(wss_trend_bytes(slot->wss).value, 3 * WSS_MIB + 4096);
	assert_int_equal(wss_trend_bytes(slot->balloon).value, 8 * WSS_MIB);
	/* Unknown is not 0. */
	assert_false(wss_trend_bytes(slot->rss).known);
	assert_int_equal(trend.series[slot->series].window_ns, 4 * WSS_NS_PER_S);
	add(NOW - 3600, 0, 4096, 4);
	assert_true(wss_trend_bytes(slot_at(NOW - 3600)->wss).known);
	assert_int_equal(wss_trend_bytes(slot_at(NOW - 3600)->wss).value, 0);
}

TEST(test_a_slot_is_no_mixture)
{
	add(NOW, 2 * WSS_MIB, 4096, 4);
	add(NOW + 1, 3 * WSS_MIB, 4096, 4);
	add(NOW + 2, WSS_MIB, 4096, 4);
	assert_int_equal(wss_trend_bytes(slot_at(NOW)->wss).value, 3 * WSS_MIB);
	/* A canary is shorter; a larger set in it does not count. */
	add(NOW + 3, 64 * WSS_MIB, 2 * WSS_MIB, 0);
	assert_int_equal(wss_trend_bytes(slot_at(NOW)->wss).value, 3 * WSS_MIB);
	assert_int_equal(trend.n_series, 2);
	add(NOW + 4, WSS_MIB, 4096, 8);
	assert_int_equal(wss_trend_bytes(slot_at(NOW)->wss).value, WSS_MIB);
}

TEST(test_old_slots_end)
{
	add(NOW - WSS_TREND_SLOTS * WSS_TREND_SLOT_S, WSS_MIB, 4096, 4);
	assert_int_equal(count(NOW), 0);
	add(NOW, WSS_MIB, 4096, 4);
	assert_int_equal(count(NOW), 1);
	/* Its place is taken by now. */
	add(NOW - WSS_TREND_SLOTS * WSS_TREND_SLOT_S, 5 * WSS_MIB, 4096, 4);
	assert_int_equal(count(NOW), 1);
	assert_int_equal(count(NOW + 23 * 3600), 1);
	assert_int_equal(count(NOW + 25 * 3600), 0);
	/* After the clock was set back by years. */
	assert_int_equal(count(NOW - 100000000), 0);
	add(NOW - 100000000, WSS_MIB, 4096, 4);
	assert_int_equal(count(NOW - 100000000), 1);
}

TEST(test_more_series_than_places)
{
	for (int i = 0; i < 12; i++)
		add(NOW - i * WSS_TREND_SLOT_S, WSS_MIB, 4096, (uint64_t)i + 1);
	assert_int_equal(trend.n_series, WSS_TREND_SERIES_MAX);
	/* None is shown as one of another series. */
	assert_int_equal(count(NOW), WSS_TREND_SERIES_MAX);
	assert_int_equal(trend.series[slot_at(NOW - 11 * WSS_TREND_SLOT_S)->series].window_ns,
			 12 * WSS_NS_PER_S);
}

/* Its figure may be wrong: it is counted, and neither shown nor put above a good one. */
TEST(test_degraded_windows_are_left_out)
{
	struct wss_sample degraded = {
		.wall = NOW,
		.quality = WSS_QUALITY_DEGRADED,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4 * WSS_NS_PER_S,
		.wss_bytes = wss_amount_of(64 * WSS_MIB),
	};

	wss_trend_add(&trend, &degraded);
	assert_int_equal(count(NOW), 0);
	assert_int_equal(wss_trend_degraded(&trend, NOW), 1);
	add(NOW + 1, WSS_MIB, 4096, 4);
	wss_trend_add(&trend, &degraded);
	assert_int_equal(wss_trend_bytes(slot_at(NOW)->wss).value, WSS_MIB);
	assert_int_equal(wss_trend_degraded(&trend, NOW), 2);
	/* They end with their slots. */
	assert_int_equal(wss_trend_degraded(&trend, NOW + 25 * 3600), 0);
	add(NOW + WSS_TREND_SLOTS * WSS_TREND_SLOT_S, WSS_MIB, 4096, 4);
	assert_int_equal(wss_trend_degraded(&trend, NOW + 23 * 3600), 0);
}

TEST(test_what_is_not_measured)
{
	const struct wss_sample sample = {.wall = NOW, .quality = WSS_QUALITY_FAILED};

	wss_trend_add(&trend, &sample);
	assert_int_equal(count(NOW), 0);
}

int main(void)
{
	return tests_run_each(setup, NULL);
}
