/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"
#include "fakekvm.h"

#include "measure/methods.h"

#define PAGE 4096ULL
#define CGROUP "/machine.slice/machine-qemu\\x2d1\\x2dweb1.scope"
#define MEMCG 42
#define GENERATIONS "sys/kernel/debug/lru_gen"

static const struct wss_track_options native = {.granularity = WSS_GRANULARITY_NATIVE};
static const struct wss_track_options small = {.granularity = WSS_GRANULARITY_4K};

static struct fake *fake;
static char *tree;
static struct wss_host host;

/* The kernel, which obeys what is written to lru_gen at the next walk of the VM's tables. */
static struct {
	uint64_t newest[2]; /* generation on each node */
	unsigned commands;
	uint64_t newest_pages, previous_pages; /* in that of node 0, and in the one before */
	bool clears;			       /* accessed bits, when it ages */
	bool touched_again; /* the guest has touched all pages again when the marks are read */
	bool clears_read_only;
} kernel;

static void kernel_write_generations(void)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "memcg     1 /\n node     0\n          0     117560          0           0 \n"
		 "memcg    41 " CGROUP
		 "2\n node     0\n         99     117560          0           0 \n"
		 "memcg    %d " CGROUP "\n node     0\n"
		 "       %4llu      77820     %6llu           7 \n"
		 "       %4llu      77820     %6llu           0 \n"
		 " node     1\n       %4llu      77820          0           0 \n"
		 "memcg    43 /last\n node     0\n          7     117560          0           0 \n",
		 MEMCG, (unsigned long long)kernel.newest[0] - 1,
		 (unsigned long long)kernel.previous_pages, (unsigned long long)kernel.newest[0],
		 (unsigned long long)kernel.newest_pages, (unsigned long long)kernel.newest[1]);
	put_text(tree, GENERATIONS, text);
}

/* Pages that are found marked move to the generation that was the newest. */
static void kernel_clear_marks(void)
{
	kernel.previous_pages = kernel.newest_pages;
	kernel.newest_pages = 0;
	for (size_t i = 0; i < fake_kvm.n_leaves; i++) {
		__u64 *accessed = &fake_kvm.leaves[i].accessed;

		kernel.previous_pages += (unsigned)__builtin_popcountll(*accessed);
		if (!kernel.touched_again)
			*accessed &= kernel.clears_read_only ? 0 : ~fake_kvm.leaves[i].writable;
	}
}

static void kernel_obey(void)
{
	wss_auto_free char *text = NULL;
	unsigned long long memcg, newest;
	char path[PATH_MAX];
	unsigned node;

	text = read_text(make_path(path, "%s/" GENERATIONS, tree));
	for (const char *line = text; *line == '+'; line = strchr(line, '\n') + 1) {
		assert_int_equal(sscanf(line, "+ %llu %u %llu 1 1\n", &memcg, &node, &newest), 3);
		assert_int_equal(memcg, MEMCG);
		assert_in_range(node, 0, 1);
		assert_int_equal(newest, kernel.newest[node]);
		kernel.newest[node]++;
		kernel.commands++;
	}
	if (*text != '+')
		return;
	if (kernel.clears)
		kernel_clear_marks();
	kernel_write_generations();
}

static void put_status(const char *rss_kib, const char *hugetlb_kib)
{
	char path[PATH_MAX], text[256];

	snprintf(text, sizeof(text),
		 "Name:\tqemu\nVmRSS:\t%s kB\nVmSwap:\t0 kB\nHugetlbPages:\t%s kB\n", rss_kib,
		 hugetlb_kib);
	put_text(tree, make_path(path, "proc/%d/status", (int)fake->child), text);
}

static void put_cgroup(const char *text)
{
	char path[PATH_MAX];

	put_text(tree, make_path(path, "proc/%d/cgroup", (int)fake->child), text);
}

static int set_up(void **unused)
{
	tree = make_tree();
	put_text(tree, "proc/sys/kernel/osrelease", "6.12.95\n");
	put_text(tree, "sys/module/kvm/parameters/tdp_mmu", "Y\n");
	put_text(tree, "sys/module/kvm_intel/parameters/ept", "Y\n");
	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "Y\n");
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "0x0007\n");
	put_text(tree, "sys/fs/cgroup" CGROUP "/memory.current", "8388608\n");
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	memset(&fake_kvm, 0, sizeof(fake_kvm));
	memset(&kernel, 0, sizeof(kernel));
	kernel.newest[0] = 3;
	kernel.newest[1] = 11;
	kernel.clears = kernel.clears_read_only = true;
	kernel_write_generations();
	fake_kvm.on_walk = kernel_obey;
	fake = fake_new("lrugen");
	fake_make_kvm(fake);
	put_status("8192", "0");
	put_cgroup("0::" CGROUP "/libvirt/emulator\n");
	fake->guest->config.vcpus = 1;
	fake->has_counts = true;
	fake->counts = (struct wss_kvm_counts){.pages_4k = 2000,
					       .pf_fixed = 77,
					       .has_tlb_flushes = true,
					       .has_pf_fixed = true,
					       .has_guest_mode = true,
					       .has_nested = true};
	return 0;
}

