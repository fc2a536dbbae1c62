/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"
#include "fakekvm.h"

#include "measure/control.h"
#include "measure/methods.h"

static struct fake *fake;
static char *tree;
static struct wss_host host;

/* A suitable host without debugfs: the counters come from the source. */
static int set_up(void **unused)
{
	tree = make_tree();
	put_text(tree, "proc/sys/kernel/osrelease", "6.1.0\n");
	put_text(tree, "sys/module/kvm/parameters/tdp_mmu", "Y\n");
	put_text(tree, "sys/module/kvm_amd/parameters/npt", "1\n");
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	memset(&fake_kvm, 0, sizeof(fake_kvm));
	fake_kvm.probe_fails = true;
	fake = fake_new("mmu");
	fake_make_kvm(fake);
	fake->has_counts = true;
	fake->counts = (struct wss_kvm_counts){.pages_4k = 100,
					       .has_tlb_flushes = true,
					       .has_pf_fixed = true,
					       .has_guest_mode = true,
					       .has_nested = true};
	return 0;
}

static int tear_down(void **unused)
{
	fake_free(fake);
	wss_host_close(&host);
	remove_tree(tree);
	unsetenv("VIRT_WSS_FAULT");
	return 0;
}

static void attach(void)
{
	assert_int_equal(wss_guest_attach(fake->guest, &host, NULL), 0);
}

static void assert_refused(struct wss_guest *guest, enum wss_error_code code, const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_tracker_mmu.probe(&host, guest, &err), -1);
	assert_error(&err, code, part);
	/* A probe changes nothing. */
	assert_int_not_equal(fake_state(fake), 'T');
}

static void assert_usable(struct wss_guest *guest)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_tracker_mmu.probe(&host, guest, &err) < 0)
		fail_msg("%s", err.text);
}

TEST(test_probe)
{
	assert_usable(NULL);
	assert_usable(fake->guest);
	attach();
	assert_usable(fake->guest);
}

/* TCG has no second-level mappings. */
TEST(test_refuses_tcg)
{
	fake->guest->kvm = false;
	snprintf(fake->guest->config.type, sizeof(fake->guest->config.type), "qemu");
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "type 'qemu'");
	attach();
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "type 'qemu'");
}

TEST(test_refuses_confidential)
{
	attach();
	snprintf(fake->guest->config.launch_security, sizeof(fake->guest->config.launch_security),
		 "sev");
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "confidential (sev)");
}

/* With shadow paging KVM's counters count other things than the guest's memory, so its tables must be readable. */
TEST(test_shadow_paging_needs_tables)
{
	host.two_dim_paging = WSS_NO;
	assert_refused(
		fake->guest, WSS_ERR_UNSUPPORTED,
		"shadow paging on this host (ept/npt is off), whose tables cannot be read: no programs");
	assert_refused(NULL, WSS_ERR_UNSUPPORTED, "shadow paging");
	fake_kvm.probe_fails = false;
	assert_usable(NULL);
	host.two_dim_paging = WSS_UNKNOWN;
	assert_refused(NULL, WSS_ERR_UNSUPPORTED, "KVM is not loaded");
}

TEST(test_refuses_old_kernel)
{
	attach();
	host.version = WSS_KERNEL_VERSION(5, 15);
	host.soft_dirty = WSS_YES;
	snprintf(host.release, sizeof(host.release), "5.15.0-91-generic");
	setenv("VIRT_WSS_FAULT", "selftest-fails", 1);
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "5.15.0-91-generic");
	assert_refused(NULL, WSS_ERR_UNSUPPORTED, "lost a write");
	setenv("VIRT_WSS_FAULT", "selftest-cannot", 1);
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "cannot be run");
	unsetenv("VIRT_WSS_FAULT");
	host.soft_dirty = WSS_NO;
	assert_usable(fake->guest);
}

TEST(test_refuses_without_counters)
{
	attach();
	if (fake->guest->process.pidfd < 0)
		skip();
	fake->has_counts = false;
	assert_refused(fake->guest, WSS_ERR_UNSUPPORTED, "not in debugfs, and: no counters here");
}

/* Opens an instance on the attached guest, whose lock is held. */
static struct wss_tracker *open_as(const struct wss_track_options *options)
{
	struct wss_tracker *tracker = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	attach();
	assert_int_equal(wss_control_take(&fake->guest->process, &err), 0);
	assert_int_equal(wss_tracker_mmu.open(&host, fake->guest, options, &tracker, &err), 0);
	assert_ptr_equal(tracker->ops, &wss_tracker_mmu);
	return tracker;
}

