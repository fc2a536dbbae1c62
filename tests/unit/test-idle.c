/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"
#include "fakekvm.h"

#include <linux/kernel-page-flags.h>

#include "measure/methods.h"

#define PAGE 4096ULL
#define PAGES (FAKE_RAM / PAGE)
#define BITMAP "sys/kernel/mm/page_idle/bitmap"
#define GENERATIONS "sys/kernel/debug/lru_gen"
#define CGROUP "/a.scope"
#define FLAG(bit) (1ULL << (bit))
/* Not the kernel's: other processes map the page as well. */
#define SHARED FLAG(63)
/* The host's pages; 8192 is where a huge page may begin. */
#define HOST_PAGES 16384
#define HUGE 8192

static const struct wss_track_options native = {.granularity = WSS_GRANULARITY_NATIVE};
static const struct wss_track_options small = {.granularity = WSS_GRANULARITY_4K};

static struct fake *fake;
static char *tree;
static struct wss_host host;

/* The host's pages that hold the guest's RAM, and what the kernel says of each. */
static struct {
	uint64_t numbers[PAGES]; /* 0: not in memory */
	uint64_t flags[HOST_PAGES];
	uint64_t idle[HOST_PAGES / 64];
} kernel;

static void kernel_write(void)
{
	char path[PATH_MAX];
	int fd;

	put_bytes(tree, "proc/kpageflags", kernel.flags, sizeof(kernel.flags));
	put_bytes(tree, BITMAP, kernel.idle, sizeof(kernel.idle));
	put_text(tree, make_path(path, "proc/%d/pagemap", (int)fake->child), "");
	fd = open(make_path(path, "%s/proc/%d/pagemap", tree, (int)fake->child),
		  O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (size_t i = 0; i < PAGES; i++) {
		uint64_t alone = kernel.flags[kernel.numbers[i]] & SHARED ? 0 : FLAG(56);
		uint64_t entry = kernel.numbers[i] ? kernel.numbers[i] | FLAG(63) | alone : 0;

		assert_int_equal(pwrite(fd, &entry, 8,
					(off_t)((fake->guest->ram.ranges[0].start / PAGE + i) * 8)),
				 8);
	}
	close(fd);
}

static void kernel_read_bitmap(void)
{
	char path[PATH_MAX];
	FILE *f = fopen(make_path(path, "%s/" BITMAP, tree), "re");

	assert_non_null(f);
	assert_int_equal(fread(kernel.idle, sizeof(kernel.idle), 1, f), 1);
	fclose(f);
}

static uint64_t kernel_n_idle(void)
{
	uint64_t n = 0;

	kernel_read_bitmap();
	for (size_t i = 0; i < HOST_PAGES / 64; i++)
		n += (unsigned)__builtin_popcountll(kernel.idle[i]);
	return n;
}

/* Pages of the host are used: none of them is idle any more. */
static void touch(uint64_t first, uint64_t n)
{
	kernel_read_bitmap();
	for (uint64_t page = first; page < first + n; page++)
		kernel.idle[page / 64] &= ~FLAG(page % 64);
	put_bytes(tree, BITMAP, kernel.idle, sizeof(kernel.idle));
}

/* 2000 pages of the guest are in memory, in disorder; so page 1000 + i of the host is its page 1999 - i. */
static void kernel_fill(void)
{
	for (uint64_t i = 0; i < 2000; i++) {
		kernel.numbers[i] = 1000 + 1999 - i;
		kernel.flags[kernel.numbers[i]] = FLAG(KPF_LRU) | FLAG(KPF_ANON);
	}
	kernel_write();
}

static void put_status(const char *hugetlb_kib)
{
	char path[PATH_MAX], text[256];

	snprintf(text, sizeof(text),
		 "Name:\tqemu\nVmRSS:\t8192 kB\nVmSwap:\t0 kB\nHugetlbPages:\t%s kB\n",
		 hugetlb_kib);
	put_text(tree, make_path(path, "proc/%d/status", (int)fake->child), text);
}

static void put_generation(unsigned newest)
{
	char text[256];

	snprintf(text, sizeof(text), "memcg 9 " CGROUP "\n node 0\n %u 2 3 4\n", newest);
	put_text(tree, GENERATIONS, text);
}

/* Its process is a real one, whose /proc the test has invented. */
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
}

