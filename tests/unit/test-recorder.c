/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakekvm.h"

#include "base/clock.h"
#include "base/units.h"
#include "track/pagewise.h"

#define PAGE 4096ULL
#define PAGES_16_MIB 4096
#define WINDOW_NS (16 * WSS_NS_PER_S)
#define RAM_BYTES (64 * WSS_MIB)
#define HOST_ADDRESS 0x7f0000000000ULL

static char *tree;
static struct wss_host host;
static struct wss_guest *guest;
static struct wss_range ranges[2];
static uint64_t test_now_ns;

static uint64_t test_clock(void *unused)
{
	(void)unused;
	return test_now_ns += 1000;
}

/* A guest of 64 MiB: one slot of RAM, and one of a device above it. */
static int set_up(void **unused)
{
	static const struct wss_clock_source clock = { .now_ns = test_clock };
	static const struct wss_guest_ops ops = { .refresh = NULL };

	(void)unused;
	tree = make_tree();
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	host.soft_dirty = host.tdp_mmu = host.two_dim_paging = WSS_YES;
	guest = wss_guest_new(&ops, NULL, NULL);
	assert_non_null(guest);
	guest->process.pid = 4242;
	guest->config.initial_bytes = RAM_BYTES;
	snprintf(guest->config.machine, sizeof(guest->config.machine), "pc-q35-7.2");
	ranges[0] = (struct wss_range){ HOST_ADDRESS, HOST_ADDRESS + RAM_BYTES };
	guest->ram = (struct wss_ram){ .n_ranges = 1, .ranges = ranges, .total_bytes = RAM_BYTES };
	guest->ram_known = true;
	memset(&fake_kvm, 0, sizeof(fake_kvm));
	fake_kvm.n_slots = 2;
	fake_kvm.slots[0] = (struct wss_kvm_slot_record){ .n_pages = 16384, .host_address = HOST_ADDRESS };
	fake_kvm.slots[1] = (struct wss_kvm_slot_record){
		.first_page = 0xfd000, .n_pages = 4096, .host_address = HOST_ADDRESS + RAM_BYTES
	};
	test_now_ns = WSS_NS_PER_S;
	wss_clock_inject(&clock);
	return 0;
}

static int tear_down(void **unused)
{
	(void)unused;
	wss_clock_inject(NULL);
	assert_int_equal(fake_kvm.open, 0);
	guest->ram = (struct wss_ram)WSS_RAM_INIT;
	wss_guest_free(guest);
	wss_host_close(&host);
	remove_tree(tree);
	return 0;
}

/* --- the recorder --- */

static struct wss_recorder *start(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recorder *recorder;

	if (wss_recorder_open(&host, guest, &recorder, &err) < 0 || wss_recorder_start(recorder, &err) < 0)
		fail_msg("%s", err.text);
	return recorder;
}

static struct wss_recorder_counts walk(struct wss_recorder *recorder)
{
	assert_int_equal(wss_recorder_walk(recorder, NULL), 0);
	return wss_recorder_counts(recorder);
}

static bool touched(const struct wss_recorder *recorder, uint64_t page)
{
	struct wss_pages pages = wss_recorder_touched(recorder);
	struct wss_run run;

	return wss_pages_next(&pages, page, page + 1, &run);
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
	fake_kvm.open_fails = true;
	assert_refused("no VM");
	fake_kvm.probe_fails = true;
	assert_refused("no programs");
	fake_kvm.probe_fails = false;
	guest->ram_known = false;
	snprintf(guest->config.machine, sizeof(guest->config.machine), "microvm");
	assert_refused("microvm");
	wss_recorder_close(NULL);
}

static void test_adds_walks_up(void **unused)
{
	struct wss_recorder *recorder = start();
	struct wss_recorder_counts counts;

	(void)unused;
	assert_int_equal(fake_kvm.pid, 4242);
	fake_kvm_map(100, 300, FAKE_HALF_WRITTEN, true);
	counts = walk(recorder);
	assert_int_equal(counts.touched_pages, 300);
	assert_int_equal(counts.written_pages, 150);
	assert_int_equal(counts.accessed_pages, 300);
	assert_int_equal(counts.lost_pages, 0);
	/* The host unmaps a hundred of them, and the guest touches a hundred others. */
	fake_kvm_unmap_all();
	fake_kvm_map(200, 300, FAKE_READ, true);
	counts = walk(recorder);
	assert_int_equal(counts.walks, 2);
	assert_int_equal(counts.touched_pages, 400);
	assert_int_equal(counts.written_pages, 150);
	/* A third of those that were known have gone, so perhaps a third of the new ones, too. */
	assert_in_range(counts.lost_pages, 33, 34);
	assert_true(touched(recorder, 100) && touched(recorder, 499));
	assert_false(touched(recorder, 99) || touched(recorder, 500));
	assert_int_equal(wss_recorder_start(recorder, NULL), 0);
	fake_kvm_unmap_all();
	assert_int_equal(walk(recorder).touched_pages, 0);
	assert_false(touched(recorder, 100));
	wss_recorder_close(recorder);
}

