/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * MMU invalidation: the zap drops all second-level mappings of the guest, and KVM's own
 * counters show which come back.
 *
 * Writing 4 to clear_refs opens an MMU-notifier range over the whole address space, for which
 * KVM unmaps everything (Linux 6.1, fs/proc/task_mmu.c, clear_refs_write; virt/kvm/kvm_main.c,
 * kvm_mmu_notifier_invalidate_range_start). The next access to each page faults into KVM,
 * which maps the page and counts it in pages_4k, pages_2m or pages_1g. Later accesses cause no
 * fault, so the guest runs at full speed once its pages are mapped again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/number.h"
#include "measure/control.h"
#include "measure/counters.h"
#include "measure/fine.h"
#include "measure/gauge.h"
#include "measure/kvm-cost.h"
#include "measure/methods.h"
#include "measure/pagewise.h"
#include "measure/recorder.h"
#include "measure/selftest.h"
#include "measure/stall.h"

#define SIZE_2M (2ULL << 20)

struct mmu {
	struct wss_tracker base;
	const struct wss_host *host;
	struct wss_guest *guest;
	struct wss_track_options options;
	struct wss_fine fine;
	struct wss_counters *counters;
	struct wss_gauge gauge;
	struct wss_gauge_result result;
	struct wss_kvm_counts armed; /* right after the zap */
	struct wss_pagewise pages;
	bool want_pages; /* at the next poll */
	/* Read before the zap, as the guest faults again at once. */
	struct wss_amount faults_before;
	bool nested; /* a nested guest ran in the window */
	uint64_t nested_base;
};

static int probe_host(const struct wss_host *host, struct wss_error *err)
{
	if (host->two_dim_paging == WSS_UNKNOWN)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "KVM is not loaded on this host (no kvm_intel or kvm_amd)");
	/* Its counters count entries of shadow tables, not pages of the guest. */
	if (host->two_dim_paging == WSS_NO && wss_recorder_probe(host, NULL, err) < 0)
		return wss_error_prefix(
			err,
			"KVM uses shadow paging on this host (ept/npt is off), whose tables cannot be read");
	return 0;
}

static int mmu_probe_guest(const struct wss_host *host, struct wss_guest *guest,
			   struct wss_error *err)
{
	if (!guest->kvm)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest does not run on KVM (type '%s'): it has no second-level mappings",
			guest->config.type);
	if (guest->config.launch_security[0])
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest %s (%s): unmapping its memory would flush "
				     "all caches of the host, or show nothing",
				     guest->config.security_unseen ? "may be confidential"
								   : "is confidential",
				     guest->config.launch_security);
	if (guest->process.pidfd >= 0 && wss_control_probe(&guest->process, err) < 0)
		return -1;
	return probe_host(host, err);
}

static int mmu_probe(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err)
{
	struct wss_counters *counters;

	if ((guest ? mmu_probe_guest(host, guest, err) : probe_host(host, err)) < 0)
		return -1;
	if (wss_selftest_zap_safe(host, guest, err) < 0)
		return -1;
	if (!guest || guest->process.pidfd < 0)
		return 0;
	if (wss_counters_open(host, guest, &counters, err) < 0)
		return -1;
	wss_counters_close(counters);
	return 0;
}

static struct wss_gauge_reading gauge_reading(const struct wss_kvm_counts *counts)
{
	return (struct wss_gauge_reading){
		.entries_4k = counts->pages_4k,
		.entries_2m = counts->pages_2m,
		.entries_1g = counts->pages_1g,
		.has_faults = counts->has_pf_fixed,
		.faults = counts->pf_fixed,
		.has_flushes = counts->has_tlb_flushes,
		.flushes = counts->tlb_flushes,
	};
}

static void watch_nested(struct mmu *mmu, const struct wss_kvm_counts *counts)
{
	if ((counts->has_guest_mode && counts->guest_mode) ||
	    (counts->has_nested && counts->nested_run != mmu->nested_base))
		mmu->nested = true;
}

static void mmu_close(struct wss_tracker *tracker)
{
	struct mmu *mmu = (struct mmu *)tracker;

	if (!mmu)
		return;
	wss_pagewise_close(&mmu->pages);
	wss_counters_close(mmu->counters);
	free(mmu);
}

