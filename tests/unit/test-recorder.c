/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakekvm.h"

#include "base/clock.h"
#include "base/units.h"
#include "measure/pagewise.h"

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
	return test_now_ns += 1000;
}

/* A guest of 64 MiB: one slot of RAM, and one of a device above it. */
static int set_up(void **unused)
{
	static const struct wss_clock_source clock = {.now_ns = test_clock};
	static const struct wss_guest_ops ops = {.refresh = NULL};

	tree = make_tree();
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	host.soft_dirty = host.tdp_mmu = host.two_dim_paging = WSS_YES;
	guest = wss_guest_new(&ops, NULL, NULL);
	assert_non_null(guest);
	guest->process.pid = 4242;
	guest->config.initial_bytes = RAM_BYTES;
	snprintf(guest->config.machine, sizeof(guest->config.machine), "pc-q35-7.2");
	ranges[0] = (struct wss_range){HOST_ADDRESS, HOST_ADDRESS + RAM_BYTES};
	guest->ram = (struct wss_ram){.n_ranges = 1, .ranges = ranges, .total_bytes = RAM_BYTES};
	guest->ram_known = true;
	memset(&fake_kvm, 0, sizeof(fake_kvm));
	fake_kvm.n_slots = 2;
	fake_kvm.slots[0] =
		(struct wss_kvm_slot_record){.n_pages = 16384, .host_address = HOST_ADDRESS};
	fake_kvm.slots[1] = (struct wss_kvm_slot_record){
		.first_page = 0xfd000, .n_pages = 4096, .host_address = HOST_ADDRESS + RAM_BYTES};
	test_now_ns = WSS_NS_PER_S;
	wss_clock_inject(&clock);
	return 0;
}

