/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakerecorder.h"

#include "base/clock.h"
#include "base/units.h"
#include "track/pagewise.h"

#define PAGE 4096ULL
#define PAGES_16_MIB 4096

static char *tree;
static struct wss_host host;
static struct wss_guest *guest;

static int set_up(void **unused)
{
	static const struct wss_guest_ops ops = { .refresh = NULL };

	(void)unused;
	tree = make_tree();
	put_text(tree, "sys/kernel/tracing/events/kvm/kvm_page_fault/format",
		 "field:u64 vcpu_id;\nfield:u64 guest_rip;\nfield:u64 fault_address;\n"
		 "field:u64 error_code;\n");
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	host.soft_dirty = host.tdp_mmu = WSS_YES;
	guest = wss_guest_new(&ops, NULL, NULL);
	assert_non_null(guest);
	guest->process.pid = 4242;
	guest->config.initial_bytes = 64 * WSS_MIB;
	snprintf(guest->config.machine, sizeof(guest->config.machine), "pc-q35-7.2");
	memset(&fake_recorder, 0, sizeof(fake_recorder));
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	assert_false(fake_recorder.opened);
	wss_guest_free(guest);
	wss_host_close(&host);
	remove_tree(tree);
	return 0;
}

/* Every time is within its bucket, and buckets are narrow enough. */
static void test_buckets(void **unused)
{
	(void)unused;
	for (uint32_t i = 0; i + 1 < WSS_TOUCH_BUCKETS; i++) {
		uint64_t bound = wss_touch_bound(i);

		assert_int_equal(wss_touch_bucket(bound - 1), i);
		assert_int_equal(wss_touch_bucket(bound), i + 1);
		if (i)
			assert_true(bound * 4 <= wss_touch_bound(i - 1) * 5);
	}
	assert_int_equal(wss_touch_bucket(0), 0);
	assert_int_equal(wss_touch_bucket(UINT64_MAX), WSS_TOUCH_BUCKETS - 1);
	assert_true(wss_touch_bound(0) <= 100000);
	assert_true(wss_touch_bound(WSS_TOUCH_BUCKETS - 2) >= 1000 * WSS_NS_PER_S);
}