/*
 * The faults by which so many dropped entries come back, at most. With soft-dirty clear_refs also
 * write-protects the host's entries, so that KVM maps a page that is read read-only, and the first write
 * to it faults again (Linux 6.1, fs/proc/task_mmu.c, clear_soft_dirty()).
 */
static uint64_t most_faults(const struct mmu *mmu, uint64_t entries)
{
	return mmu->host->soft_dirty == WSS_NO ? entries : wss_u64_mul(entries, 2);
}

/*
 * Predicts how long arming keeps the vCPUs waiting, with or without a dirty log, and how many faults follow. With a dirty log
 * the entries that come back are of 4 KiB, for all that is resident, and the longer of both zaps counts.
 */
static int predict_cost(struct mmu *mmu, bool with_log, struct wss_prediction *ret,
			struct wss_error *err)
{
	const struct wss_kvm_cost *cost = wss_kvm_cost();
	struct wss_kvm_counts counts;
	struct wss_stall_load load;
	uint64_t rss, hugetlb, huge;

	if (wss_counters_read(mmu->counters, &counts, err) < 0 ||
	    wss_resident_read(&mmu->guest->process, &rss, &hugetlb, err) < 0)
		return -1;
	/* KVM maps 2 MiB only where the host's page is huge: that much is known to be. */
	huge = counts.pages_2m * SIZE_2M > hugetlb ? counts.pages_2m * SIZE_2M : hugetlb;
	if (huge > rss)
		huge = rss;
	load.host_entries = (rss - huge) / 4096 + huge / SIZE_2M;
	load.kvm_entries = wss_kvm_counts_entries(&counts);
	ret->faults = wss_amount_of(most_faults(mmu, with_log ? rss / 4096 : load.kvm_entries));
	if (with_log) {
		load.kvm_entries = wss_u64_max(load.kvm_entries,
					       wss_fine_entries(mmu->guest, rss, cost->fault_ns));
		ret->log_ns = wss_fault("slow-log")
				      ? 10 * WSS_NS_PER_S
				      : wss_stall_log_ns(mmu->guest->config.maximum_bytes / 4096,
							 wss_stall_entry_ns());
	}
	ret->stall_ns = wss_fault("slow-zap")
				? 10 * WSS_NS_PER_S
				: wss_stall_predict_ns(&load, wss_stall_entry_ns(), cost->entry_ns);
	ret->faults_so_far = (struct wss_amount){counts.has_pf_fixed, counts.pf_fixed};
	return 0;
}

static int choose_granularity(struct mmu *mmu, struct wss_error *err)
{
	struct wss_prediction logged = {.stall_ns = 0};

	if (mmu->options.granularity == WSS_GRANULARITY_AUTO &&
	    predict_cost(mmu, true, &logged, err) < 0)
		return -1;
	return wss_fine_choose(&mmu->fine, mmu->guest, &mmu->options,
			       wss_u64_add(logged.stall_ns, logged.log_ns), err);
}

static int mmu_open(const struct wss_host *host, struct wss_guest *guest,
		    const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		    struct wss_error *err)
{
	struct mmu *mmu = calloc(1, sizeof(*mmu));

	if (!mmu)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	mmu->options = *options;
	mmu->base.ops = &wss_tracker_mmu;
	mmu->host = host;
	mmu->guest = guest;
	if (wss_counters_open(host, guest, &mmu->counters, err) < 0 ||
	    choose_granularity(mmu, err) < 0 ||
	    wss_pagewise_open(&mmu->pages, host, guest, options->recorder, err) < 0) {
		mmu_close(&mmu->base);
		return -1;
	}
	*ret_tracker = &mmu->base;
	return 0;
}

static int mmu_predict(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
		       struct wss_error *err)
{
	struct mmu *mmu = (struct mmu *)tracker;

	return predict_cost(mmu, mmu->fine.on, ret_prediction, err);
}

static int mmu_prepare(struct wss_tracker *tracker, struct wss_error *err)
{
	struct mmu *mmu = (struct mmu *)tracker;
	struct wss_kvm_counts counts;

	if (!mmu->fine.on)
		return 1;
	if (wss_counters_read(mmu->counters, &counts, err) < 0)
		return -1;
	return wss_fine_prepare(&mmu->fine, mmu->guest, mmu->options.window_ns, &counts, err);
}