/* RAM is what QEMU has in the guest's RAM, wherever the guest sees it. */
static void test_layout_of_slots(void **unused)
{
	struct wss_recorder *recorder;

	(void)unused;
	/* Two blocks of RAM; the second, of 32 MiB, lies at 4 GiB. Of its slot the last 4 MiB are no RAM. */
	ranges[1] = (struct wss_range){ 2 * HOST_ADDRESS, 2 * HOST_ADDRESS + 32 * WSS_MIB };
	guest->ram.n_ranges = 2;
	fake_kvm.slots[2] = (struct wss_kvm_slot_record){
		.first_page = 1 << 20, .n_pages = 36 * 256, .host_address = 2 * HOST_ADDRESS
	};
	fake_kvm.n_slots = 3;
	recorder = start();
	fake_kvm_map(0xfd000, 64, FAKE_READ, true);
	fake_kvm_map(16384 - 10, 20, FAKE_READ, true);
	fake_kvm_map((1 << 20) + 32 * 256 - 5, 100, FAKE_READ, true);
	assert_int_equal(walk(recorder).touched_pages, 10 + 5);
	assert_int_equal(wss_recorder_counts(recorder).outside_pages, 64 + 10 + 95);
	assert_true(touched(recorder, 16383) && touched(recorder, (1 << 20) + 32 * 256 - 1));
	/* Those of the last walk. */
	assert_int_equal(walk(recorder).outside_pages, 64 + 10 + 95);
	/* Memory that was unplugged. */
	fake_kvm.n_slots = 0;
	assert_int_equal(wss_recorder_start(recorder, NULL), -1);
	fake_kvm.n_slots = 3;
	fake_kvm.slots_fail = true;
	assert_int_equal(wss_recorder_start(recorder, NULL), -1);
	wss_recorder_close(recorder);
}

/* Where it is not known which of QEMU's memory is the guest's, the machine type says where its RAM is. */
static void test_layout_of_machine(void **unused)
{
	struct wss_recorder *recorder;

	(void)unused;
	guest->ram_known = false;
	recorder = start();
	fake_kvm_map(16384 - 10, 20, FAKE_READ, true);
	assert_int_equal(walk(recorder).touched_pages, 10);
	wss_recorder_close(recorder);
}

/* Memory that is plugged between two windows counts in the second. */
static void test_plugged(void **unused)
{
	struct wss_recorder *recorder = start();

	(void)unused;
	fake_kvm_map(1 << 20, 7, FAKE_READ, true);
	assert_int_equal(walk(recorder).touched_pages, 0);
	ranges[1] = (struct wss_range){ 2 * HOST_ADDRESS, 2 * HOST_ADDRESS + WSS_MIB };
	guest->ram.n_ranges = 2;
	fake_kvm.slots[fake_kvm.n_slots++] = (struct wss_kvm_slot_record){
		.first_page = 1 << 20, .n_pages = 256, .host_address = 2 * HOST_ADDRESS
	};
	assert_int_equal(wss_recorder_start(recorder, NULL), 0);
	assert_int_equal(walk(recorder).touched_pages, 7);
	wss_recorder_close(recorder);
}