static struct wss_tracker *open_tracker(void)
{
	static const struct wss_track_options native = {.granularity = WSS_GRANULARITY_NATIVE};

	return open_as(&native);
}

static struct wss_reading begin_and_poll(struct wss_tracker *tracker,
					 const struct wss_kvm_counts *later)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;
	struct wss_span span;

	if (wss_tracker_mmu.begin(tracker, &span, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(span.end_ns >= span.start_ns);
	fake->counts = *later;
	wss_tracker_mmu.want_pages(tracker);
	if (wss_tracker_mmu.poll(tracker, &reading, &err) < 0)
		fail_msg("%s", err.text);
	return reading;
}

static struct wss_sample explained(const struct wss_tracker *tracker)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};

	wss_tracker_mmu.explain(tracker, &sample);
	return sample;
}

static void close_tracker(struct wss_tracker *tracker)
{
	wss_tracker_mmu.close(tracker);
	wss_control_release(&fake->guest->process);
}

TEST(test_window)
{
	struct wss_kvm_counts later = fake->counts;
	struct wss_tracker *tracker;
	struct wss_reading reading;
	struct wss_sample sample;

	tracker = open_tracker();
	/* QEMU would have to be asked. */
	assert_int_equal(wss_tracker_mmu.check_stopped(tracker, NULL), -1);
	later.pages_4k = 1100;
	later.pf_fixed = 1000;
	reading = begin_and_poll(tracker, &later);
	assert_int_equal(reading.wss_bytes, 1100 * 4 * WSS_KIB);
	assert_int_equal(reading.low_bytes, reading.wss_bytes);
	assert_int_equal(reading.high_bytes, reading.wss_bytes);
	assert_int_equal(reading.granularity_bytes, 4096);
	assert_true(reading.faults.known);
	assert_int_equal(reading.faults.value, 1000);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_true(has_note(&sample, "devices"));
	/* The working set cannot exceed the guest's RAM. */
	later.pages_4k = 100000;
	reading = begin_and_poll(tracker, &later);
	assert_int_equal(reading.high_bytes, FAKE_RAM);
	close_tracker(tracker);
}

TEST(test_faults_unknown)
{
	struct wss_kvm_counts later;
	struct wss_tracker *tracker;

	fake->counts = later = (struct wss_kvm_counts){.pages_4k = 100};
	tracker = open_tracker();
	assert_false(begin_and_poll(tracker, &later).faults.known);
	/* A QEMU that ends has fewer virtual CPUs to count. */
	fake->counts =
		(struct wss_kvm_counts){.pages_4k = 100, .has_pf_fixed = true, .pf_fixed = 5000};
	later = (struct wss_kvm_counts){.pages_4k = 200, .has_pf_fixed = true, .pf_fixed = 3000};
	assert_false(begin_and_poll(tracker, &later).faults.known);
	close_tracker(tracker);
}

/* Those that the guest takes before the first reading after the zap are faults of the window, too. */
TEST(test_faults_at_once)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;
	struct wss_reading reading;
	struct wss_span span;

	fake->counts =
		(struct wss_kvm_counts){.pages_4k = 1000, .has_pf_fixed = true, .pf_fixed = 5000};
	tracker = open_tracker();
	fake->faults_each = 100;
	assert_int_equal(tracker->ops->begin(tracker, &span, &err), 0);
	assert_int_equal(tracker->ops->poll(tracker, &reading, &err), 0);
	assert_true(reading.faults.known);
	assert_int_equal(reading.faults.value, 200);
	close_tracker(tracker);
}

