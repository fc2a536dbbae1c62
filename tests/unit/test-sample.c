/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/testing.h"

#include <string.h>

#include "measure/profile.h"
#include "measure/sample.h"

static struct wss_sample measured(void)
{
	struct wss_sample sample = {
		.domain = "web1",
		.wall = 1800000000,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.window_ns = wss_amount_of(4020000000),
		.wss_bytes = wss_amount_of(68943872),
		.low_bytes = wss_amount_of(68943872),
		.high_bytes = wss_amount_of(68943872),
	};

	sample.memory.rss_bytes = wss_amount_of(1 << 28);
	return sample;
}

TEST(test_names)
{
	assert_string_equal(wss_quality_name(WSS_QUALITY_OK), "ok");
	assert_string_equal(wss_quality_name(WSS_QUALITY_DEGRADED), "degraded");
	assert_string_equal(wss_quality_name(WSS_QUALITY_UNSUPPORTED), "unsupported");
	assert_string_equal(wss_quality_name(WSS_QUALITY_FAILED), "failed");
	assert_string_equal(wss_observes_name(WSS_OBSERVES_ACCESSES), "accesses");
	assert_string_equal(wss_observes_name(WSS_OBSERVES_WRITES), "writes");
	assert_string_equal(wss_observes_name(WSS_OBSERVES_RESIDENCY), "residency");
}

TEST(test_notes)
{
	struct wss_sample sample = measured();
	char longer[2 * WSS_NOTE_LEN];

	wss_sample_note(&sample, "%d faults", 3);
	wss_sample_note(&sample, "3 faults");
	assert_int_equal(sample.n_notes, 1);
	assert_string_equal(sample.notes[0], "3 faults");
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	/* Texts from outside become printable. */
	wss_sample_note(&sample, "from %s", "a\033[2J\nb");
	assert_string_equal(sample.notes[1], "from a?[2J?b");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	wss_sample_note(&sample, "%s", longer);
	assert_int_equal(strlen(sample.notes[2]), WSS_NOTE_LEN - 1);
	for (int i = 0; i < 2 * WSS_NOTES_MAX; i++)
		wss_sample_note(&sample, "note %d", i);
	assert_int_equal(sample.n_notes, WSS_NOTES_MAX);
	assert_string_equal(sample.notes[0], "3 faults");
}

TEST(test_degrade)
{
	struct wss_sample sample = measured();

	assert_true(wss_sample_measured(&sample));
	wss_sample_degrade(&sample, "prefetch");
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(wss_sample_measured(&sample));
	assert_true(sample.wss_bytes.known);
	/* A note makes a failed sample no better, even when there is no room for the note. */
	sample.quality = WSS_QUALITY_FAILED;
	wss_sample_degrade(&sample, "late");
	assert_int_equal(sample.quality, WSS_QUALITY_FAILED);
	sample = measured();
	sample.n_notes = WSS_NOTES_MAX;
	wss_sample_degrade(&sample, "no room");
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
}

TEST(test_fail)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_sample sample = measured();

	wss_sample_curve_add(&sample, 1, 4096);
	wss_error_set(&err, WSS_ERR_GONE, "the guest ended");
	wss_sample_fail(&sample, &err);
	assert_int_equal(sample.quality, WSS_QUALITY_FAILED);
	assert_string_equal(sample.error.text, "the guest ended");
	assert_false(wss_sample_measured(&sample));
	/* Absent, not 0. */
	assert_false(sample.wss_bytes.known);
	assert_false(sample.low_bytes.known);
	assert_false(sample.high_bytes.known);
	assert_false(sample.window_ns.known);
	assert_false(sample.granularity_bytes.known);
	assert_int_equal(sample.n_curve, 0);
	assert_string_equal(sample.domain, "web1");
	assert_true(sample.memory.rss_bytes.known);

	sample = measured();
	wss_error_set(&err, WSS_ERR_UNSUPPORTED, "no KVM");
	wss_sample_fail(&sample, &err);
	assert_int_equal(sample.quality, WSS_QUALITY_UNSUPPORTED);
	assert_false(wss_sample_measured(&sample));
}

TEST(test_curve)
{
	struct wss_sample sample = measured();

	for (uint64_t i = 1; i <= WSS_CURVE_MAX; i++)
		wss_sample_curve_add(&sample, i, i * 4096);
	assert_int_equal(sample.n_curve, WSS_CURVE_MAX);
	/* When the curve is full, the end of the window is still there. */
	wss_sample_curve_add(&sample, 5000, 1 << 30);
	wss_sample_curve_add(&sample, 6000, 1U << 31);
	assert_int_equal(sample.n_curve, WSS_CURVE_MAX);
	assert_int_equal(sample.curve[WSS_CURVE_MAX - 1].ns, 6000);
	assert_int_equal(sample.curve[WSS_CURVE_MAX - 1].bytes, 1U << 31);
	assert_int_equal(sample.curve[WSS_CURVE_MAX - 2].ns, WSS_CURVE_MAX - 1);
	assert_int_equal(sample.curve[0].ns, 1);
}