static int set_up(void **unused)
{
	char path[PATH_MAX];

	tree = make_tree();
	put_text(tree, "proc/sys/kernel/osrelease", "6.12.95\n");
	put_text(tree, "sys/module/kvm_intel/parameters/ept", "Y\n");
	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "Y\n");
	put_text(tree, "sys/fs/cgroup" CGROUP "/memory.current", "1\n");
	assert_int_equal(wss_host_open(tree, &host, NULL), 0);
	memset(&fake_kvm, 0, sizeof(fake_kvm));
	memset(&kernel, 0, sizeof(kernel));
	fake = fake_new("idle");
	fake_make_kvm(fake);
	put_status("0");
	put_text(tree, make_path(path, "proc/%d/cgroup", (int)fake->child), "0::" CGROUP "\n");
	fake->guest->config.vcpus = 1;
	fake->has_counts = true;
	fake->counts =
		(struct wss_kvm_counts){.pages_4k = 2000, .pf_fixed = 77, .has_pf_fixed = true};
	attach();
	kernel_fill();
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

static struct wss_tracker *open_tracker(void)
{
	struct wss_tracker *tracker = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_tracker_idle.open(&host, fake->guest, &native, &tracker, &err) < 0)
		fail_msg("%s", err.text);
	return tracker;
}

static void begin(struct wss_tracker *tracker)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_span span;

	if (wss_tracker_idle.begin(tracker, &span, &err) < 0)
		fail_msg("%s", err.text);
	/* No vCPU waits for it. */
	assert_true(span.end_ns == span.start_ns && span.end_ns);
	wss_tracker_idle.started(tracker, span.end_ns);
}

static struct wss_reading read_set(struct wss_tracker *tracker)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;

	if (wss_tracker_idle.poll(tracker, &reading, &err) < 0)
		fail_msg("%s", err.text);
	return reading;
}

static struct wss_sample explained(const struct wss_tracker *tracker)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};

	wss_tracker_idle.explain(tracker, &sample);
	return sample;
}

static void assert_refused(struct wss_guest *guest, const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_tracker_idle.probe(&host, guest, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
}

TEST(test_probe_marks_nothing)
{
	assert_int_equal(wss_tracker_idle.probe(&host, NULL, NULL), 0);
	assert_int_equal(wss_tracker_idle.probe(&host, fake->guest, NULL), 0);
	assert_int_equal(kernel_n_idle(), 0);
}

TEST(test_is_chosen_by_name_only)
{
	struct wss_track_options options = WSS_TRACK_OPTIONS_INIT;
	const struct wss_tracker_ops *ops = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	/* mmu would not look for counters. */
	if (fake->guest->process.pidfd < 0)
		skip();
	fake->has_counts = false;
	assert_null(wss_tracker_choose(&host, fake->guest, &options, &err));
	assert_int_equal(wss_tracker_parse("idle", &ops, &options, NULL), 0);
	assert_ptr_equal(ops, &wss_tracker_idle);
}

TEST(test_refuses_hosts)
{
	char path[PATH_MAX];

	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "N\n");
	assert_refused(NULL, "no accessed bits");
	put_text(tree, "sys/module/kvm_intel/parameters/eptad", "Y\n");
	host.two_dim_paging = WSS_NO;
	assert_refused(NULL, "with which idle was not tried");
	host.two_dim_paging = WSS_UNKNOWN;
	assert_refused(NULL, "not loaded");
	unlink(make_path(path, "%s/proc/kpageflags", tree));
	assert_refused(NULL, "cannot use /proc/kpageflags");
	unlink(make_path(path, "%s/" BITMAP, tree));
	assert_refused(NULL, "no idle page tracking (CONFIG_IDLE_PAGE_TRACKING)");
}