TEST(test_huge_pages)
{
	struct wss_kvm_counts later = fake->counts;
	struct wss_tracker *tracker;
	struct wss_reading reading;
	struct wss_sample sample;

	tracker = open_tracker();
	later.pages_2m = 3;
	later.pf_fixed += 3;
	reading = begin_and_poll(tracker, &later);
	assert_int_equal(reading.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(reading.wss_bytes, reading.high_bytes);
	assert_int_equal(reading.low_bytes, 103 * 4 * WSS_KIB);
	sample = explained(tracker);
	assert_true(has_note(&sample, "2 MiB"));
	later.pages_1g = 1;
	begin_and_poll(tracker, &later);
	sample = explained(tracker);
	assert_true(has_note(&sample, "1 GiB"));
	close_tracker(tracker);
}

/* Causes of a degraded sample: each is noted, and the next window is not affected. */
TEST(test_degraded)
{
	const struct wss_kvm_counts base = fake->counts;
	struct wss_kvm_counts later;
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_tracker();
	/* The host took memory away: a fall, faults in excess. */
	later = base;
	later.pages_4k = 40;
	later.tlb_flushes = 1;
	begin_and_poll(tracker, &later);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "unmapped 240 KiB"));
	fake->counts = base;
	later = base;
	later.pages_4k = 200;
	later.pf_fixed = 300;
	later.tlb_flushes = 1;
	begin_and_poll(tracker, &later);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "200 faults more"));
	/* The same faults without a flush are upgrades of entries. */
	fake->counts = base;
	later.tlb_flushes = 0;
	begin_and_poll(tracker, &later);
	assert_int_equal(explained(tracker).quality, WSS_QUALITY_OK);
	close_tracker(tracker);
}

TEST(test_nested)
{
	const struct wss_kvm_counts base = fake->counts;
	struct wss_kvm_counts later = base;
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_tracker();
	/* A nested guest ran at some time in the window. */
	later.nested_run = 5;
	begin_and_poll(tracker, &later);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "nested"));
	/* It ran before the window, but not in it. */
	begin_and_poll(tracker, &later);
	assert_int_equal(explained(tracker).quality, WSS_QUALITY_OK);
	/* It runs throughout. */
	fake->counts.guest_mode = 1;
	later.guest_mode = 0;
	begin_and_poll(tracker, &later);
	assert_int_equal(explained(tracker).quality, WSS_QUALITY_DEGRADED);
	/* Only the gauge shows it if a locked-down kernel hides the other counter. */
	fake->counts.has_nested = later.has_nested = false;
	later.guest_mode = 1;
	begin_and_poll(tracker, &later);
	assert_int_equal(explained(tracker).quality, WSS_QUALITY_DEGRADED);
	close_tracker(tracker);
}

TEST(test_devices_and_prefetch)
{
	const struct wss_kvm_counts base = fake->counts;
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_tracker();
	begin_and_poll(tracker, &base);
	fake->guest->config.hostdevs = 1;
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	fake->guest->config.hostdevs = 0;
	fake->guest->config.shmems = 1;
	assert_int_equal(explained(tracker).quality, WSS_QUALITY_DEGRADED);
	fake->guest->config.shmems = 0;
	host.tdp_mmu = WSS_NO;
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "tdp_mmu"));
	close_tracker(tracker);
}

TEST(test_predict)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;
	struct wss_prediction small = {0}, large = {0};

	tracker = open_tracker();
	fake->counts.pages_4k = 100;
	fake->counts.pages_2m = 7;
	assert_int_equal(wss_tracker_mmu.predict(tracker, &small, &err), 0);
	assert_true(small.stall_ns > 0);
	/* Each entry of KVM, of whatever size, may be read first, and fault again when it is written. */
	assert_true(small.faults.known && small.faults.value == 2 * 107);
	host.soft_dirty = WSS_NO;
	assert_int_equal(wss_tracker_mmu.predict(tracker, &small, &err), 0);
	assert_int_equal(small.faults.value, 107);
	host.soft_dirty = WSS_UNKNOWN;
	assert_int_equal(wss_tracker_mmu.predict(tracker, &small, &err), 0);
	assert_int_equal(small.faults.value, 2 * 107);
	fake->counts.pf_fixed = 9000;
	assert_int_equal(wss_tracker_mmu.predict(tracker, &small, &err), 0);
	assert_true(small.faults_so_far.known && small.faults_so_far.value == 9000);
	fake->counts.pages_2m = 0;
	/* 64 GiB that KVM has mapped by 4 KiB. */
	fake->counts.pages_4k = 16 << 20;
	assert_int_equal(wss_tracker_mmu.predict(tracker, &large, &err), 0);
	assert_true(large.stall_ns > 10 * small.stall_ns);
	assert_int_equal(large.faults.value, 32 << 20);
	setenv("VIRT_WSS_FAULT", "slow-zap", 1);
	assert_int_equal(wss_tracker_mmu.predict(tracker, &large, &err), 0);
	assert_int_equal(large.stall_ns, 10 * WSS_NS_PER_S);
	close_tracker(tracker);
}