static int tear_down(void **unused)
{
	fake_free(fake);
	assert_int_equal(fake_kvm.open, 0);
	wss_host_close(&host);
	remove_tree(tree);
	unsetenv("VIRT_WSS_FAULT");
	return 0;
}

/* Its process is a real one, whose /proc the test has invented; its RAM is the VM's only slot. */
static void attach(void)
{
	char path[PATH_MAX];

	assert_int_equal(wss_guest_attach(fake->guest, &host, NULL), 0);
	if (!fake->guest->ram_known)
		fail_msg("%s", fake->guest->ram_error.text);
	wss_root_close(&fake->guest->process.proc);
	assert_int_equal(wss_root_open(make_path(path, "%s/proc/%d", tree, (int)fake->child),
				       &fake->guest->process.proc, NULL),
			 0);
	fake_kvm.n_slots = 1;
	fake_kvm.slots[0] = (struct wss_kvm_slot_record){
		.n_pages = FAKE_RAM / PAGE, .host_address = fake->guest->ram.ranges[0].start};
}

static void assert_refused(struct wss_guest *guest, const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_tracker_lrugen.probe(&host, guest, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
	assert_int_equal(kernel.commands, 0);
}

static void assert_usable(struct wss_guest *guest)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_tracker_lrugen.probe(&host, guest, &err) < 0)
		fail_msg("%s", err.text);
}

TEST(test_probe)
{
	assert_usable(NULL);
	assert_usable(fake->guest);
	attach();
	assert_usable(fake->guest);
	/* Without the third switch only what is above page tables keeps its bits. */
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "0x0003\n");
	assert_usable(fake->guest);
}

/* A guest that cannot be zapped is not measured by what bounds it from below instead. */
TEST(test_is_chosen_by_name_only)
{
	struct wss_track_options options = WSS_TRACK_OPTIONS_INIT;
	const struct wss_tracker_ops *ops = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	attach();
	/* mmu would not look for counters. */
	if (fake->guest->process.pidfd < 0)
		skip();
	fake->has_counts = false;
	assert_usable(fake->guest);
	assert_null(wss_tracker_choose(&host, fake->guest, &options, &err));
	assert_null(strstr(err.text, "lrugen"));
	assert_int_equal(wss_tracker_parse("lrugen", &ops, &options, NULL), 0);
	assert_ptr_equal(ops, &wss_tracker_lrugen);
}

TEST(test_refuses_hosts)
{
	char path[PATH_MAX];

	host.version = WSS_KERNEL_VERSION(6, 11);
	assert_refused(NULL, "before Linux 6.12, and this is 6.12.95");
	host.version = 0;
	assert_refused(NULL, "before Linux 6.12");
	host.version = WSS_KERNEL_VERSION(6, 12);
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "0x0000\n");
	assert_refused(NULL, "MGLRU is off");
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "0x0005\n");
	assert_refused(NULL, "walks no page tables");
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "yes\n");
	assert_refused(NULL, "form");
	unlink(make_path(path, "%s/sys/kernel/mm/lru_gen/enabled", tree));
	assert_refused(NULL, "no MGLRU");
	put_text(tree, "sys/kernel/mm/lru_gen/enabled", "0x0007\n");
	unlink(make_path(path, "%s/" GENERATIONS, tree));
	assert_refused(NULL, "debugfs is not mounted");
	kernel_write_generations();
	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "N\n");
	assert_refused(NULL, "no accessed bits");
	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "Y\n");
	host.two_dim_paging = WSS_NO;
	assert_refused(NULL, "shadow paging");
	host.two_dim_paging = WSS_UNKNOWN;
	assert_refused(NULL, "not loaded");
	host.two_dim_paging = WSS_YES;
	fake_kvm.probe_fails = true;
	assert_refused(NULL, "cannot be read: no programs");
	fake_kvm.probe_fails = false;
	assert_usable(NULL);
}