TEST(test_refuses_guests)
{
	struct wss_domxml *config = &fake->guest->config;

	put_status("8192");
	assert_refused(fake->guest, "hugetlb");
	put_status("0");
	fake->guest->ram_known = false;
	assert_refused(fake->guest, "was not found");
	snprintf(config->launch_security, sizeof(config->launch_security), "sev");
	assert_refused(fake->guest, "confidential (sev)");
	fake->guest->kvm = false;
	assert_refused(fake->guest, "does not run on KVM");
}

TEST(test_window)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_prediction prediction = {.stall_ns = 0};
	struct wss_reading reading;
	struct wss_sample sample;

	assert_int_equal(wss_tracker_idle.predict(tracker, &prediction, NULL), 0);
	assert_true(prediction.memory_ns && prediction.faults.known && !prediction.faults.value);
	assert_int_equal(wss_tracker_idle.check_stopped(tracker, NULL), -1);
	begin(tracker);
	/* Of no page but the guest's. */
	assert_int_equal(kernel_n_idle(), 2000);
	assert_int_equal(kernel.idle[999 / 64] >> 999 % 64 & 1, 0);
	assert_int_equal(kernel.idle[1000 / 64] >> 1000 % 64 & 1, 1);
	assert_int_equal(kernel.idle[2999 / 64] >> 2999 % 64 & 1, 1);
	touch(1100, 300);
	reading = read_set(tracker);
	assert_int_equal(reading.low_bytes, 300 * PAGE);
	assert_int_equal(reading.wss_bytes, 300 * PAGE);
	/* Any other page may be in a TLB. */
	assert_int_equal(reading.high_bytes, 2000 * PAGE);
	assert_int_equal(reading.granularity_bytes, PAGE);
	assert_true(reading.faults.known && !reading.faults.value);
	sample = explained(tracker);
	assert_true(has_note(&sample, "TLB"));
	assert_true(has_note(&sample, "marking the pages took"));
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_true(sample.cost.memory_ns);
	/* The next window begins with nothing; a guest that is held begins it later. */
	begin(tracker);
	wss_tracker_idle.started(tracker, UINT64_MAX);
	touch(2999, 1);
	assert_int_equal(read_set(tracker).low_bytes, PAGE);
	sample = explained(tracker);
	assert_false(has_note(&sample, "marking the pages took"));
	wss_tracker_idle.close(tracker);
	wss_tracker_idle.close(NULL);
}

/* The host gives the guest a page within the window: it was touched, though never idle. */
TEST(test_new_pages)
{
	struct wss_tracker *tracker = open_tracker();

	begin(tracker);
	kernel.numbers[2047] = 5000;
	kernel.flags[5000] = FLAG(KPF_LRU);
	kernel_read_bitmap();
	kernel_write();
	assert_int_equal(read_set(tracker).low_bytes, PAGE);
	wss_tracker_idle.close(tracker);
}

/* Nothing is known of the zero page, of pages that are on no LRU list, and of those that KSM shares with other guests. */
TEST(test_unsure_pages)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;
	struct wss_sample sample;

	for (uint64_t page = 1000; page < 1020; page++)
		kernel.flags[page] = FLAG(KPF_ZERO_PAGE);
	for (uint64_t page = 1020; page < 1030; page++)
		kernel.flags[page] |= FLAG(KPF_KSM) | SHARED;
	/* Linux 6.12 shows it also with pages that are not merged. */
	for (uint64_t page = 1030; page < 1040; page++)
		kernel.flags[page] |= FLAG(KPF_KSM);
	kernel_write();
	begin(tracker);
	assert_int_equal(kernel_n_idle(), 1980);
	touch(1029, 71);
	reading = read_set(tracker);
	assert_int_equal(reading.low_bytes, 70 * PAGE);
	assert_true(reading.high_bytes >= (70 + 1 + 20) * PAGE);
	sample = explained(tracker);
	assert_true(has_note(&sample, "leaves out 84 KiB that cannot be made idle"));
	/* They may have come to the list after the others were made idle. */
	for (uint64_t page = 1000; page < 1020; page++)
		kernel.flags[page] = FLAG(KPF_LRU);
	kernel_read_bitmap();
	kernel_write();
	assert_int_equal(read_set(tracker).low_bytes, 70 * PAGE);
	wss_tracker_idle.close(tracker);
}