/* The zap really goes through clear_refs, unless the switch disables it. */
TEST(test_zap)
{
	struct wss_tracker *tracker;
	struct wss_span span;
	int null = open("/dev/null", O_RDONLY);

	tracker = open_tracker();
	assert_int_equal(wss_tracker_mmu.begin(tracker, &span, NULL), 0);
	/* If clear_refs cannot be written to, begin fails ... */
	assert_int_equal(dup2(null, fake->guest->process.clear_refs),
			 fake->guest->process.clear_refs);
	assert_int_equal(wss_tracker_mmu.begin(tracker, &span, NULL), -1);
	/* ... unless the switch is on. */
	setenv("VIRT_WSS_FAULT", "skip-zap", 1);
	assert_int_equal(wss_tracker_mmu.begin(tracker, &span, NULL), 0);
	assert_true(span.start_ns == span.end_ns);
	close_tracker(tracker);
	close(null);
}

TEST(test_gone)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;
	struct wss_span span;

	tracker = open_tracker();
	fake_end(fake);
	assert_int_equal(wss_tracker_mmu.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	close_tracker(tracker);
	wss_tracker_mmu.close(NULL);
}

/* debugfs is preferred to the source, because it needs no answer from QEMU. */
TEST(test_debugfs)
{
	static const char *const names[] = {"pages_4k", "pages_2m", "pages_1g"};
	struct wss_kvm_counts unused_counts = {.pages_4k = 7};
	struct wss_tracker *tracker;
	char path[PATH_MAX];

	for (size_t i = 0; i < 3; i++)
		put_text(tree,
			 make_path(path, "sys/kernel/debug/kvm/%d-11/%s", fake->child, names[i]),
			 i ? "0\n" : "250\n");
	fake->has_counts = false;
	attach();
	assert_usable(fake->guest);
	tracker = open_tracker();
	assert_int_equal(wss_tracker_mmu.check_stopped(tracker, NULL), 0);
	assert_int_equal(begin_and_poll(tracker, &unused_counts).wss_bytes, 250 * 4 * WSS_KIB);
	close_tracker(tracker);
}

/* Without debugfs, the kernel's own counters are preferred, for the same reason. */
TEST(test_counters_of_the_kernel)
{
	static struct wss_kvm_counters counters = {
		.pages = {250, 1}, .n_vcpus = 2, .all_vcpus = 2, .pf_fixed = 9};
	struct wss_kvm_counts ignored = {.pages_4k = 7};
	struct wss_tracker *tracker;
	struct wss_reading reading;

	fake_kvm.probe_fails = false;
	fake_kvm.counters = &counters;
	fake->has_counts = false;
	attach();
	if (fake->guest->process.pidfd < 0)
		skip();
	assert_usable(fake->guest);
	assert_int_equal(fake_kvm.open, 0);
	tracker = open_tracker();
	assert_int_equal(wss_tracker_mmu.check_stopped(tracker, NULL), 0);
	reading = begin_and_poll(tracker, &ignored);
	assert_int_equal(reading.high_bytes, 250 * 4 * WSS_KIB + 2 * WSS_MIB);
	assert_true(reading.faults.known);

	/* The sum over some vCPUs only is unknown. */
	counters.n_vcpus = 1;
	assert_int_equal(wss_tracker_mmu.poll(tracker, &reading, NULL), 0);
	assert_false(reading.faults.known);
	counters.n_vcpus = 2;
	close_tracker(tracker);
}

/* Opens and prepares windows of 4 s at 4 KiB, on a guest that was mapped large. */
static struct wss_tracker *open_fine(void)
{
	static const struct wss_track_options fine = {.granularity = WSS_GRANULARITY_4K,
						      .window_ns = 4 * WSS_NS_PER_S};
	struct wss_tracker *tracker;

	virtual_clock_start();
	tracker = open_as(&fine);
	fake->counts.pages_2m = 7;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_starts, 1);
	fake->counts.pages_2m = 0;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	return tracker;
}