/* Where entries are marked as accessed differs; and only where KVM maps in advance do the marks matter. */
static void test_accessed(void **unused)
{
	struct wss_recorder *recorder;

	(void)unused;
	fake_kvm_map(0, 100, FAKE_READ, true);
	fake_kvm_map(100, 50, FAKE_READ, false);
	recorder = start();
	assert_int_equal(walk(recorder).accessed_pages, 150);
	assert_int_equal(fake_kvm.accessed_bit, WSS_KVM_ACCESSED_X86);
	host.ept = true;
	walk(recorder);
	assert_int_equal(fake_kvm.accessed_bit, WSS_KVM_ACCESSED_EPT);
	wss_recorder_close(recorder);
	host.tdp_mmu = WSS_NO;
	recorder = start();
	assert_int_equal(walk(recorder).accessed_pages, 100);
	assert_int_equal(wss_recorder_counts(recorder).touched_pages, 150);
	wss_recorder_close(recorder);
	host.two_dim_paging = WSS_NO;
	recorder = start();
	assert_int_equal(walk(recorder).accessed_pages, 100);
	assert_int_equal(fake_kvm.accessed_bit, WSS_KVM_ACCESSED_X86);
	wss_recorder_close(recorder);
}

static void test_walk_fails(void **unused)
{
	struct wss_recorder *recorder = start();
	struct wss_error err = WSS_ERROR_INIT;

	(void)unused;
	fake_kvm_map(0, 100, FAKE_READ, true);
	fake_kvm.walk_fails = true;
	assert_int_equal(wss_recorder_walk(recorder, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "changed");
	assert_true(wss_recorder_counts(recorder).incomplete);
	assert_int_equal(wss_recorder_counts(recorder).touched_pages, 100);
	fake_kvm.walk_fails = false;
	assert_false(walk(recorder).incomplete);
	wss_recorder_close(recorder);
}

/* --- windows with it --- */

/* A window in which these pages are mapped at its end, and what KVM's gauge says. */
struct window {
	enum wss_recorder_choice choice;
	uint64_t touched, in_advance, outside, large;
	enum fake_kvm_kind kind;
	uint64_t gauge_pages, gauge_large;
	bool nested;
	struct wss_amount huge_bytes;

	struct wss_reading reading;
	struct wss_page_view view;
	struct wss_sample sample;
};

static void window_read(struct window *window, struct wss_pagewise *pages, const struct wss_kvm_counts *counts)
{
	uint64_t high = window->gauge_pages * PAGE + window->gauge_large * 2 * WSS_MIB;

	window->reading = (struct wss_reading){
		.wss_bytes = high, .low_bytes = (window->gauge_pages + window->gauge_large) * PAGE, .high_bytes = high,
		.granularity_bytes = window->gauge_large ? 2 * WSS_MIB : PAGE,
	};
	wss_pagewise_refine(pages, counts, window->nested, &window->reading);
	window->view = (struct wss_page_view){ .touched = { .known = false } };
	wss_pagewise_view(pages, &window->view);
	window->sample = (struct wss_sample){ .quality = WSS_QUALITY_OK };
	window->sample.wss_bytes = wss_amount_of(window->reading.wss_bytes);
	window->sample.high_bytes = wss_amount_of(window->reading.high_bytes);
	window->sample.memory.huge_bytes = window->huge_bytes;
	wss_pagewise_explain(pages, &window->sample);
}

static void run(struct window *window)
{
	struct wss_kvm_counts counts = { .pages_4k = 1, .has_tlb_flushes = true };
	struct wss_pagewise pages;

	fake_kvm_unmap_all();
	fake_kvm_map(0, window->touched, window->kind, true);
	fake_kvm_map(window->touched, window->in_advance, window->kind, false);
	fake_kvm_map(0xfd000, window->outside, window->kind, true);
	fake_kvm_map_large(8192, window->large);
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, window->choice, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	wss_pagewise_started(&pages, &counts, test_now_ns, WINDOW_NS);
	counts.pages_4k = window->gauge_pages;
	counts.pages_2m = window->gauge_large;
	window_read(window, &pages, &counts);
	wss_pagewise_close(&pages);
}

static bool noted(const struct window *window, const char *part)
{
	for (size_t i = 0; i < window->sample.n_notes; i++)
		if (strstr(window->sample.notes[i], part))
			return true;
	return false;
}

/* On 4 KiB pages the recorder is exact, also where the gauge has device memory, too. */
static void test_exact(void **unused)
{
	struct window window = { .touched = PAGES_16_MIB, .kind = FAKE_HALF_WRITTEN, .outside = 500,
				 .gauge_pages = PAGES_16_MIB + 500, .huge_bytes = { true, 0 } };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 16 * WSS_MIB);
	assert_int_equal(window.reading.low_bytes, 16 * WSS_MIB);
	assert_int_equal(window.reading.high_bytes, 16 * WSS_MIB);
	assert_true(window.view.touched.known && window.view.written.known);
	assert_string_equal(window.sample.recorder, "bpf");
	assert_int_equal(window.sample.mapped_bytes.value, (PAGES_16_MIB + 500) * PAGE);
	assert_int_equal(window.sample.written_bytes.value, 8 * WSS_MIB);
	assert_int_equal(window.sample.written_low_bytes.value, 8 * WSS_MIB);
	assert_int_equal(window.sample.written_high_bytes.value, 8 * WSS_MIB);
	assert_int_equal(window.sample.quality, WSS_QUALITY_OK);
	/* A few pages that no walk has found are more than nothing. */
	window = (struct window){ .gauge_pages = 9 };
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 9 * PAGE);
	assert_int_equal(window.reading.high_bytes, 9 * PAGE);
	assert_false(window.view.touched.known);
}