static void assert_refused(const char *part)
{
	struct wss_recorder *recorder = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_recorder_open(&host, guest, &recorder, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
	assert_null(recorder);
}

static void test_refuses(void **unused)
{
	(void)unused;
	assert_int_equal(wss_recorder_probe(&host, NULL, NULL), 0);
	assert_int_equal(wss_recorder_probe(&host, guest, NULL), 0);
	fake_recorder.open_fails = true;
	assert_refused("no program");
	fake_recorder.probe_fails = true;
	assert_refused("no backend");
	fake_recorder.probe_fails = false;
	snprintf(guest->config.machine, sizeof(guest->config.machine), "microvm");
	assert_refused("microvm");
	/* Not the first namespace: in the invented machine it is a plain file. */
	put_text(tree, "proc/self/ns/pid", "");
	assert_refused("pid namespace");
}

static void test_open(void **unused)
{
	struct wss_recorder *recorder;

	(void)unused;
	assert_int_equal(wss_recorder_open(&host, guest, &recorder, NULL), 0);
	assert_int_equal(fake_recorder.plan.tgid, 4242);
	assert_int_equal(fake_recorder.plan.event.address_arg, 1);
	assert_int_equal(wss_gpa_end(&fake_recorder.plan.layout), 64 * WSS_MIB);
	assert_ptr_equal(wss_recorder_touched(recorder).words, fake_recorder.touched);
	assert_ptr_equal(wss_recorder_written(recorder).words, fake_recorder.written);
	assert_int_equal(wss_recorder_written(recorder).n_words, FAKE_WORDS);
	assert_false(fake_recorder.attached);
	assert_true(wss_recorder_fits(recorder, guest));
	guest->config.initial_bytes *= 2;
	assert_false(wss_recorder_fits(recorder, guest));
	wss_recorder_close(recorder);
	wss_recorder_close(NULL);
}

static void test_curve(void **unused)
{
	struct wss_curve_point points[WSS_CURVE_MAX];
	uint64_t now_ns = wss_clock_now_ns();
	struct wss_recorder *recorder;
	size_t n;

	(void)unused;
	assert_int_equal(wss_recorder_open(&host, guest, &recorder, NULL), 0);
	assert_int_equal(wss_recorder_start(recorder, NULL), 0);
	/* 10 ms of arming have passed when the origin is set. */
	wss_recorder_set_origin(recorder, now_ns - 10 * WSS_NS_PER_MS);
	assert_int_equal(fake_recorder.origin_ns, now_ns - 10 * WSS_NS_PER_MS);
	fake_recorder.first_touches[0] = 5;
	fake_recorder.first_touches[wss_touch_bucket(200 * WSS_NS_PER_MS)] = 7;
	fake_recorder.first_touches[wss_touch_bucket(3 * WSS_NS_PER_S)] = 100;
	n = wss_recorder_curve(recorder, WSS_NS_PER_S, points, WSS_CURVE_MAX);
	assert_true(n > 10);
	assert_true(points[0].ns >= 10 * WSS_NS_PER_MS);
	assert_int_equal(points[0].bytes, 5 * PAGE);
	assert_true(points[n - 1].ns <= WSS_NS_PER_S && points[n - 1].ns >= 800 * WSS_NS_PER_MS);
	assert_int_equal(points[n - 1].bytes, 12 * PAGE);
	for (size_t i = 1; i < n; i++)
		assert_true(points[i].ns > points[i - 1].ns &&
			    points[i].bytes >= points[i - 1].bytes);
	assert_int_equal(wss_recorder_curve(recorder, WSS_NS_PER_S, points, 3), 3);
	assert_true(wss_recorder_curve(recorder, UINT64_MAX, points, WSS_CURVE_MAX) <=
		    WSS_CURVE_MAX);
	wss_recorder_stop(recorder);
	assert_false(fake_recorder.attached);
	wss_recorder_close(recorder);
}

/* A window of a guest with the pages that the recorder saw and KVM's gauge. */
struct window {
	enum wss_recorder_choice choice;
	uint64_t touched, written, outside;
	uint64_t mapped_pages, large_entries;
	bool nested;
	struct wss_amount huge_bytes;

	struct wss_reading reading;
	struct wss_page_view view;
	struct wss_curve_point points[WSS_CURVE_MAX];
	size_t n_points;
	struct wss_sample sample;
};

static void run(struct window *window)
{
	const struct wss_kvm_counts counts = { .pages_4k = 1 };
	uint64_t low = (window->mapped_pages + window->large_entries) * PAGE;
	uint64_t high = window->mapped_pages * PAGE + window->large_entries * 2 * WSS_MIB;
	struct wss_pagewise pages;

	assert_int_equal(wss_pagewise_open(&pages, &host, guest, window->choice, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	wss_pagewise_started(&pages, wss_clock_now_ns());
	fake_recorder.first_touches[30] = window->touched;
	fake_recorder.written_pages = window->written;
	fake_recorder.outside_faults = window->outside;
	window->reading = (struct wss_reading){
		.wss_bytes = high, .low_bytes = low, .high_bytes = high,
		.granularity_bytes = window->large_entries ? 2 * WSS_MIB : PAGE,
	};
	wss_pagewise_refine(&pages, window->nested, &window->reading);
	window->n_points = wss_pagewise_curve(&pages, 40 * WSS_NS_PER_S, window->points,
					      WSS_CURVE_MAX);
	window->view = (struct wss_page_view){ .touched = { .known = false } };
	wss_pagewise_view(&pages, &window->view);
	window->sample.quality = WSS_QUALITY_OK;
	window->sample.wss_bytes = wss_amount_of(window->reading.wss_bytes);
	window->sample.high_bytes = wss_amount_of(window->reading.high_bytes);
	window->sample.memory.huge_bytes = window->huge_bytes;
	wss_pagewise_explain(&pages, &window->sample);
	wss_pagewise_rest(&pages);
	assert_false(fake_recorder.attached);
	wss_pagewise_close(&pages);
}

static bool noted(const struct window *window, const char *part)
{
	for (size_t i = 0; i < window->sample.n_notes; i++)
		if (strstr(window->sample.notes[i], part))
			return true;
	return false;
}

/* On 4 KiB pages the recorder is exact, even if the gauge has lost some, or has more. */
static void test_exact(void **unused)
{
	struct window window = { .touched = PAGES_16_MIB, .written = 100, .outside = 50,
				 .mapped_pages = 3000, .huge_bytes = { true, 0 } };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 16 * WSS_MIB);
	assert_int_equal(window.reading.low_bytes, 16 * WSS_MIB);
	assert_int_equal(window.reading.high_bytes, 16 * WSS_MIB);
	assert_true(window.n_points > 8);
	assert_true(window.view.touched.known && window.view.written.known);
	assert_int_equal(window.points[window.n_points - 1].bytes, 16 * WSS_MIB);
	assert_string_equal(window.sample.recorder, "bpf");
	assert_int_equal(window.sample.mapped_bytes.value, 3000 * PAGE);
	assert_int_equal(window.sample.cost.outside_faults.value, 50);
	assert_true(window.sample.written_bytes.known);
	assert_int_equal(window.sample.written_bytes.value, 100 * PAGE);
	assert_int_equal(window.sample.written_low_bytes.value, 100 * PAGE);
	assert_int_equal(window.sample.written_high_bytes.value, 100 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_OK);
	/* A few pages that no fault was seen for are more than nothing. */
	window = (struct window){ .mapped_pages = 9 };
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 9 * PAGE);
	assert_int_equal(window.reading.high_bytes, 9 * PAGE);
	assert_false(window.view.touched.known);
	/* Mapped device memory is not a contradiction. */
	window = (struct window){ .touched = PAGES_16_MIB, .outside = 4096,
				  .mapped_pages = PAGES_16_MIB + 4096 };
	run(&window);
	assert_int_equal(window.reading.high_bytes, 16 * WSS_MIB);
}

static void assert_written_bounded(struct window *window, const char *why)
{
	run(window);
	assert_string_equal(window->sample.recorder, "bpf");
	assert_false(window->sample.written_bytes.known);
	assert_int_equal(window->sample.written_low_bytes.value, window->written * PAGE);
	assert_int_equal(window->sample.written_high_bytes.value, window->reading.high_bytes);
	assert_true(noted(window, why));
}

static void test_written_bounded(void **unused)
{
	const struct window exact = { .touched = 500, .written = 100, .mapped_pages = 500,
				      .huge_bytes = { true, 0 } };
	struct window window = exact;

	(void)unused;
	window.huge_bytes.value = 2 * WSS_MIB;
	assert_written_bounded(&window, "huge pages");
	window = exact;
	window.huge_bytes.known = false;
	assert_written_bounded(&window, "not known");
	window = exact;
	window.large_entries = 3;
	assert_written_bounded(&window, "huge pages");
	/* On huge pages the recorder's pages are the better low bound. */
	assert_int_equal(window.reading.low_bytes, 503 * PAGE);
	assert_int_equal(window.n_points, 0);
	window = exact;
	guest->config.hostdevs = 1;
	assert_written_bounded(&window, "assigned devices");
	guest->config.hostdevs = 0;
	window = exact;
	host.soft_dirty = WSS_NO;
	assert_written_bounded(&window, "soft-dirty");
}

static void test_low_bound(void **unused)
{
	struct window window = { .touched = 2000, .large_entries = 37 };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 74 * WSS_MIB);
	assert_int_equal(window.reading.high_bytes, 74 * WSS_MIB);
	assert_int_equal(window.reading.low_bytes, 2000 * PAGE);
	assert_false(window.view.touched.known || window.view.written.known);
	assert_string_equal(window.sample.recorder, "bpf");
}