/* Windows of a second in one dirty log, as many as fit, then in the next. */
TEST(test_chain)
{
	static const struct wss_track_options options = {.granularity = WSS_GRANULARITY_4K,
							 .window_ns = WSS_NS_PER_S,
							 .chain_ns = UINT64_MAX};
	struct wss_tracker *tracker;
	struct wss_span span;
	unsigned windows = 0;

	virtual_clock_start();
	tracker = open_as(&options);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	while (wss_tracker_mmu.prepare(tracker, NULL) == 1) {
		assert_int_equal(wss_tracker_mmu.begin(tracker, &span, NULL), 0);
		virtual_clock.now_ns += WSS_NS_PER_S;
		assert_true(virtual_clock.now_ns <= wss_tracker_mmu.valid_until_ns(tracker));
		windows++;
	}
	assert_in_range(windows, 50, 52);
	/* No log is requested before the old one has ended. */
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_starts, 1);
	fake->log.measuring = false;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_starts, 2);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	close_tracker(tracker);
}

/* The last log of a chain ends soon after it. */
TEST(test_chain_ends)
{
	static const struct wss_track_options options = {.granularity = WSS_GRANULARITY_4K,
							 .window_ns = 4 * WSS_NS_PER_S,
							 .chain_ns = 58 * WSS_NS_PER_S};
	struct wss_tracker *tracker;
	struct wss_span span;
	uint64_t end_ns;

	virtual_clock_start();
	tracker = open_as(&options);
	end_ns = virtual_clock.now_ns + options.chain_ns;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_seconds, 52);
	while (wss_tracker_mmu.prepare(tracker, NULL) == 1) {
		assert_int_equal(wss_tracker_mmu.begin(tracker, &span, NULL), 0);
		virtual_clock.now_ns += options.window_ns;
	}
	virtual_clock.now_ns = wss_tracker_mmu.valid_until_ns(tracker);
	fake->log.measuring = false;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_starts, 2);
	assert_int_equal(fake->log_seconds, 8);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	assert_true(wss_tracker_mmu.valid_until_ns(tracker) >= end_ns);
	assert_true(wss_tracker_mmu.valid_until_ns(tracker) <= end_ns + 3 * WSS_NS_PER_S);
	close_tracker(tracker);
}

/* Trap: 2 MiB entries in a window of 4 KiB granularity. */
TEST(test_large_entries_come)
{
	struct wss_kvm_counts large = {.pages_4k = 10, .pages_2m = 1}, small = {.pages_4k = 10};
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_fine();
	begin_and_poll(tracker, &large);
	/* Not at once, because the log needs a moment. */
	assert_false(wss_tracker_mmu.spoilt(tracker));
	virtual_clock.now_ns += 200 * WSS_NS_PER_MS;
	assert_true(wss_tracker_mmu.spoilt(tracker));
	fake->counts = small;
	begin_and_poll(tracker, &small);
	virtual_clock.now_ns += 200 * WSS_NS_PER_MS;
	assert_false(wss_tracker_mmu.spoilt(tracker));
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_true(has_note(&sample, "started 2 times"));
	/* One calculation for both. */
	assert_int_equal(fake->log_starts, 1);
	/* No time is left for another window: native granularity, and degraded. */
	begin_and_poll(tracker, &large);
	virtual_clock.now_ns += 3 * WSS_NS_PER_S;
	assert_false(wss_tracker_mmu.spoilt(tracker));
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "native granularity"));
	close_tracker(tracker);
	wss_clock_inject(NULL);
}

/* Large entries right after the zap count as well. */
TEST(test_large_entries_at_once)
{
	struct wss_kvm_counts small = {.pages_4k = 10};
	struct wss_tracker *tracker;

	tracker = open_fine();
	fake->counts.pages_2m = 1;
	begin_and_poll(tracker, &small);
	virtual_clock.now_ns += 200 * WSS_NS_PER_MS;
	assert_true(wss_tracker_mmu.spoilt(tracker));
	close_tracker(tracker);
}

/* Large entries are normal in a series of native windows. */
TEST(test_native_series)
{
	struct wss_kvm_counts large = {.pages_4k = 10, .pages_2m = 1};
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_tracker();
	begin_and_poll(tracker, &large);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	begin_and_poll(tracker, &large);
	sample = explained(tracker);
	assert_false(has_note(&sample, "armed"));
	close_tracker(tracker);
}

static void plug_device(struct fake *plugged)
{
	snprintf(plugged->guest->config.dirty_log_hazard,
		 sizeof(plugged->guest->config.dirty_log_hazard), "hostdev");
}

static void begin_job(struct fake *busy)
{
	busy->job = true;
}