TEST(test_refuses_guests)
{
	struct wss_domxml *config = &fake->guest->config;
	char path[PATH_MAX];

	attach();
	put_status("8192", "8192");
	assert_refused(fake->guest, "hugetlb");
	put_status("8192", "0");
	config->locked = true;
	assert_refused(fake->guest, "locked");
	config->locked = false;
	snprintf(config->launch_security, sizeof(config->launch_security), "sev");
	assert_refused(fake->guest, "confidential (sev)");
	config->launch_security[0] = '\0';
	/* RAM that another process has touched first is charged to that one's cgroup. */
	put_status("1048576", "0");
	assert_refused(fake->guest, "1016 MiB of QEMU's memory are charged to another cgroup");
	put_status("8192", "0");
	unlink(make_path(path, "%s/sys/fs/cgroup" CGROUP "/memory.current", tree));
	assert_refused(fake->guest, "no memory cgroup");
	put_cgroup("4:memory:/x\n");
	assert_refused(fake->guest, "no memory cgroup");
	fake->guest->kvm = false;
	assert_refused(fake->guest, "does not run on KVM");
}

/* Any cgroup is QEMU's own if no other process is in it. */
TEST(test_cgroup)
{
	char path[PATH_MAX], text[64];

	attach();
	put_cgroup("0::/user.slice/a.scope/b\n");
	put_text(tree, "sys/fs/cgroup/user.slice/memory.current", "1\n");
	put_text(tree, "sys/fs/cgroup/user.slice/a.scope/memory.current", "8388608\n");
	assert_refused(fake->guest, "shares its memory cgroup /user.slice/a.scope with");
	snprintf(text, sizeof(text), "%d\n4711\n", (int)fake->child);
	put_text(tree, "sys/fs/cgroup/user.slice/a.scope/cgroup.procs", text);
	assert_refused(fake->guest, "shares");
	put_text(tree, "sys/fs/cgroup/user.slice/a.scope/cgroup.procs", "\n");
	assert_refused(fake->guest, "shares");
	snprintf(text, sizeof(text), "%d\n", (int)fake->child);
	put_text(tree, "sys/fs/cgroup/user.slice/a.scope/cgroup.procs", text);
	assert_refused(fake->guest, "/user.slice/a.scope is not in /sys/kernel/debug/lru_gen");
	put_text(tree, GENERATIONS, "memcg 9 /user.slice/a.scope\n node 0\n 1 2 3 4\n");
	assert_usable(fake->guest);
	/* A guest's directory that has no memory controller, in one that others share. */
	put_cgroup("0::/machine.slice/machine-qemu\\x2d2\\x2dx.scope\n");
	put_text(tree, "sys/fs/cgroup/machine.slice/memory.current", "8388608\n");
	assert_refused(fake->guest, "shares its memory cgroup /machine.slice with");
	unlink(make_path(path, "%s/sys/fs/cgroup/machine.slice/memory.current", tree));
}

/* The kernel never writes such things; nothing may break nevertheless. */
TEST(test_hostile_generations)
{
	static const char *const texts[] = {
		"",
		"memcg",
		"memcg 5",
		"memcg x " CGROUP "\n",
		"memcg 5 " CGROUP,
		"memcg 5 " CGROUP "\n",
		"memcg 5 " CGROUP "\n node\n",
		"memcg 5 " CGROUP "\n node 0",
		"memcg 5 " CGROUP "\n node 0x\n",
		"memcg 5 " CGROUP "\n 1 2 3 4\n",
		"memcg 5 " CGROUP "\n node 0\n 1 2\n",
		"memcg 5 " CGROUP "\n node 0\n 1 2 3 4\nrubbish\n",
	};
	char *text = malloc(WSS_MIB + 1);
	size_t len = 0;

	assert_non_null(text);
	attach();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put_text(tree, GENERATIONS, texts[i]);
		assert_int_equal(wss_tracker_lrugen.probe(&host, fake->guest, NULL), -1);
	}
	/* One line without an end, and more nodes than there can be. */
	memset(text, '7', WSS_MIB);
	put_bytes(tree, GENERATIONS, text, WSS_MIB);
	assert_refused(fake->guest, "form");
	len = (size_t)sprintf(text, "memcg 5 " CGROUP "\n");
	for (int i = 0; i < 65; i++)
		len += (size_t)sprintf(text + len, " node %d\n 1 2 3 4\n", i);
	put_text(tree, GENERATIONS, text);
	assert_refused(fake->guest, "form");
	free(text);
}

/* --- windows --- */

static struct wss_tracker *open_tracker(void)
{
	struct wss_tracker *tracker = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	attach();
	if (wss_tracker_lrugen.open(&host, fake->guest, &native, &tracker, &err) < 0)
		fail_msg("%s", err.text);
	return tracker;
}