/* Prefetched entries cause no fault: the recorder is the low bound, KVM the high one. */
static void test_prefetch(void **unused)
{
	struct window window = { .touched = 1000, .outside = 3000, .mapped_pages = 4000 };

	(void)unused;
	host.tdp_mmu = WSS_NO;
	run(&window);
	assert_int_equal(window.reading.high_bytes, 4000 * PAGE);
	assert_int_equal(window.reading.wss_bytes, 4000 * PAGE);
	assert_false(window.sample.written_bytes.known);
	fake_recorder.missed = 3;
	host.tdp_mmu = WSS_YES;
	run(&window);
	assert_int_equal(window.reading.high_bytes, 4000 * PAGE);
	assert_true(noted(&window, "missed 3 faults"));
}

/* Addresses of a nested guest are its own. */
static void test_nested(void **unused)
{
	struct window window = { .touched = 5000, .mapped_pages = 5000, .nested = true };

	(void)unused;
	run(&window);
	assert_int_equal(window.n_points, 0);
	assert_string_equal(window.sample.recorder, "counters");
	assert_false(window.sample.written_bytes.known);
	assert_false(window.sample.written_low_bytes.known);
}

/*
 * If the recorder sees nothing while KVM maps pages, it observes the wrong process, not an
 * idle guest.
 */