/* Trap: the guest changes between the choice of 4 KiB and the start of the log. */
TEST(test_changes_before_start)
{
	struct wss_track_options options = {.granularity = WSS_GRANULARITY_4K,
					    .window_ns = WSS_NS_PER_S,
					    .max_faults = 1 << 20,
					    .max_stall_ns = WSS_NS_PER_S};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;
	struct wss_sample sample;

	tracker = open_as(&options);
	fake->on_refresh = begin_job;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "job");
	fake->job = false;
	fake->on_refresh = plug_device;
	wss_error_clear(&err);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "hostdev");
	close_tracker(tracker);
	/* "auto" falls back to native granularity and notes the reason. */
	fake->guest->config.dirty_log_hazard[0] = '\0';
	fake->guest->ram_known = false;
	options.granularity = WSS_GRANULARITY_AUTO;
	tracker = open_as(&options);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	sample = explained(tracker);
	assert_true(has_note(
		&sample,
		"native granularity because: 4 KiB granularity: the dirty log is not safe with hostdev"));
	close_tracker(tracker);
	assert_int_equal(fake->log_starts, 0);
}

/* Where nothing is on huge pages, KVM maps 4 KiB without a log; where huge pages come later, the sample says so. */
TEST(test_needs_no_log)
{
	static const struct wss_track_options fine = {.granularity = WSS_GRANULARITY_4K,
						      .window_ns = WSS_NS_PER_S,
						      .recorder = WSS_RECORDER_PAGES};
	static const struct wss_track_options counted = {.granularity = WSS_GRANULARITY_4K,
							 .window_ns = WSS_NS_PER_S};
	struct wss_kvm_counts small = {.pages_4k = 10}, large = {.pages_4k = 10, .pages_2m = 1};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;
	struct wss_sample sample;

	attach();
	strcpy(fake->guest->config.dirty_log_hazard, "hostdev");
	fake_kvm.probe_fails = false;
	fake_kvm.n_slots = 1;
	fake_kvm.slots[0] = (struct wss_kvm_slot_record){
		.n_pages = 16, .host_address = fake->guest->ram.ranges[0].start};
	tracker = open_as(&fine);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	begin_and_poll(tracker, &small);
	sample = explained(tracker);
	assert_false(has_note(&sample, "native granularity"));
	begin_and_poll(tracker, &large);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "got huge pages"));
	close_tracker(tracker);
	assert_int_equal(fake->log_starts, 0);
	/* Not where the pages are not wanted, or huge pages may be there. */
	assert_int_equal(wss_tracker_mmu.open(&host, fake->guest, &counted, &tracker, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "hostdev");
	fake->guest->ram_known = false;
	wss_error_clear(&err);
	assert_int_equal(wss_tracker_mmu.open(&host, fake->guest, &fine, &tracker, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "hostdev");
}

/* After a window was abandoned while its log was starting, the next one has a log of its own. */
TEST(test_given_up)
{
	static const struct wss_track_options fine = {.granularity = WSS_GRANULARITY_4K,
						      .window_ns = 4 * WSS_NS_PER_S};
	struct wss_tracker *tracker;

	virtual_clock_start();
	tracker = open_as(&fine);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	/* Too little of that log is left, so this one waits for its end. */
	virtual_clock.now_ns += 4 * WSS_NS_PER_S;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	fake->log.measuring = false;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 0);
	assert_int_equal(fake->log_starts, 2);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), 1);
	close_tracker(tracker);
	wss_clock_inject(NULL);
}

/* Trap: the log outlives the window. */
TEST(test_settle)
{
	struct wss_kvm_counts small = {.pages_4k = 10, .has_pf_fixed = true};
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	struct wss_tracker *tracker;

	tracker = open_fine();
	begin_and_poll(tracker, &small);
	assert_false(wss_tracker_mmu.settle(tracker, &sample));
	virtual_clock.now_ns += 7 * WSS_NS_PER_S;
	assert_false(wss_tracker_mmu.settle(tracker, &sample));
	fake->log.measuring = false;
	assert_false(wss_tracker_mmu.settle(tracker, &sample));
	fake->counts.pages_2m = 3;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.n_notes, 0);

	/* Nothing is mapped again, which may be because the guest is idle. */
	fake->counts.pages_2m = 0;
	virtual_clock.now_ns += 4 * WSS_NS_PER_S;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_true(has_note(&sample, "not observable"));
	fake->counts.pf_fixed = 1000;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "by 4 KiB although"));

	sample = (struct wss_sample){.quality = WSS_QUALITY_OK};
	fake->log.measuring = true;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "not ended its dirty log"));
	close_tracker(tracker);
	wss_clock_inject(NULL);
}