TEST(test_copy)
{
	struct wss_sample sample = {.n_curve = 0}, copy;

	wss_sample_note(&sample, "one");
	wss_sample_note(&sample, "two");
	wss_sample_curve_add(&sample, 1000, 4096);
	wss_sample_curve_add(&sample, 2000, 8192);
	sample.memory.qemu_bytes = wss_amount_of(5);
	/* What is beyond the end of the notes and the curve is not touched. */
	memset(&copy, 0x55, sizeof(copy));
	wss_sample_copy(&copy, &sample);
	assert_int_equal(copy.n_notes, 2);
	assert_string_equal(copy.notes[1], "two");
	assert_int_equal(copy.notes[2][0], 0x55);
	assert_int_equal(copy.n_curve, 2);
	assert_int_equal(copy.curve[1].ns, 2000);
	assert_int_equal(copy.curve[1].bytes, 8192);
	assert_int_equal(copy.curve[2].ns, 0x5555555555555555);
	assert_int_equal(copy.memory.qemu_bytes.value, 5);
}

TEST(test_share)
{
	struct wss_sample sample = measured();
	double share = -1;

	assert_false(wss_sample_share(&sample, &share));
	sample.memory.balloon_bytes = wss_amount_of(0);
	assert_false(wss_sample_share(&sample, &share));
	assert_true(share == -1);
	sample.memory.balloon_bytes = wss_amount_of(2 * 68943872ULL);
	assert_true(wss_sample_share(&sample, &share));
	assert_true(share == 0.5);
	sample.wss_bytes.known = false;
	assert_false(wss_sample_share(&sample, &share));
}

/* A profile is taken from one sample and names its method: nothing is mixed in it. */
TEST(test_profile)
{
	struct wss_sample sample = measured();
	struct wss_profile profile;

	wss_profile_from_sample(&sample, "0.1.0", &profile);
	assert_int_equal(profile.version, WSS_PROFILE_VERSION);
	assert_int_equal(profile.time, 1800000000);
	assert_string_equal(profile.method, "mmu");
	assert_string_equal(profile.observes, "accesses");
	assert_int_equal(profile.window_ns, 4020000000);
	assert_int_equal(profile.granularity_bytes, 4096);
	assert_int_equal(profile.current_bytes, 68943872);
	assert_string_equal(profile.confidence, "single");
	assert_string_equal(profile.tool, "0.1.0");
	/* A single window gives neither percentiles nor a peak. */
	assert_false(profile.p50_bytes.known);
	assert_false(profile.p95_bytes.known);
	assert_false(profile.peak_bytes.known);

	sample.low_bytes.value -= 4096;
	wss_profile_from_sample(&sample, "0.1.0", &profile);
	assert_string_equal(profile.confidence, "low");
	sample = measured();
	sample.memory.maximum_bytes = wss_amount_of(1 << 30);
	wss_sample_degrade(&sample, "prefetch");
	wss_profile_from_sample(&sample, "0.1.0", &profile);
	assert_string_equal(profile.confidence, "low");
	/* It proves no more than that the guest touched so much of its memory at least. */
	assert_int_equal(profile.current_bytes, sample.low_bytes.value);
	assert_int_equal(profile.low_bytes, sample.low_bytes.value);
	assert_int_equal(profile.high_bytes, 1 << 30);
}

/* Two windows of a guest without huge pages differ by its activity: that is not bloat. */
TEST(test_bloat)
{
	struct wss_sample sample = {.wss_bytes = wss_amount_of(100 << 20)};
	double factor = 0;

	assert_false(wss_sample_bloat(&sample, &factor));
	sample.native.wss_bytes = wss_amount_of(250 << 20);
	sample.native.granularity_bytes = wss_amount_of(2 << 20);
	assert_true(wss_sample_bloat(&sample, &factor));
	assert_true(factor == 2.5);
	sample.native.granularity_bytes = wss_amount_of(4096);
	assert_false(wss_sample_bloat(&sample, &factor));
	sample.native.granularity_bytes.known = false;
	assert_false(wss_sample_bloat(&sample, &factor));
}

int main(void)
{
	return tests_run();
}