static bool mmu_prepare_stalls(const struct wss_tracker *tracker)
{
	const struct mmu *mmu = (const struct mmu *)tracker;

	return wss_fine_prepare_stalls(&mmu->fine, mmu->options.window_ns);
}

static bool mmu_spoilt(const struct wss_tracker *tracker)
{
	const struct mmu *mmu = (const struct mmu *)tracker;

	return wss_fine_spoilt(&mmu->fine, mmu->options.window_ns);
}

static bool mmu_settle(struct wss_tracker *tracker, struct wss_sample *sample)
{
	struct mmu *mmu = (struct mmu *)tracker;
	struct wss_kvm_counts counts;
	bool known = wss_counters_read(mmu->counters, &counts, NULL) == 0;

	return wss_fine_settle(&mmu->fine, mmu->guest, known ? &counts : NULL,
			       wss_pagewise_logs_writes(&mmu->pages), sample);
}

static uint64_t mmu_valid_until_ns(const struct wss_tracker *tracker)
{
	const struct mmu *mmu = (const struct mmu *)tracker;

	return mmu->fine.on ? mmu->fine.log.ends_ns : 0;
}

static int mmu_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	if (!wss_counters_need_qemu(((const struct mmu *)tracker)->counters))
		return 0;
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"holding the guest needs debugfs or BPF for KVM's counters: a stopped QEMU cannot be asked for them");
}

static int mmu_begin(struct wss_tracker *tracker, struct wss_span *ret_span, struct wss_error *err)
{
	struct mmu *mmu = (struct mmu *)tracker;
	struct wss_gauge_reading reading;
	struct wss_kvm_counts counts;

	if (wss_counters_read(mmu->counters, &counts, err) < 0 ||
	    wss_pagewise_begin(&mmu->pages, &counts, err) < 0)
		return -1;
	mmu->faults_before = (struct wss_amount){counts.has_pf_fixed, counts.pf_fixed};
	if (wss_fault("skip-zap"))
		ret_span->start_ns = ret_span->end_ns = wss_clock_now_ns();
	else if (wss_control_clear(&mmu->guest->process, '4', ret_span, err) < 0)
		return -1;
	if (wss_counters_read(mmu->counters, &counts, err) < 0)
		return -1;
	wss_fine_begun(&mmu->fine);
	wss_fine_seen(&mmu->fine, &counts);
	mmu->nested = false;
	mmu->nested_base = counts.nested_run;
	watch_nested(mmu, &counts);
	mmu->armed = counts;
	reading = gauge_reading(&counts);
	wss_gauge_begin(&mmu->gauge, &reading);
	return 0;
}

static void mmu_started(struct wss_tracker *tracker, uint64_t start_ns)
{
	struct mmu *mmu = (struct mmu *)tracker;

	wss_pagewise_started(&mmu->pages, &mmu->armed, start_ns, mmu->options.window_ns);
}

static void mmu_want_pages(struct wss_tracker *tracker)
{
	((struct mmu *)tracker)->want_pages = true;
}

/* Unknown if KVM counts fewer than before, as when QEMU has ended some of its virtual CPUs. */
static struct wss_amount faults_since(const struct mmu *mmu, const struct wss_kvm_counts *counts)
{
	const struct wss_amount *before = &mmu->faults_before;

	return (struct wss_amount){counts->has_pf_fixed && before->known &&
					   counts->pf_fixed >= before->value,
				   counts->pf_fixed - before->value};
}

static int mmu_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		    struct wss_error *err)
{
	struct mmu *mmu = (struct mmu *)tracker;
	struct wss_gauge_reading reading;
	struct wss_kvm_counts counts;
	uint64_t start_ns = wss_clock_now_ns();

	if (wss_counters_read(mmu->counters, &counts, err) < 0)
		return -1;
	watch_nested(mmu, &counts);
	wss_fine_seen(&mmu->fine, &counts);
	reading = gauge_reading(&counts);
	wss_gauge_add(&mmu->gauge, &reading);
	wss_gauge_result(&mmu->gauge, mmu->guest->config.maximum_bytes, &mmu->result);
	*ret_reading = (struct wss_reading){
		.span = {start_ns, wss_clock_now_ns()},
		.wss_bytes = mmu->result.wss_bytes,
		.low_bytes = mmu->result.low_bytes,
		.high_bytes = mmu->result.high_bytes,
		.granularity_bytes = mmu->result.granularity_bytes,
		.faults = faults_since(mmu, &counts),
	};
	if (mmu->want_pages) {
		wss_pagewise_refine(&mmu->pages, &counts, mmu->nested, ret_reading);
		ret_reading->span.end_ns = wss_clock_now_ns();
	} else {
		wss_pagewise_poll(&mmu->pages, &counts);
	}
	mmu->want_pages = false;
	return 0;
}