/* The guest reads many pages that it has never written, which the host maps to one. */
TEST(test_one_page_at_many_places)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;

	for (size_t i = 0; i < 600; i++)
		kernel.numbers[i] = 3000;
	kernel.flags[3000] = FLAG(KPF_ZERO_PAGE);
	kernel_write();
	begin(tracker);
	assert_int_equal(kernel_n_idle(), 1400);
	touch(1000, 100);
	reading = read_set(tracker);
	assert_int_equal(reading.granularity_bytes, PAGE);
	assert_true(reading.high_bytes >= (600 + 100) * PAGE);
	wss_tracker_idle.close(tracker);
}

static void make_huge(void)
{
	for (uint64_t i = 0; i < 512; i++) {
		kernel.numbers[i] = HUGE + i;
		/* Linux 6.1 shows the list of a tail's head with the head only. */
		kernel.flags[HUGE + i] =
			i ? FLAG(KPF_COMPOUND_TAIL) : FLAG(KPF_COMPOUND_HEAD) | FLAG(KPF_LRU);
	}
}

TEST(test_large_pages)
{
	struct wss_tracker *tracker = open_tracker(), *other = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;
	struct wss_sample sample;

	fake->counts.pages_2m = 1;
	make_huge();
	kernel_write();
	begin(tracker);
	/* The first page's bit stands for all. */
	assert_int_equal(kernel_n_idle(), 2000 - 512 + 1);
	touch(1000, 10);
	assert_int_equal(read_set(tracker).low_bytes, 10 * PAGE);
	touch(HUGE, 1);
	reading = read_set(tracker);
	assert_int_equal(reading.granularity_bytes, 2 * WSS_MIB);
	assert_int_equal(reading.low_bytes, 11 * PAGE);
	assert_true(reading.high_bytes >= (10 + 512) * PAGE);
	assert_int_equal(reading.wss_bytes, reading.high_bytes);
	sample = explained(tracker);
	assert_true(has_note(&sample, "large pages"));
	wss_tracker_idle.close(tracker);
	assert_int_equal(wss_tracker_idle.open(&host, fake->guest, &small, &other, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "on pages of 2 MiB");
	assert_null(other);
}

/* Only the second half of a huge page is the guest's: its bit is that of a page that the guest does not have. */
TEST(test_part_of_a_large_page)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;

	make_huge();
	for (uint64_t i = 0; i < 256; i++)
		kernel.numbers[i] = 0;
	kernel_write();
	begin(tracker);
	assert_int_equal(kernel_n_idle(), 2000 - 512 + 1);
	touch(HUGE, 1);
	reading = read_set(tracker);
	/* Its touch may have been to the other half. */
	assert_int_equal(reading.low_bytes, 0);
	assert_int_equal(reading.granularity_bytes, WSS_MIB);
	assert_true(reading.high_bytes >= 256 * PAGE);
	wss_tracker_idle.close(tracker);
}

TEST(test_small_pages_may_be_required)
{
	struct wss_tracker *tracker = NULL;
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_span span;

	assert_int_equal(wss_tracker_idle.open(&host, fake->guest, &small, &tracker, NULL), 0);
	assert_int_equal(kernel_n_idle(), 0);
	make_huge();
	kernel_write();
	assert_int_equal(wss_tracker_idle.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "4 KiB granularity");
	wss_tracker_idle.close(tracker);
}