static void begin(struct wss_tracker *tracker)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_span span;

	if (wss_tracker_lrugen.begin(tracker, &span, &err) < 0)
		fail_msg("%s", err.text);
	/* No vCPU waits for the aging. */
	assert_true(span.end_ns == span.start_ns && span.end_ns);
	wss_tracker_lrugen.started(tracker, span.end_ns);
}

static struct wss_reading poll_sample(struct wss_tracker *tracker)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;

	wss_tracker_lrugen.want_pages(tracker);
	if (wss_tracker_lrugen.poll(tracker, &reading, &err) < 0)
		fail_msg("%s", err.text);
	return reading;
}

static struct wss_sample explained(const struct wss_tracker *tracker)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};

	wss_tracker_lrugen.explain(tracker, &sample);
	return sample;
}

/* Marks pages that are mapped, as an access does. */
static void mark(uint64_t first, uint64_t n)
{
	for (size_t i = 0; i < fake_kvm.n_leaves; i++)
		for (uint64_t bit = 0; bit < 64; bit++)
			if (fake_kvm.leaves[i].first_page + bit - first < n)
				fake_kvm.leaves[i].accessed |=
					fake_kvm.leaves[i].mapped & 1ULL << bit;
}

TEST(test_window)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_prediction prediction = {.stall_ns = 0};
	struct wss_reading reading;
	struct wss_sample sample;

	fake_kvm_map(0, 2000, FAKE_WRITTEN, true);
	assert_int_equal(wss_tracker_lrugen.predict(tracker, &prediction, NULL), 0);
	assert_true(prediction.memory_ns && prediction.faults.known && !prediction.faults.value);
	assert_int_equal(wss_tracker_lrugen.check_stopped(tracker, NULL), -1);
	begin(tracker);
	assert_int_equal(kernel.commands, 2);
	assert_int_equal(fake_kvm.accessed_bit, WSS_KVM_ACCESSED_EPT);
	mark(100, 300);
	reading = poll_sample(tracker);
	assert_int_equal(reading.wss_bytes, 300 * PAGE);
	assert_int_equal(reading.low_bytes, 300 * PAGE);
	/* Any other page that is mapped may be in a TLB. */
	assert_int_equal(reading.high_bytes, 2000 * PAGE);
	assert_int_equal(reading.granularity_bytes, PAGE);
	assert_true(reading.faults.known && !reading.faults.value);
	/* What another program clears has been seen. */
	kernel_clear_marks();
	mark(500, 100);
	reading = poll_sample(tracker);
	assert_int_equal(reading.low_bytes, 400 * PAGE);
	sample = explained(tracker);
	assert_true(has_note(&sample, "TLB"));
	assert_true(has_note(&sample, "accessed bits have gone"));
	assert_string_equal(sample.recorder, "bpf");
	assert_true(sample.cost.memory_ns);
	/* The next window begins with nothing. */
	begin(tracker);
	assert_int_equal(kernel.commands, 4);
	mark(0, 1);
	assert_int_equal(poll_sample(tracker).low_bytes, PAGE);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	wss_tracker_lrugen.close(tracker);
	wss_tracker_lrugen.close(NULL);
}

/* Polls in between walk no more often than their cost allows, and then return what is known already. */
TEST(test_walks_are_limited)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading first, second;
	unsigned walks;

	virtual_clock_start();
	fake_kvm_map(0, 2000, FAKE_WRITTEN, true);
	begin(tracker);
	mark(0, 10);
	walks = fake_kvm.walks;
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &first, NULL), 0);
	mark(0, 20);
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &second, NULL), 0);
	assert_int_equal(fake_kvm.walks, walks + 1);
	assert_int_equal(second.low_bytes, 10 * PAGE);
	assert_int_equal(second.span.end_ns, first.span.end_ns);
	virtual_clock.now_ns += WSS_NS_PER_S;
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &second, NULL), 0);
	assert_int_equal(second.low_bytes, 20 * PAGE);
	/* Soon afterwards only if the host has unmapped something. */
	virtual_clock.now_ns += WSS_NS_PER_S / 10;
	mark(0, 30);
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &second, NULL), 0);
	assert_int_equal(second.low_bytes, 20 * PAGE);
	fake->counts.tlb_flushes++;
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &second, NULL), 0);
	assert_int_equal(second.low_bytes, 30 * PAGE);
	wss_clock_inject(NULL);
	wss_tracker_lrugen.close(tracker);
}