static void mmu_pages(const struct wss_tracker *tracker, struct wss_page_view *ret_view)
{
	wss_pagewise_view(&((const struct mmu *)tracker)->pages, ret_view);
}

static const char *mmu_recorder(const struct wss_host *host, const struct wss_guest *guest,
				struct wss_error *ret_why)
{
	return wss_recorder_probe(host, guest, ret_why) == 0 ? "bpf" : "counters";
}

/* Notes conditions that make the gauge doubtful; none of them affects the recorder. */
static void explain_gauge(const struct mmu *mmu, struct wss_sample *sample)
{
	const struct wss_domxml *config = &mmu->guest->config;

	if (mmu->result.fallen_bytes)
		wss_sample_degrade(
			sample,
			"the host unmapped %llu KiB in the window (reclaim, KSM, NUMA balancing or balloon)",
			(unsigned long long)mmu->result.fallen_bytes / 1024);
	/* Two vCPUs may fault on the same page at once, so a small excess is tolerated. */
	if (mmu->result.excess_faults * 100 > mmu->gauge.max_entries)
		wss_sample_degrade(
			sample,
			"the host unmapped memory in the window, and there were %llu faults more than mapped entries",
			(unsigned long long)mmu->result.excess_faults);
	if (config->hostdevs || config->shmems)
		wss_sample_degrade(sample,
				   "memory of assigned or shared devices is counted as well");
}

static void mmu_explain(const struct wss_tracker *tracker, struct wss_sample *sample)
{
	const struct mmu *mmu = (const struct mmu *)tracker;

	wss_fine_explain(&mmu->fine, sample);
	if (mmu->result.granularity_bytes > 4096)
		wss_sample_note(sample,
				"KVM maps this guest by %s and one access counts as a whole entry: "
				"the working set lies between the low and the high bound "
				"(use granularity 4k for an exact figure)",
				mmu->result.granularity_bytes > SIZE_2M ? "1 GiB" : "2 MiB");
	/* A guest that changes a nested one's tables has its shadow pages unmapped. */
	if (!mmu->pages.exact && !mmu->nested)
		explain_gauge(mmu, sample);
	wss_pagewise_explain(&mmu->pages, sample);
	wss_sample_note(sample, "accesses by devices (QEMU's emulation, vhost, VFIO) are not seen");
}

const struct wss_tracker_ops wss_tracker_mmu = {
	.name = "mmu",
	.summary = "unmaps guest memory in EPT/NPT and counts the pages faulted back in",
	.observes = WSS_OBSERVES_ACCESSES,
	.granularity = "as KVM maps: 4 KiB, 2 MiB or 1 GiB",
	.costs =
		"a second-level fault for each page at its first touch; its vCPUs wait while the window starts, which is predicted and limited",
	.limits =
		"on huge pages counts whole ones, unless by 4 KiB; what only devices touch is missing",
	.cheap_poll = true,
	.touch_faults = true,
	.probe = mmu_probe,
	.open = mmu_open,
	.prepare = mmu_prepare,
	.prepare_stalls = mmu_prepare_stalls,
	.valid_until_ns = mmu_valid_until_ns,
	.spoilt = mmu_spoilt,
	.settle = mmu_settle,
	.predict = mmu_predict,
	.check_stopped = mmu_check_stopped,
	.begin = mmu_begin,
	.started = mmu_started,
	.want_pages = mmu_want_pages,
	.poll = mmu_poll,
	.pages = mmu_pages,
	.recorder = mmu_recorder,
	.explain = mmu_explain,
	.close = mmu_close,
};