static int tear_down(void **unused)
{
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

	if (wss_recorder_open(&host, guest, &recorder, &err) < 0 ||
	    wss_recorder_start(recorder, &err) < 0)
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

TEST(test_refuses)
{
	assert_int_equal(wss_recorder_probe(&host, NULL, NULL), 0);
	assert_int_equal(wss_recorder_probe(&host, guest, NULL), 0);
	fake_kvm.open_fails = true;
	assert_refused("no VM");
	fake_kvm.probe_fails = true;
	assert_refused("no programs");
	fake_kvm.probe_fails = false;
	guest->ram_known = false;
	wss_error_set(&guest->ram_error, WSS_ERR_FAILED, "no RAM there");
	guest->process.pidfd = 0;
	assert_refused("no RAM there");
	guest->process.pidfd = -1;
	wss_recorder_close(NULL);
}

/* Where marks were cleared, only entries that are marked again count, a large one as a whole. */
TEST(test_counts_marks)
{
	struct wss_recorder *recorder = start();
	struct wss_recorder_counts counts;

	wss_recorder_need_marks(recorder);
	fake_kvm_map(0, 300, FAKE_WRITTEN, false);
	fake_kvm_map(384, 100, FAKE_WRITTEN, true);
	fake_kvm_map_large(1024, 2);
	fake_kvm.leaves[fake_kvm.n_leaves - 1].accessed = 0;
	counts = walk(recorder);
	assert_int_equal(counts.touched_pages, 101);
	assert_int_equal(counts.touched_bytes, 100 * PAGE + 2 * WSS_MIB);
	assert_int_equal(counts.mapped_bytes, 400 * PAGE + 4 * WSS_MIB);
	assert_int_equal(counts.written_pages, 101);
	assert_true(touched(recorder, 384) && !touched(recorder, 0));
	/* Marks that somebody has cleared meanwhile are not forgotten, and count once. */
	fake_kvm_unmap_all();
	fake_kvm_map(0, 300, FAKE_WRITTEN, false);
	fake_kvm_map(384, 10, FAKE_WRITTEN, true);
	counts = walk(recorder);
	assert_int_equal(counts.touched_pages, 101);
	assert_int_equal(counts.touched_bytes, 100 * PAGE + 2 * WSS_MIB);
	wss_recorder_close(recorder);
}

TEST(test_adds_walks_up)
{
	struct wss_recorder *recorder = start();
	struct wss_recorder_counts counts;

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
TEST(test_layout_of_slots)
{
	struct wss_recorder *recorder;

	/* Two blocks of RAM; the second, of 32 MiB, lies at 4 GiB. Of its slot the last 4 MiB are no RAM. */
	ranges[1] = (struct wss_range){2 * HOST_ADDRESS, 2 * HOST_ADDRESS + 32 * WSS_MIB};
	guest->ram.n_ranges = 2;
	fake_kvm.slots[2] = (struct wss_kvm_slot_record){
		.first_page = 1 << 20, .n_pages = 36 * 256, .host_address = 2 * HOST_ADDRESS};
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

/* Memory that is plugged between two windows counts in the second. */
TEST(test_plugged)
{
	struct wss_recorder *recorder = start();

	fake_kvm_map(1 << 20, 7, FAKE_READ, true);
	assert_int_equal(walk(recorder).touched_pages, 0);
	ranges[1] = (struct wss_range){2 * HOST_ADDRESS, 2 * HOST_ADDRESS + WSS_MIB};
	guest->ram.n_ranges = 2;
	fake_kvm.slots[fake_kvm.n_slots++] = (struct wss_kvm_slot_record){
		.first_page = 1 << 20, .n_pages = 256, .host_address = 2 * HOST_ADDRESS};
	assert_int_equal(wss_recorder_start(recorder, NULL), 0);
	assert_int_equal(walk(recorder).touched_pages, 7);
	wss_recorder_close(recorder);
}

static void assert_slots(struct wss_recorder *recorder, enum wss_recorder_slots slots)
{
	assert_int_equal(walk(recorder).slots, slots);
	assert_int_equal(wss_recorder_start(recorder, NULL), 0);
	assert_int_equal(walk(recorder).slots, WSS_SLOTS_SAME);
}

/* What has become of the slots since the start, in whatever order the kernel has them; but the dirty log is no change. */
TEST(test_slots_change)
{
	struct wss_kvm_slot_record *slots = fake_kvm.slots, device = slots[1];
	struct wss_recorder *recorder = start();

	slots[1] = slots[0];
	slots[0] = device;
	slots[1].flags = KVM_MEM_LOG_DIRTY_PAGES;
	assert_int_equal(walk(recorder).slots, WSS_SLOTS_SAME);
	slots[2] = (struct wss_kvm_slot_record){
		.first_page = 1 << 20, .n_pages = 256, .host_address = 2 * HOST_ADDRESS};
	fake_kvm.n_slots = 3;
	assert_slots(recorder, WSS_SLOTS_GREW);
	slots[2].first_page += 256;
	assert_slots(recorder, WSS_SLOTS_MOVED);
	slots[2].host_address += 256 * PAGE;
	assert_slots(recorder, WSS_SLOTS_MOVED);
	slots[2].n_pages = 200;
	assert_slots(recorder, WSS_SLOTS_SHRANK);
	fake_kvm.n_slots = 2;
	assert_int_equal(walk(recorder).slots, WSS_SLOTS_SHRANK);
	/* It is back, but what was in it is not. */
	fake_kvm.n_slots = 3;
	assert_int_equal(walk(recorder).slots, WSS_SLOTS_SHRANK);
	fake_kvm.slots_fail = true;
	assert_int_equal(wss_recorder_walk(recorder, NULL), -1);
	wss_recorder_close(recorder);
}

/* Where entries are marked as accessed differs; and only where KVM maps in advance do the marks matter. */
TEST(test_accessed)
{
	struct wss_recorder *recorder;

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

TEST(test_walk_fails)
{
	struct wss_recorder *recorder = start();
	struct wss_error err = WSS_ERROR_INIT;

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
	uint64_t touched, shadowed, in_advance, outside, large;
	enum fake_kvm_kind kind;
	uint64_t gauge_pages, gauge_large;
	bool nested;
	struct wss_amount huge_bytes;
	uint64_t plugged; /* within the window, and touched there */

	struct wss_reading reading;
	struct wss_page_view view;
	struct wss_sample sample;
};

static void window_read(struct window *window, struct wss_pagewise *pages,
			const struct wss_kvm_counts *counts)
{
	uint64_t high = window->gauge_pages * PAGE + window->gauge_large * 2 * WSS_MIB;

	window->reading = (struct wss_reading){
		.wss_bytes = high,
		.low_bytes = (window->gauge_pages + window->gauge_large) * PAGE,
		.high_bytes = high,
		.granularity_bytes = window->gauge_large ? 2 * WSS_MIB : PAGE,
	};
	wss_pagewise_refine(pages, counts, window->nested, &window->reading);
	window->view = (struct wss_page_view){.touched = {.known = false}};
	wss_pagewise_view(pages, &window->view);
	window->sample = (struct wss_sample){.quality = WSS_QUALITY_OK};
	window->sample.wss_bytes = wss_amount_of(window->reading.wss_bytes);
	window->sample.high_bytes = wss_amount_of(window->reading.high_bytes);
	window->sample.memory.huge_bytes = window->huge_bytes;
	wss_pagewise_explain(pages, &window->sample);
}

static void run(struct window *window)
{
	struct wss_kvm_counts counts = {.pages_4k = 1, .has_tlb_flushes = true};
	struct wss_pagewise pages;

	fake_kvm_unmap_all();
	fake_kvm_map(0, window->touched, window->kind, true);
	fake_kvm.guest_mode = window->nested;
	fake_kvm_map(0, window->shadowed, window->kind, true);
	fake_kvm_map(window->touched, window->in_advance, window->kind, false);
	fake_kvm.guest_mode = false;
	fake_kvm_map(0xfd000, window->outside, window->kind, true);
	fake_kvm_map_large(8192, window->large);
	fake_kvm_map(1 << 20, window->plugged, window->kind, true);
	assert_int_equal(wss_pagewise_open(&pages, &host, guest, window->choice, NULL), 0);
	assert_int_equal(wss_pagewise_begin(&pages, &counts, NULL), 0);
	wss_pagewise_started(&pages, &counts, test_now_ns, WINDOW_NS);
	if (window->plugged)
		fake_kvm.slots[fake_kvm.n_slots++] = (struct wss_kvm_slot_record){
			.first_page = 1 << 20, .n_pages = 256, .host_address = 2 * HOST_ADDRESS};
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
TEST(test_exact)
{
	struct window window = {.touched = PAGES_16_MIB,
				.kind = FAKE_HALF_WRITTEN,
				.outside = 500,
				.gauge_pages = PAGES_16_MIB + 500,
				.huge_bytes = {true, 0}};

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
	window = (struct window){.gauge_pages = 9};
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

TEST(test_written_bounded)
{
	const struct window exact = {.touched = 500,
				     .kind = FAKE_HALF_WRITTEN,
				     .gauge_pages = 500,
				     .huge_bytes = {true, 0}};
	struct window window = exact;

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
TEST(test_blocks)
{
	struct window window = {
		.touched = 2000, .large = 13, .gauge_pages = 2000, .gauge_large = 13};

	run(&window);
	assert_int_equal(window.reading.wss_bytes, 26 * WSS_MIB + 2000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 26 * WSS_MIB + 2000 * PAGE);
	assert_int_equal(window.reading.low_bytes, 2013 * PAGE);
	assert_false(window.view.touched.known || window.view.written.known);
	assert_true(window.view.blocks.known);
	assert_string_equal(window.sample.recorder, "bpf");
}

/* A DIMM is no RAM that is known, so what it holds bounds the figure. */
TEST(test_plugged_in_window)
{
	struct window window = {.touched = 500, .plugged = 64, .gauge_pages = 564};

	run(&window);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(noted(&window, "plugged into the guest within the window"));
	assert_int_equal(window.reading.low_bytes, 500 * PAGE);
	assert_int_equal(window.reading.high_bytes, 564 * PAGE);
	assert_false(window.view.touched.known);
	window.large = window.gauge_large = 3;
	run(&window);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_false(window.view.blocks.known);
}

/* Pages that KVM has mapped in advance may not have been touched. */
TEST(test_in_advance)
{
	struct window window = {.touched = 1000, .in_advance = 3000, .gauge_pages = 4000};

	host.two_dim_paging = WSS_NO;
	run(&window);
	assert_int_equal(window.reading.low_bytes, 1000 * PAGE);
	assert_int_equal(window.reading.wss_bytes, 4000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 4000 * PAGE);
	assert_false(window.view.touched.known || window.view.blocks.known);
	assert_true(noted(&window, "in advance"));
	/* Shadow tables may map a page twice, which the gauge counts twice. */
	window = (struct window){.touched = 1000, .gauge_pages = 2000};
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

/* KVM's counters have a page twice that a nested guest touches, too; and shadows are filled in advance. */
TEST(test_nested)
{
	struct window window = {
		.touched = 5000, .shadowed = 1000, .gauge_pages = 6000, .nested = true};

	run(&window);
	assert_string_equal(window.sample.recorder, "bpf");
	assert_int_equal(window.sample.quality, WSS_QUALITY_OK);
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_int_equal(window.reading.low_bytes, 5000 * PAGE);
	assert_int_equal(window.reading.high_bytes, 6000 * PAGE);
	assert_true(noted(&window, "nested guest"));
	assert_false(window.view.touched.known);
	window.in_advance = 100;
	run(&window);
	assert_int_equal(window.reading.low_bytes, 5000 * PAGE);
	assert_int_equal(window.reading.wss_bytes, 5100 * PAGE);
	window.shadowed = 100;
	run(&window);
	assert_true(noted(&window, "more pages than its tables"));
	window.choice = WSS_RECORDER_COUNTERS;
	run(&window);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_int_equal(window.reading.wss_bytes, 6000 * PAGE);
}

/* If it finds less than KVM counts, it observes the wrong VM or does not understand its tables. */
TEST(test_inconsistent)
{
	struct window window = {.gauge_pages = 5000, .huge_bytes = {true, 0}};

	run(&window);
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_int_equal(window.sample.quality, WSS_QUALITY_DEGRADED);
	assert_string_equal(window.sample.recorder, "counters");
	assert_false(window.sample.written_high_bytes.known);
	assert_true(noted(&window, "more pages than its tables"));
}

TEST(test_failed_walk_is_not_used)
{
	struct window window = {.touched = 4900, .gauge_pages = 5000};

	fake_kvm.walk_fails = true;
	run(&window);
	assert_string_equal(window.sample.recorder, "counters");
	assert_int_equal(window.reading.wss_bytes, 5000 * PAGE);
	assert_true(noted(&window, "the tables changed"));
}

TEST(test_counters)
{
	struct window window = {.choice = WSS_RECORDER_COUNTERS, .touched = 9, .gauge_pages = 5000};

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

TEST(test_required)
{
	const struct wss_kvm_counts counts = {.pages_4k = 1};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_pagewise pages;

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
TEST(test_unmapped_in_window)
{
	struct wss_kvm_counts counts = {.pages_4k = 1, .has_tlb_flushes = true};
	struct window window = {.gauge_pages = 4000};
	struct wss_pagewise pages;
	uint64_t start_ns;

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

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