/* Where KVM's memory slots can be read, they tell. */
TEST(test_settle_by_slots)
{
	struct wss_kvm_counts small = {.pages_4k = 10, .has_pf_fixed = true};
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	struct wss_tracker *tracker;

	fake_kvm.probe_fails = false;
	fake_kvm.n_slots = 2;
	tracker = open_fine();
	assert_true(fake->guest->ram_known);
	fake_kvm.slots[0] =
		(struct wss_kvm_slot_record){.n_pages = 16,
					     .host_address = fake->guest->ram.ranges[0].start,
					     .flags = KVM_MEM_LOG_DIRTY_PAGES};
	fake_kvm.slots[1] = (struct wss_kvm_slot_record){
		.first_page = 0xfd000, .n_pages = 4096, .flags = KVM_MEM_LOG_DIRTY_PAGES};
	begin_and_poll(tracker, &small);
	fake->log.measuring = false;
	virtual_clock.now_ns += 7 * WSS_NS_PER_S;
	assert_false(wss_tracker_mmu.settle(tracker, &sample));
	virtual_clock.now_ns += 4 * WSS_NS_PER_S;
	/* Large entries of another slot prove nothing. */
	fake->counts.pages_2m = 3;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "still keeps a dirty log"));
	/* The guest need not touch anything, and a graphics card is always logged. */
	sample = (struct wss_sample){.quality = WSS_QUALITY_OK};
	fake_kvm.slots[0].flags = 0;
	fake->counts.pages_2m = 0;
	assert_true(wss_tracker_mmu.settle(tracker, &sample));
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_int_equal(sample.n_notes, 0);
	close_tracker(tracker);
	wss_clock_inject(NULL);
}

/* Returns the reason why "auto" does not choose 4 KiB; "" if it does. */
static const char *why_native(struct wss_track_options options)
{
	static char text[WSS_NOTE_LEN];
	struct wss_tracker *tracker;
	struct wss_sample sample;

	options.granularity = WSS_GRANULARITY_AUTO;
	tracker = open_as(&options);
	sample = explained(tracker);
	text[0] = '\0';
	for (size_t i = 0; i < sample.n_notes; i++)
		if (strstr(sample.notes[i], "native granularity because"))
			snprintf(text, sizeof(text), "%s", sample.notes[i]);
	assert_int_equal(wss_tracker_mmu.prepare(tracker, NULL), text[0] != '\0');
	assert_int_equal(fake->log_starts, text[0] == '\0');
	fake->log_starts = 0;
	fake->log.measuring = false;
	close_tracker(tracker);
	return text;
}

TEST(test_auto)
{
	struct wss_track_options options = {.window_ns = WSS_NS_PER_S,
					    .max_faults = 1 << 20,
					    .max_stall_ns = 100 * WSS_NS_PER_MS};

	attach();
	/* The child's memory is on small pages. */
	if (fake->guest->ram_known)
		assert_non_null(
			strstr(why_native(options), "none of the guest's memory is on huge"));
	fake->guest->ram_known = false;
	assert_string_equal(why_native(options), "");
	options.max_faults = 1;
	assert_non_null(strstr(why_native(options), "over the limit of"));
	options.max_faults = 1 << 20;
	/* The log for this much memory takes a while to start, although little of it is used. */
	fake->guest->config.maximum_bytes = 64ULL << 40;
	assert_non_null(strstr(why_native(options), "over the limit of 100 ms"));
	fake->guest->config.maximum_bytes = FAKE_RAM;
	options.window_ns = 51 * WSS_NS_PER_S;
	assert_non_null(strstr(why_native(options), "50 s"));
	options.window_ns = WSS_NS_PER_S;
	snprintf(fake->guest->config.dirty_log_hazard, sizeof(fake->guest->config.dirty_log_hazard),
		 "vsock");
	assert_non_null(strstr(why_native(options), "vsock"));
}

