/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fakeguest.h"

#include <sys/resource.h>

#include "measure/control.h"
#include "measure/methods.h"

static const struct wss_track_options native = {.granularity = WSS_GRANULARITY_NATIVE};

static struct fake *fake;
static struct wss_host host = {.root = {.dirfd = -1}};

static int set_up(void **unused)
{
	host.page_bytes = FAKE_PAGE;
	host.huge_page_bytes = FAKE_PAGE / 8 * FAKE_PAGE;
	fake = fake_new("refs");
	return 0;
}

static int tear_down(void **unused)
{
	fake_free(fake);
	return 0;
}

static void attach(void)
{
	assert_int_equal(wss_guest_attach(fake->guest, &host, NULL), 0);
	if (!fake->guest->ram_known)
		fail_msg("%s", fake->guest->ram_error.text);
	assert_int_equal(fake->guest->ram.total_bytes, FAKE_RAM);
}

static void assert_refused(const char *part)
{
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_tracker_refs.probe(&host, fake->guest, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, part);
}

/* Machine types up to 5.0 have one block for all cells that need no backend of their own. */
TEST(test_cells_in_one_block)
{
	struct wss_domxml *config = &fake->guest->config;

	config->n_cells = config->n_blocks = 2;
	config->block_bytes[0] = 3 * WSS_MIB;
	config->block_bytes[1] = FAKE_RAM - 3 * WSS_MIB;
	config->initial_bytes = FAKE_RAM;
	attach();
	wss_guest_detach(fake->guest);
	/* Each cell of a guest with memory backing has a block. */
	config->backing = WSS_BACKING_MEMFD;
	assert_int_equal(wss_guest_attach(fake->guest, &host, NULL), 0);
	assert_false(fake->guest->ram_known);
	assert_error(&fake->guest->ram_error, WSS_ERR_FAILED, "expected 1 block of 3072 KiB");
}

/* Memory that QEMU has locked stays on the host, whoever gave it that option. */
TEST(test_locked)
{
	struct wss_domxml *config = &fake->guest->config;
	struct rlimit limit;

	config->initial_bytes = FAKE_RAM;
	attach();
	assert_false(config->locked);
	assert_false(config->hugepages);
	if (geteuid() && (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur < FAKE_RAM))
		skip();
	fake_touch(fake, FAKE_LOCK);
	assert_int_equal(wss_guest_refresh(fake->guest, NULL), 0);
	assert_true(config->locked);
	/* A refresh may read the configuration again, which does not have it. */
	config->locked = false;
	assert_int_equal(wss_guest_check_ready(fake->guest, NULL), 0);
	assert_true(config->locked);
	/* Part of it may be a buffer of QEMU's own. */
	config->locked = false;
	config->initial_bytes = 2 * FAKE_RAM;
	assert_int_equal(wss_guest_refresh(fake->guest, NULL), 0);
	assert_false(config->locked);
}

TEST(test_probe)
{
	assert_int_equal(wss_tracker_refs.probe(&host, NULL, NULL), 0);
	assert_int_equal(wss_tracker_refs.probe(&host, fake->guest, NULL), 0);
	attach();
	assert_int_equal(wss_tracker_refs.probe(&host, fake->guest, NULL), 0);
}

/* The figure would mean nothing, because KVM's page tables have accessed bits of their own. */
TEST(test_refuses_kvm)
{
	fake_make_kvm(fake);
	assert_refused("KVM");
	attach();
	assert_refused("KVM");
}

TEST(test_refuses_backing)
{
	attach();
	if (fake->guest->process.pidfd < 0)
		skip();
	fake->guest->ram_known = false;
	wss_error_set(&fake->guest->ram_error, WSS_ERR_FAILED, "two of that size");
	assert_refused("two of that size");
}

static uint64_t measure(struct wss_tracker *tracker, uint32_t pages)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_reading reading;
	struct wss_span span;

	if (wss_tracker_refs.begin(tracker, &span, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(span.end_ns >= span.start_ns);
	fake_touch(fake, pages);
	if (wss_tracker_refs.poll(tracker, &reading, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(reading.wss_bytes, reading.high_bytes);
	assert_int_equal(reading.low_bytes, reading.wss_bytes / host.page_bytes * 4096);
	assert_int_equal(reading.granularity_bytes, host.page_bytes);
	/* This method has no such figure, and it is not 0. */
	assert_false(reading.faults.known);
	return reading.wss_bytes;
}

/* A real process touches a known number of pages, and exactly these are seen. */
TEST(test_measures)
{
	struct wss_sample sample = {.quality = WSS_QUALITY_OK};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker = NULL;
	const uint32_t half = (uint32_t)(FAKE_RAM / FAKE_PAGE / 2);

	attach();
	assert_int_equal(wss_control_take(&fake->guest->process, &err), 0);
	assert_int_equal(wss_tracker_refs.open(&host, fake->guest, &native, &tracker, &err), 0);
	assert_int_equal(wss_tracker_refs.check_stopped(tracker, NULL), 0);
	assert_int_equal(measure(tracker, half), half * FAKE_PAGE);
	/* The figure falls with the set, and earlier touches do not count. */
	assert_int_equal(measure(tracker, 10), 10 * FAKE_PAGE);
	assert_int_equal(measure(tracker, 0), 0);
	assert_int_equal(measure(tracker, FAKE_RAM / FAKE_PAGE), FAKE_RAM);
	wss_tracker_refs.explain(tracker, &sample);
	assert_int_equal(sample.quality, WSS_QUALITY_OK);
	assert_int_equal(sample.n_notes, 1);
	wss_tracker_refs.close(tracker);
	wss_tracker_refs.close(NULL);
	wss_control_release(&fake->guest->process);
}

/* On a host with larger pages one touch counts as such a page, and pages of 4 KiB cannot be told apart. */
TEST(test_large_pages)
{
	const struct wss_track_options fine = {.granularity = WSS_GRANULARITY_4K};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker = NULL;

	host.page_bytes = 64 * WSS_KIB;
	host.huge_page_bytes = 512 * WSS_MIB;
	attach();
	assert_int_equal(wss_tracker_refs.open(&host, fake->guest, &fine, &tracker, &err), -1);
	assert_error(&err, WSS_ERR_UNSUPPORTED, "this host's pages have 64 KiB");
}

TEST(test_gone)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_tracker *tracker = NULL;
	struct wss_reading reading;
	struct wss_span span;

	attach();
	assert_int_equal(wss_control_take(&fake->guest->process, &err), 0);
	assert_int_equal(wss_tracker_refs.open(&host, fake->guest, &native, &tracker, &err), 0);
	assert_int_equal(wss_tracker_refs.begin(tracker, &span, &err), 0);
	/* A zombie, then nothing at all. */
	fake_kill(fake);
	/* Not an empty working set. */
	assert_int_equal(wss_tracker_refs.poll(tracker, &reading, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_error_clear(&err);
	fake_end(fake);
	assert_int_equal(wss_tracker_refs.begin(tracker, &span, &err), -1);
	assert_error(&err, WSS_ERR_GONE, NULL);
	wss_tracker_refs.close(tracker);
	wss_control_release(&fake->guest->process);
}

int main(void)
{
	return tests_run_each(set_up, tear_down);
}
