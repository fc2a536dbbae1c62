/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accessed bits of QEMU's own page table, for TCG guests, whose accesses are ordinary loads
 * and stores of QEMU. Writing 1 to clear_refs clears the bits, and smaps shows them as
 * Referenced (Linux 6.1, fs/proc/task_mmu.c, clear_refs_pte_range and smaps_account). The
 * write does not reach KVM's page tables, so the figure would mean nothing for a KVM guest.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "measure/control.h"
#include "measure/methods.h"
#include "measure/referenced.h"
#include "measure/selftest.h"

struct refs {
	struct wss_tracker base;
	struct wss_guest *guest;
	struct wss_page_sizes pages;
	bool may_flush; /* the write that flushes the TLBs is safe on this kernel */
	struct wss_referenced_result result;
};

/*
 * Refuses hugetlb pages: smaps does not show their accessed bits, so they would always look
 * untouched.
 */
static int check_mappings(const struct wss_smaps *smaps, struct wss_error *err)
{
	if (smaps->guest.any_hugetlb)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"guest RAM is hugetlb, and smaps never shows its pages as referenced");
	return 0;
}

static int refs_probe_guest(struct wss_guest *guest, struct wss_error *err)
{
	struct wss_smaps smaps;

	if (wss_control_probe(&guest->process, err) < 0)
		return -1;
	if (!guest->ram_known)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "guest RAM was not found among QEMU's mappings: %s",
				     guest->ram_error.text);
	if (wss_smaps_read(&guest->process, &guest->ram, &smaps, err) < 0)
		return -1;
	return check_mappings(&smaps, err);
}

static int refs_probe(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err)
{
	(void)host;
	if (!guest)
		return 0;
	if (guest->kvm)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "refs works for TCG guests only, and this one runs on KVM");
	return guest->process.proc.dirfd >= 0 ? refs_probe_guest(guest, err) : 0;
}

static void refs_close(struct wss_tracker *tracker)
{
	free(tracker);
}

/* A larger page has a single accessed bit, which rules out 4 KiB granularity. */
static int check_no_huge(const struct wss_host *host, const struct wss_guest *guest,
			 struct wss_error *err)
{
	struct wss_smaps smaps;
	char size[16];

	if (host->page_bytes > 4096) {
		wss_size_format(host->page_bytes, size, sizeof(size));
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "4 KiB granularity: this host's pages have %s", size);
	}
	if (wss_smaps_read(&guest->process, &guest->ram, &smaps, err) < 0)
		return -1;
	if (!smaps.guest.huge)
		return 0;
	wss_size_format(host->huge_page_bytes, size, sizeof(size));
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"4 KiB granularity: some of the guest's RAM is on huge pages, where one access "
		"counts as %s",
		size);
}

static int refs_open(const struct wss_host *host, struct wss_guest *guest,
		     const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		     struct wss_error *err)
{
	struct refs *refs;

	if (options->granularity == WSS_GRANULARITY_4K && check_no_huge(host, guest, err) < 0)
		return -1;
	refs = calloc(1, sizeof(*refs));
	if (!refs)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	refs->base.ops = &wss_tracker_refs;
	refs->guest = guest;
	refs->pages = (struct wss_page_sizes){host->page_bytes, host->huge_page_bytes};
	refs->may_flush = wss_selftest_zap_safe(host, guest, NULL) == 0;
	*ret_tracker = &refs->base;
	return 0;
}

static int refs_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	(void)tracker;
	(void)err;
	return 0;
}

/*
 * Writing 1 clears the accessed bits but does not flush the TLBs, and an access through a
 * cached translation sets no bit: hot pages would look untouched, a small set on huge pages
 * even as a whole. Writing 4 always ends with a flush (clear_refs_write(), flush_tlb_mm()).
 */
static int refs_begin(struct wss_tracker *tracker, struct wss_span *ret_span, struct wss_error *err)
{
	struct refs *refs = (struct refs *)tracker;
	struct wss_span flush;

	if (wss_control_clear(&refs->guest->process, '1', ret_span, err) < 0)
		return -1;
	if (!refs->may_flush)
		return 0;
	if (wss_control_clear(&refs->guest->process, '4', &flush, err) < 0)
		return -1;
	ret_span->end_ns = flush.end_ns;
	return 0;
}

static int refs_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		     struct wss_error *err)
{
	struct refs *refs = (struct refs *)tracker;
	uint64_t start_ns = wss_clock_now_ns();
	struct wss_smaps smaps;

	if (wss_smaps_read(&refs->guest->process, &refs->guest->ram, &smaps, err) < 0)
		return -1;
	if (check_mappings(&smaps, err) < 0)
		return -1;
	/* All translations may have stayed in the TLBs, so nothing is known. */
	if (!smaps.guest.referenced && !refs->may_flush)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"no page was seen accessed within the window, and the TLBs cannot "
			"be flushed safely on this kernel: a longer window may show more");
	wss_referenced_result(smaps.guest.referenced, smaps.guest.huge, &refs->pages,
			      &refs->result);
	*ret_reading = (struct wss_reading){
		.span = {start_ns, wss_clock_now_ns()},
		.wss_bytes = refs->result.wss_bytes,
		.low_bytes = refs->result.low_bytes,
		.high_bytes = refs->result.high_bytes,
		.granularity_bytes = refs->result.granularity_bytes,
	};
	return 0;
}

static void refs_explain(const struct wss_tracker *tracker, struct wss_sample *sample)
{
	const struct refs *refs = (const struct refs *)tracker;

	if (refs->result.low_bytes < refs->result.high_bytes ||
	    refs->result.granularity_bytes > refs->pages.small_bytes) {
		char size[16];

		wss_size_format(refs->result.granularity_bytes, size, sizeof(size));
		wss_sample_note(sample,
				"some guest RAM is on %s pages, where one access counts as %s: the "
				"working set lies between the low and the high bound",
				refs->result.granularity_bytes > refs->pages.small_bytes ? "huge"
											 : size,
				size);
	}
	if (!refs->result.wss_bytes)
		wss_sample_degrade(sample, "the guest touched nothing that was seen: it did "
					   "not run, or the window is too short");
	wss_sample_note(sample, "accesses by QEMU's own device emulation are counted as well");
	if (!refs->may_flush)
		wss_sample_degrade(sample,
				   "the TLBs cannot be flushed safely on this kernel: touches "
				   "of pages whose translation stays cached are not seen");
}

const struct wss_tracker_ops wss_tracker_refs = {
	.name = "refs",
	.summary = "clears accessed bits and counts the pages accessed since",
	.observes = WSS_OBSERVES_ACCESSES,
	.granularity = "4 KiB; 2 MiB on huge pages",
	.costs = "page tables of QEMU are walked twice, under its mmap_lock; no fault",
	.limits = "on huge pages counts whole ones; what only other processes touch is missing",
	.cheap_poll = false,
	.probe = refs_probe,
	.open = refs_open,
	.check_stopped = refs_check_stopped,
	.begin = refs_begin,
	.poll = refs_poll,
	.explain = refs_explain,
	.close = refs_close,
};