/* During somebody else's calculation nothing is zapped and nothing is started. */
TEST(test_foreign_log)
{
	static const struct wss_track_options fine = {.granularity = WSS_GRANULARITY_4K,
						      .window_ns = 4 * WSS_NS_PER_S};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker;

	tracker = open_as(&fine);
	/* A zap would fail without the lock. */
	wss_control_release(&fake->guest->process);
	fake->log.measuring = true;
	fake->log.left_s = 60;
	assert_int_equal(wss_tracker_mmu.prepare(tracker, &err), -1);
	assert_error(&err, WSS_ERR_BUSY, "another program");
	assert_int_equal(fake->log_starts, 0);
	wss_tracker_mmu.close(tracker);
}

static void assert_unfit(const struct wss_tracker_ops *ops, const struct wss_track_options *options,
			 const char *why)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_tracker_check(ops, &host, fake->guest, options, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, why);
}

/*
 * Asserts that "auto" chooses the first method that is fit for the guest, or if there is none,
 * says why of each.
 */
static void assert_auto_is_first_fit(const struct wss_track_options *options)
{
	struct wss_error err = WSS_ERROR_INIT;
	const struct wss_tracker_ops *chosen =
		wss_tracker_choose(&host, fake->guest, options, &err);
	size_t i = 0;

	while (wss_trackers[i] &&
	       wss_tracker_check(wss_trackers[i], &host, fake->guest, options, NULL) < 0)
		i++;
	assert_ptr_equal(chosen, wss_trackers[i]);
	if (chosen)
		return;
	assert_error(&err, WSS_ERR_UNSUPPORTED, "mmu: ");
	assert_error(&err, WSS_ERR_UNSUPPORTED, "refs: ");
}

/* "auto" never chooses a method that is wrong for the guest, whatever others there are. */
TEST(test_choose)
{
	struct wss_track_options options = WSS_TRACK_OPTIONS_INIT;

	attach();
	assert_int_equal(wss_tracker_check(&wss_tracker_mmu, &host, fake->guest, &options, NULL),
			 0);
	assert_unfit(&wss_tracker_refs, &options, "refs works for TCG guests only");
	assert_auto_is_first_fit(&options);
	/* A KVM guest that cannot be zapped is not measured by accessed bits instead. */
	host.two_dim_paging = WSS_NO;
	assert_unfit(&wss_tracker_mmu, &options, "KVM uses shadow paging");
	assert_unfit(&wss_tracker_refs, &options, "refs works for TCG guests only");
	assert_auto_is_first_fit(&options);
	fake->guest->kvm = false;
	assert_unfit(&wss_tracker_mmu, &options, "KVM");
	assert_int_equal(wss_tracker_check(&wss_tracker_refs, &host, fake->guest, &options, NULL),
			 0);
	assert_auto_is_first_fit(&options);
	/* If the pages themselves are requested, a method that only counts them is not chosen. */
	options.recorder = WSS_RECORDER_PAGES;
	assert_unfit(&wss_tracker_refs, &options, "it has no recorder");
	assert_auto_is_first_fit(&options);
}

/* What fails for another reason than the method does not mean that the guest cannot be measured here. */
TEST(test_choose_failed)
{
	static const enum wss_error_code codes[] = {WSS_ERR_INTERRUPTED, WSS_ERR_GONE,
						    WSS_ERR_TIMEOUT,	 WSS_ERR_CONNECT,
						    WSS_ERR_FAILED,	 WSS_ERR_NO_MEMORY};
	struct wss_track_options options = WSS_TRACK_OPTIONS_INIT;

	attach();
	if (fake->guest->process.pidfd < 0)
		skip();
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;

		fake->counts_fail = codes[i];
		assert_null(wss_tracker_choose(&host, fake->guest, &options, &err));
		assert_error(&err, codes[i], "kvm_counts fails");
		assert_null(strstr(err.text, "no method"));
	}
}

TEST(test_names)
{
	char names[128], few[4];

	assert_ptr_equal(wss_tracker_by_name("mmu"), &wss_tracker_mmu);
	assert_ptr_equal(wss_tracker_by_name("refs"), &wss_tracker_refs);
	assert_null(wss_tracker_by_name("auto"));
	assert_null(wss_tracker_by_name(""));
	assert_non_null(strstr(wss_tracker_names("-", " or ", names, sizeof(names)), " or "));
	assert_non_null(strstr(names, "mmu"));
	assert_non_null(strstr(names, "refs"));
	assert_int_equal(strncmp(wss_tracker_names("-", " or ", few, sizeof(few)), names, 3), 0);
	assert_int_equal(strlen(few), 3);
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