static void test_inconsistent(void **unused)
{
	struct window window = { .mapped_pages = 5000, .huge_bytes = { true, 0 } };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_string_equal(window.sample.recorder, "counters");
	assert_false(window.sample.written_low_bytes.known);
	assert_true(noted(&window, "more pages than the recorder"));
}

static void test_counters(void **unused)
{
	struct window window = { .choice = WSS_RECORDER_COUNTERS, .touched = 9,
				 .mapped_pages = 5000 };

	(void)unused;
	run(&window);
	assert_int_equal(fake_recorder.opens, 0);
	assert_string_equal(window.sample.recorder, "counters");
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_true(noted(&window, "not requested"));
	/* "auto" does the same if the recorder fails, and notes the reason. */
	fake_recorder.start_fails = true;
	window.choice = WSS_RECORDER_AUTO;
	run(&window);
	assert_string_equal(window.sample.recorder, "counters");
	assert_true(noted(&window, "no tracepoint here"));
	fake_recorder.open_fails = true;
	run(&window);
	assert_true(noted(&window, "no program here"));
}

static void test_required(void **unused)
{
	const struct wss_kvm_counts counts = { .pages_4k = 1 };
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_pagewise pages;

	(void)unused;
	fake_recorder.open_fails = true;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_PAGES, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "no program here");
	fake_recorder.open_fails = false;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_PAGES, &err), 0);
	fake_recorder.start_fails = true;
	assert_int_equal(wss_pagewise_begin(&pages, &counts, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "no tracepoint here");
	wss_pagewise_close(&pages);
}

/* Memory that is plugged between two windows is recorded as well. */
static void test_plugged(void **unused)
{
	const struct wss_kvm_counts counts = { .pages_4k = 1 };
	struct wss_pagewise pages;

	(void)unused;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_PAGES, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	assert_int_equal(fake_recorder.opens, 1);
	assert_int_equal(fake_recorder.starts, 2);
	guest->config.n_devices = 1;
	guest->config.devices[0] = (struct wss_memory_device){ 4ULL << 30, WSS_MIB, -1 };
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	assert_int_equal(fake_recorder.opens, 2);
	assert_int_equal(wss_gpa_end(&fake_recorder.plan.layout), (4ULL << 30) + WSS_MIB);
	wss_pagewise_close(&pages);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_buckets),	TEST(test_refuses),	     TEST(test_open),
		TEST(test_curve),	TEST(test_exact),	     TEST(test_written_bounded),
		TEST(test_low_bound),	TEST(test_prefetch),	     TEST(test_nested),
		TEST(test_inconsistent), TEST(test_counters),	     TEST(test_required),
		TEST(test_plugged),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