/* Where aging has no effect nothing is known but what is touched at most. */
TEST(test_ineffective)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;
	struct wss_sample sample;

	fake_kvm_map(0, 2000, FAKE_WRITTEN, true);
	kernel.clears = false;
	begin(tracker);
	/* It was tried three times, on both nodes. */
	assert_int_equal(kernel.commands, 6);
	reading = poll_sample(tracker);
	assert_int_equal(reading.low_bytes, 0);
	assert_int_equal(reading.wss_bytes, 2000 * PAGE);
	assert_int_equal(reading.high_bytes, 2000 * PAGE);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "hardly any"));
	/* A busy guest has touched all again meanwhile. */
	kernel.clears = kernel.touched_again = true;
	begin(tracker);
	assert_int_equal(kernel.commands, 8);
	assert_int_equal(poll_sample(tracker).low_bytes, 2000 * PAGE);
	sample = explained(tracker);
	assert_false(has_note(&sample, "hardly any"));
	kernel.touched_again = false;
	setenv("VIRT_WSS_FAULT", "skip-aging", 1);
	begin(tracker);
	assert_int_equal(kernel.commands, 8);
	sample = explained(tracker);
	assert_true(has_note(&sample, "hardly any"));
	wss_tracker_lrugen.close(tracker);
}

/* Aging passes by the zero page and what KSM has merged. */
TEST(test_read_only)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;
	struct wss_sample sample;

	fake_kvm_map(0, 1000, FAKE_WRITTEN, true);
	fake_kvm_map(1024, 50, FAKE_READ, true);
	kernel.clears_read_only = false;
	begin(tracker);
	mark(0, 200);
	reading = poll_sample(tracker);
	assert_int_equal(reading.low_bytes, 200 * PAGE);
	assert_true(reading.high_bytes >= 250 * PAGE);
	sample = explained(tracker);
	assert_true(has_note(&sample, "leaves out 200 KiB mapped read-only"));
	wss_tracker_lrugen.close(tracker);
}

TEST(test_large_entries)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;
	struct wss_sample sample;

	fake->counts.pages_2m = 3;
	fake_kvm_map_large(0, 3);
	begin(tracker);
	fake_kvm.leaves[1].accessed = 1;
	reading = poll_sample(tracker);
	assert_int_equal(reading.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(reading.low_bytes, PAGE);
	assert_int_equal(reading.wss_bytes, reading.high_bytes);
	assert_int_equal(reading.high_bytes, 6 * WSS_MIB);
	sample = explained(tracker);
	assert_true(has_note(&sample, "by 2 MiB, and entries of 2 MiB together were seen"));
	wss_tracker_lrugen.close(tracker);
	tracker = NULL;
	assert_int_equal(wss_tracker_lrugen.open(&host, fake->guest, &small, &tracker, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "4 KiB granularity");
	assert_null(tracker);
	fake->counts.pages_2m = 0;
	assert_int_equal(wss_tracker_lrugen.open(&host, fake->guest, &small, &tracker, NULL), 0);
	wss_tracker_lrugen.close(tracker);
}

TEST(test_doubts)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;
	struct wss_sample sample;

	fake_kvm_map(0, 2000, FAKE_WRITTEN, true);
	begin(tracker);
	mark(0, 10);
	kernel.newest[1]++;
	kernel_write_generations();
	fake_kvm.walk_fails = true;
	fake->counts.nested_run++;
	reading = poll_sample(tracker);
	/* A part of the tables was not seen. */
	assert_int_equal(reading.high_bytes, FAKE_RAM);
	assert_int_equal(reading.low_bytes, 10 * PAGE);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "another program, aged"));
	assert_true(has_note(&sample, "could not be read"));
	assert_true(has_note(&sample, "nested guest"));
	wss_tracker_lrugen.close(tracker);
}

TEST(test_failures)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;
	struct wss_span span;
	char path[PATH_MAX];

	fake_kvm.slots_fail = true;
	assert_int_equal(wss_tracker_lrugen.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "no slots");
	fake_kvm.slots_fail = false;
	err = (struct wss_error)WSS_ERROR_INIT;
	unlink(make_path(path, "%s/" GENERATIONS, tree));
	fake_kvm.on_walk = NULL;
	assert_int_equal(wss_tracker_lrugen.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "cannot write");
	fake_kvm.on_walk = kernel_obey;
	kernel_write_generations();
	begin(tracker);
	fake->counts_fail = WSS_ERR_GONE;
	assert_int_equal(wss_tracker_lrugen.poll(tracker, &reading, NULL), -1);
	wss_tracker_lrugen.close(tracker);
}

int main(void)
{
	alarm(300);
	return tests_run_each(set_up, tear_down);
}