/* Reclaim and the balloon take pages with what they would have shown. */
TEST(test_taken_pages)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_reading reading;
	struct wss_sample sample;

	begin(tracker);
	memset(kernel.numbers, 0, 1000 * sizeof(kernel.numbers[0]));
	kernel_read_bitmap();
	kernel_write();
	reading = read_set(tracker);
	assert_int_equal(reading.low_bytes, 0);
	assert_int_equal(reading.high_bytes, 2000 * PAGE);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "has taken 3.91 MiB"));
	wss_tracker_idle.close(tracker);
}

TEST(test_others_clear_accessed_bits)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_sample sample;

	put_generation(7);
	put_text(tree, "proc/4711/comm", "kdamond.0\n");
	put_text(tree, "proc/sys/kernel/numa_balancing", "1\n");
	begin(tracker);
	put_generation(8);
	read_set(tracker);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_DEGRADED);
	assert_true(has_note(&sample, "aged the guest's memory"));
	assert_true(has_note(&sample, "DAMON runs"));
	assert_true(has_note(&sample, "NUMA balancing is on"));
	put_text(tree, "proc/4711/comm", "kdamonds\n");
	put_text(tree, "proc/sys/kernel/numa_balancing", "0\n");
	begin(tracker);
	read_set(tracker);
	sample = explained(tracker);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	wss_tracker_idle.close(tracker);
}

TEST(test_nothing_marked)
{
	struct wss_tracker *tracker = open_tracker();

	setenv("VIRT_WSS_FAULT", "skip-aging", 1);
	begin(tracker);
	assert_int_equal(kernel_n_idle(), 0);
	wss_tracker_idle.close(tracker);
}

TEST(test_failures)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_cancel cancel = WSS_CANCEL_INIT;
	struct wss_deadline deadline = {.cancel = &cancel};
	struct wss_reading reading;
	struct wss_span span;
	char path[PATH_MAX];

	assert_int_equal(wss_cancel_open(&cancel, NULL, NULL), 0);
	wss_cancel_request(&cancel);
	fake->guest->deadline = &deadline;
	assert_int_equal(wss_tracker_idle.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_INTERRUPTED, "interrupted");
	assert_int_equal(kernel_n_idle(), 0);
	fake->guest->deadline = NULL;
	wss_cancel_close(&cancel);
	begin(tracker);
	/* The files end where the host's memory does. */
	err = (struct wss_error)WSS_ERROR_INIT;
	put_bytes(tree, BITMAP, kernel.idle, 16);
	assert_int_equal(wss_tracker_idle.poll(tracker, &reading, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "cannot use /" BITMAP);
	err = (struct wss_error)WSS_ERROR_INIT;
	put_bytes(tree, "proc/kpageflags", kernel.flags, 16);
	assert_int_equal(wss_tracker_idle.poll(tracker, &reading, &err), -1);
	assert_error(&err, WSS_ERR_FAILED, "cannot read /proc/kpageflags");
	/* The pages of a process that has ended are gone. */
	err = (struct wss_error)WSS_ERROR_INIT;
	put_text(tree, make_path(path, "proc/%d/pagemap", (int)fake->child), "");
	assert_int_equal(wss_tracker_idle.poll(tracker, &reading, &err), -1);
	assert_int_equal(err.code, WSS_ERR_GONE);
	wss_tracker_idle.close(tracker);
}

/* Without CAP_SYS_ADMIN pagemap shows 0 in place of the numbers. */
TEST(test_hidden_numbers)
{
	struct wss_tracker *tracker = open_tracker();
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t entry = FLAG(63);
	struct wss_span span;
	char path[PATH_MAX];
	int fd = open(make_path(path, "%s/proc/%d/pagemap", tree, (int)fake->child),
		      O_WRONLY | O_CLOEXEC);

	assert_int_equal(
		pwrite(fd, &entry, 8, (off_t)(fake->guest->ram.ranges[0].start / PAGE * 8)), 8);
	close(fd);
	assert_int_equal(wss_tracker_idle.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "hides the numbers of pages");
	wss_tracker_idle.close(tracker);
}

int main(void)
{
	alarm(300);
	return tests_run_each(set_up, tear_down);
}