static void assert_written_bounded(struct window *window, const char *why)
{
	run(window);
	assert_string_equal(window->sample.recorder, "bpf");
	assert_false(window->sample.written_bytes.known || window->sample.written_low_bytes.known);
	assert_true(noted(window, why));
}

static void test_written_bounded(void **unused)
{
	const struct window exact = { .touched = 500, .kind = FAKE_HALF_WRITTEN, .gauge_pages = 500,
				      .huge_bytes = { true, 0 } };
	struct window window = exact;

	(void)unused;
	window.huge_bytes.value = 2 * WSS_MIB;
	assert_written_bounded(&window, "huge pages");
	/* No more than what is writable was written. */
	assert_int_equal(window.sample.written_high_bytes.value, 250 * PAGE);
	window = exact;
	window.huge_bytes.known = false;
	assert_written_bounded(&window, "not known");
	window = exact;
	window.large = window.gauge_large = 3;
	assert_written_bounded(&window, "huge pages");
	assert_int_equal(window.sample.written_high_bytes.value, window.reading.high_bytes);
	window = exact;
	guest->config.hostdevs = 1;
	assert_written_bounded(&window, "assigned devices");
	guest->config.hostdevs = 0;
	window = exact;
	host.soft_dirty = WSS_NO;
	assert_written_bounded(&window, "soft-dirty");
}

/* Of large entries it is known which blocks were touched. */
static void test_blocks(void **unused)
{
	struct window window = { .touched = 2000, .large = 13, .gauge_pages = 2000, .gauge_large = 13 };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 26 * WSS_MIB + 2000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 26 * WSS_MIB + 2000 * PAGE);
	assert_int_equal(window.reading.low_bytes, 2013 * PAGE);
	assert_false(window.view.touched.known || window.view.written.known);
	assert_true(window.view.blocks.known);
	assert_string_equal(window.sample.recorder, "bpf");
}

/* Pages that KVM has mapped in advance may not have been touched. */
static void test_in_advance(void **unused)
{
	struct window window = { .touched = 1000, .in_advance = 3000, .gauge_pages = 4000 };

	(void)unused;
	host.two_dim_paging = WSS_NO;
	run(&window);
	assert_int_equal(window.reading.low_bytes, 1000 * PAGE);
	assert_int_equal(window.reading.wss_bytes, 4000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 4000 * PAGE);
	assert_false(window.view.touched.known || window.view.blocks.known);
	assert_true(noted(&window, "in advance"));
	/* Shadow tables may map a page twice, which the gauge counts twice. */
	window = (struct window){ .touched = 1000, .gauge_pages = 2000 };
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 1000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 1000 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_OK);
	/* Without the recorder neither is known. */
	window.choice = WSS_RECORDER_COUNTERS;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 2000 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(noted(&window, "shadow paging"));
	host.two_dim_paging = WSS_YES;
	host.tdp_mmu = WSS_NO;
	run(&window);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(noted(&window, "tdp_mmu"));
}

/* Addresses of a nested guest are its own. */
static void test_nested(void **unused)
{
	struct window window = { .touched = 5000, .gauge_pages = 6000, .nested = true };

	(void)unused;
	run(&window);
	assert_string_equal(window.sample.recorder, "counters");
	assert_int_equal(window.reading.wss_bytes, 6000 * PAGE);
	assert_false(window.view.touched.known);
	assert_false(window.sample.written_high_bytes.known);
}

/* If it finds less than KVM counts, it observes the wrong VM or does not understand its tables. */
static void test_inconsistent(void **unused)
{
	struct window window = { .gauge_pages = 5000, .huge_bytes = { true, 0 } };

	(void)unused;
	run(&window);
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_string_equal(window.sample.recorder, "counters");
	assert_false(window.sample.written_high_bytes.known);
	assert_true(noted(&window, "more pages than its tables"));
}

static void test_failed_walk_is_not_used(void **unused)
{
	struct window window = { .touched = 4900, .gauge_pages = 5000 };

	(void)unused;
	fake_kvm.walk_fails = true;
	run(&window);
	assert_string_equal(window.sample.recorder, "counters");
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_true(noted(&window, "the tables changed"));
}

static void test_counters(void **unused)
{
	struct window window = { .choice = WSS_RECORDER_COUNTERS, .touched = 9, .gauge_pages = 5000 };

	(void)unused;
	run(&window);
	assert_int_equal(fake_kvm.walks, 0);
	assert_string_equal(window.sample.recorder, "counters");
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_int_equal(window.sample.mapped_bytes.value, 5000 * PAGE);
	assert_true(noted(&window, "not requested"));
	/* "auto" does the same if the recorder fails, and notes the reason. */
	fake_kvm.slots_fail = true;
	window.choice = WSS_RECORDER_AUTO;
	run(&window);
	assert_string_equal(window.sample.recorder, "counters");
	assert_true(noted(&window, "no slots here"));
	fake_kvm.open_fails = true;
	run(&window);
	assert_true(noted(&window, "no VM here"));
}

static void test_required(void **unused)
{
	const struct wss_kvm_counts counts = { .pages_4k = 1 };
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_pagewise pages;

	(void)unused;
	fake_kvm.open_fails = true;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_PAGES, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "no VM here");
	fake_kvm.open_fails = false;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_PAGES, &err), 0);
	fake_kvm.slots_fail = true;
	assert_int_equal(wss_pagewise_begin(&pages, &counts, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "no slots here");
	wss_pagewise_close(&pages);
}

static void poll_until(struct wss_pagewise *pages, const struct wss_kvm_counts *counts, uint64_t ns)
{
	for (; test_now_ns < ns; test_now_ns += 100 * WSS_NS_PER_MS)
		wss_pagewise_poll(pages, counts);
}

/* What the host unmaps in the window was seen before, and what it may have hidden is the high bound. */
static void test_unmapped_in_window(void **unused)
{
	struct wss_kvm_counts counts = { .pages_4k = 1, .has_tlb_flushes = true };
	struct window window = { .gauge_pages = 4000 };
	struct wss_pagewise pages;
	uint64_t start_ns;

	(void)unused;
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, WSS_RECORDER_AUTO, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	start_ns = test_now_ns;
	wss_pagewise_started(&pages, &counts, start_ns, WINDOW_NS);
	fake_kvm_map(0, 4000, FAKE_READ, true);
	/* Undisturbed, it is read at a sixteenth, an eighth and a quarter of the window, then at a half. */
	poll_until(&pages, &counts, start_ns + WINDOW_NS / 2 - WSS_NS_PER_S);
	assert_int_equal(fake_kvm.walks, 3);
	/* Each time that the host has unmapped something it is read again. */
	for (int i = 0; i < 5; i++) {
		counts.tlb_flushes++;
		poll_until(&pages, &counts, test_now_ns + 150 * WSS_NS_PER_MS);
	}
	assert_int_equal(fake_kvm.walks, 8);
	/* A quarter is unmapped, then as much is new. */
	fake_kvm_unmap_all();
	fake_kvm_map(1000, 4000, FAKE_READ, true);
	counts.pages_4k = 4000;
	window_read(&window, &pages, &counts);
	assert_int_equal(window.reading.low_bytes, 5000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 5250 * PAGE);
	assert_false(window.view.touched.known);
	wss_pagewise_close(&pages);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_refuses),	    TEST(test_adds_walks_up), TEST(test_layout_of_slots),
		TEST(test_layout_of_machine), TEST(test_plugged),     TEST(test_accessed),
		TEST(test_walk_fails),	    TEST(test_exact),	      TEST(test_written_bounded),
		TEST(test_blocks),	    TEST(test_in_advance),    TEST(test_nested),
		TEST(test_inconsistent),    TEST(test_failed_walk_is_not_used), TEST(test_counters),
		TEST(test_required),	    TEST(test_unmapped_in_window),
	};

	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
