/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accessed bits of the host's pages, by the kernel's idle page tracking.
 *
 * Theory of operation
 *
 * Each page of the host behind the guest's RAM is made idle, which clears its accessed bits in QEMU's page tables and in KVM's, and
 * at the end of the window the kernel is asked which are idle still (measure/idle-pages.h). Nothing is unmapped, so the guest
 * takes no fault, and nothing has to be undone. Accesses by QEMU itself count, too. Pages that the host has allocated within the window are
 * not idle, and count: something has touched them.
 *
 * The set that is seen is a lower bound, as accesses by the TLB set no bit (measure/marks.h). So the low bound has what is not
 * idle, the high bound also what a TLB may hide, what cannot be made idle, and what the host has taken from the guest within the
 * window. Of a large page, whose first touch makes it busy as a whole, the low bound has one page.
 *
 * Others clear accessed bits and may keep the news from the bitmap: MGLRU's aging (mm/vmscan.c, walk_pte_range(), of Linux 6.12), DAMON,
 * which makes the pages that it looks at idle (mm/damon/ops-common.c), and NUMA balancing, which unmaps pages: with MGLRU on, and
 * from Linux 6.13 on always, the accessed bit of KVM's entry is lost then. They are looked for, and the sample is degraded.
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "host/vmm-cgroup.h"
#include "measure/counters.h"
#include "measure/generations.h"
#include "measure/idle-pages.h"
#include "measure/kvm-cost.h"
#include "measure/marks.h"
#include "measure/methods.h"
#include "measure/stall.h"

#define PAGE 4096ULL
/*
 * A page is looked up by itself, from its reverse mapping to QEMU's entry and KVM's, with a lock for each: in the nested lab
 * that takes so many times as long as to walk over an entry of each.
 */
#define IDLE_ENTRY_FACTOR 100

struct idle {
	struct wss_tracker base;
	const struct wss_host *host;
	struct wss_guest *guest;
	struct wss_idle_pages *pages;
	struct wss_counters
		*counters; /* NULL: unknown, as they only show that there were no faults */
	bool only_small;   /* pages of 4 KiB are asked for */
	char cgroup[PATH_MAX];
	uint64_t predicted_ns; /* of marking and reading */

	/* Of the window: */
	struct wss_idle_counts armed, seen;
	struct wss_kvm_counts armed_kvm;
	bool has_armed_kvm;
	uint64_t spent_ns; /* on marking and reading */
	uint64_t arming_ns, armed_ns, start_ns;
	struct wss_generations generations; /* since the arming; none: unknown */
	uint64_t hidden_bytes;
	uint64_t taken_pages; /* by the host, since the arming */
};

/* --- probe --- */

static int probe_process(struct wss_guest *guest, struct wss_error *err)
{
	uint64_t rss, hugetlb;

	if (!guest->ram_known)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "guest RAM was not found among QEMU's mappings: %s",
				     guest->ram_error.text);
	if (wss_resident_read(&guest->process, &rss, &hugetlb, err) < 0)
		return -1;
	if (hugetlb)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"guest RAM is hugetlb, which the kernel's idle page tracking leaves out");
	return 0;
}

static int idle_probe(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err)
{
	if ((guest && wss_marks_probe_guest(guest, err) < 0) ||
	    wss_idle_pages_probe(host, err) < 0 || wss_marks_probe_host(host, "idle", err) < 0)
		return -1;
	return guest && guest->process.proc.dirfd >= 0 ? probe_process(guest, err) : 0;
}

/* --- a window --- */

static void idle_close(struct wss_tracker *tracker)
{
	struct idle *idle = (struct idle *)tracker;

	if (!idle)
		return;
	wss_counters_close(idle->counters);
	wss_idle_pages_close(idle->pages);
	free(idle);
}

static int idle_run(struct idle *idle, enum wss_idle_task task, struct wss_idle_counts *ret,
		    struct wss_error *err)
{
	uint64_t start_ns = wss_clock_now_ns();
	int r;

	wss_deadline_step(idle->guest->deadline, task == WSS_IDLE_READ
							 ? "reading which pages are idle"
							 : "marking pages idle");
	r = wss_idle_pages_run(idle->pages, &idle->guest->ram, task, idle->guest->deadline, ret,
			       err);

	idle->spent_ns += wss_clock_now_ns() - start_ns;
	return r;
}

static int check_small(const struct idle *idle, const struct wss_idle_counts *counts,
		       struct wss_error *err)
{
	char size[16];

	if (!idle->only_small || counts->largest_pages <= 1)
		return 0;
	wss_size_format(counts->largest_pages * PAGE, size, sizeof(size));
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"4 KiB granularity: some of the guest's RAM is on pages of %s, where one access counts for all of that",
		size);
}

static int idle_open(const struct wss_host *host, struct wss_guest *guest,
		     const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		     struct wss_error *err)
{
	struct idle *idle = calloc(1, sizeof(*idle));
	struct wss_idle_counts counts;
	bool own;

	if (!idle)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	idle->base.ops = &wss_tracker_idle;
	idle->host = host;
	idle->guest = guest;
	idle->only_small = options->granularity == WSS_GRANULARITY_4K;
	if (idle_probe(host, guest, err) < 0 ||
	    wss_idle_pages_open(host, &guest->process, &idle->pages, err) < 0 ||
	    (idle->only_small && (idle_run(idle, WSS_IDLE_LOOK, &counts, err) < 0 ||
				  check_small(idle, &counts, err) < 0))) {
		idle_close(&idle->base);
		return -1;
	}
	wss_counters_open(host, guest, &idle->counters, NULL);
	if (!wss_vmm_cgroup_of_memory(&host->root, &guest->process.proc, guest->process.pid,
				      idle->cgroup, &own))
		idle->cgroup[0] = '\0';
	*ret_tracker = &idle->base;
	return 0;
}

/* No vCPU waits longer than for a lock that is held for a page at a time. */
static int idle_predict(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
			struct wss_error *err)
{
	struct idle *idle = (struct idle *)tracker;
	struct wss_kvm_counts counts = {.pages_2m = 0};
	uint64_t rss, huge, entries;

	if (wss_resident_read(&idle->guest->process, &rss, NULL, err) < 0 ||
	    (idle->counters && wss_counters_read(idle->counters, &counts, err) < 0))
		return -1;
	/* KVM maps 2 MiB only where the host's page is huge. */
	huge = wss_u64_min(wss_u64_mul(counts.pages_2m, 2 * WSS_MIB), rss);
	entries = (rss - huge) / PAGE + huge / (2 * WSS_MIB);
	/* Each is looked up when it is marked, and when it is read. */
	idle->predicted_ns = wss_u64_from_double(2 * IDLE_ENTRY_FACTOR * (double)entries *
						 (wss_stall_entry_ns() + wss_kvm_cost()->entry_ns));
	ret_prediction->memory_ns = idle->predicted_ns;
	ret_prediction->faults = wss_amount_of(0);
	ret_prediction->faults_so_far = (struct wss_amount){counts.has_pf_fixed, counts.pf_fixed};
	return 0;
}

static int idle_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	const struct idle *idle = (const struct idle *)tracker;

	if (!idle->counters || !wss_counters_need_qemu(idle->counters))
		return 0;
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"holding the guest needs debugfs or BPF for KVM's counters: a stopped QEMU cannot be asked for them");
}

static int idle_begin(struct wss_tracker *tracker, struct wss_span *ret_span, struct wss_error *err)
{
	struct idle *idle = (struct idle *)tracker;
	uint64_t start_ns = wss_clock_now_ns();
	enum wss_idle_task task = wss_fault("skip-aging") ? WSS_IDLE_LOOK : WSS_IDLE_SET;

	idle->spent_ns = 0;
	idle->has_armed_kvm =
		idle->counters && wss_counters_read(idle->counters, &idle->armed_kvm, NULL) == 0;
	if (idle_run(idle, task, &idle->armed, err) < 0 || check_small(idle, &idle->armed, err) < 0)
		return -1;
	idle->start_ns = idle->armed_ns = wss_clock_now_ns();
	idle->arming_ns = idle->armed_ns - start_ns;
	if (!idle->cgroup[0] ||
	    wss_generations_read(idle->host, idle->cgroup, &idle->generations, NULL) < 0)
		idle->generations.n_nodes = 0;
	wss_log_guest(WSS_LOG_DEBUG, idle->guest->config.name, idle->guest->config.uuid,
		      "marked %llu of %llu pages idle in %.3f ms, predicted with reading %.3f ms",
		      (unsigned long long)idle->armed.tracked_pages,
		      (unsigned long long)idle->armed.present_pages, (double)idle->arming_ns / 1e6,
		      (double)idle->predicted_ns / 1e6);
	/* No vCPU waits for all of it. */
	*ret_span = (struct wss_span){idle->armed_ns, idle->armed_ns};
	return 0;
}

static void idle_started(struct wss_tracker *tracker, uint64_t start_ns)
{
	((struct idle *)tracker)->start_ns = start_ns;
}

static struct wss_amount faults_since(const struct idle *idle)
{
	struct wss_kvm_counts now;

	if (!idle->has_armed_kvm || !idle->armed_kvm.has_pf_fixed ||
	    wss_counters_read(idle->counters, &now, NULL) < 0 || !now.has_pf_fixed ||
	    now.pf_fixed < idle->armed_kvm.pf_fixed)
		return (struct wss_amount){.known = false};
	return wss_amount_of(now.pf_fixed - idle->armed_kvm.pf_fixed);
}

static void make_reading(struct idle *idle, struct wss_reading *ret)
{
	const struct wss_idle_counts *seen = &idle->seen;
	uint64_t touched_pages = seen->touched_pages + seen->unsure_pages, high_bytes;

	idle->taken_pages = wss_u64_sub(idle->armed.present_pages, seen->present_pages);
	ret->granularity_bytes = wss_u64_max(seen->largest_pages, 1) * PAGE;
	idle->hidden_bytes = wss_marks_hidden_bytes(idle->guest, ret->granularity_bytes,
						    (seen->present_pages - touched_pages) * PAGE);
	high_bytes = wss_u64_add((touched_pages + idle->taken_pages) * PAGE, idle->hidden_bytes);
	ret->low_bytes = seen->touched_units * PAGE;
	ret->high_bytes = wss_u64_max(wss_u64_min(high_bytes, idle->guest->config.maximum_bytes),
				      ret->low_bytes);
	/* Of large pages one of 4 KiB is certain, which says less than the high bound. */
	ret->wss_bytes = ret->granularity_bytes > PAGE ? ret->high_bytes : ret->low_bytes;
	ret->faults = faults_since(idle);
}

static int idle_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		     struct wss_error *err)
{
	struct idle *idle = (struct idle *)tracker;
	uint64_t start_ns = wss_clock_now_ns();

	if (idle_run(idle, WSS_IDLE_READ, &idle->seen, err) < 0)
		return -1;
	make_reading(idle, ret_reading);
	ret_reading->span = (struct wss_span){start_ns, wss_clock_now_ns()};
	return 0;
}

/* --- what the sample says --- */

/* Whether a thread of DAMON's runs on this host, by its name, which the kernel gives (mm/damon/core.c, __damon_start()). */
static bool damon_runs(const struct wss_host *host)
{
	wss_auto_dir DIR *dir = NULL;
	struct dirent *entry;

	if (wss_root_opendir(&host->root, "proc", &dir) < 0)
		return false;
	while ((entry = readdir(dir))) {
		char path[32], name[32];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "proc/%.16s/comm", entry->d_name);
		if (wss_root_read_line(&host->root, path, name, sizeof(name)) == 0 &&
		    !strncmp(name, "kdamond.", strlen("kdamond.")))
			return true;
	}
	return false;
}

static bool numa_balancing_is_on(const struct wss_host *host)
{
	uint64_t mode;

	return wss_root_read_u64(&host->root, "proc/sys/kernel/numa_balancing", &mode) == 0 && mode;
}

static void explain_others(const struct idle *idle, struct wss_sample *sample)
{
	if (wss_generations_has_newer(idle->host, idle->cgroup, &idle->generations))
		wss_sample_degrade(
			sample,
			"the kernel, or another program, aged the guest's memory within the window: pages may be missing");
	if (damon_runs(idle->host))
		wss_sample_degrade(
			sample,
			"DAMON runs on this host (kdamond) and makes pages idle that it looks at: pages may be missing");
	if (numa_balancing_is_on(idle->host))
		wss_sample_degrade(
			sample,
			"NUMA balancing is on (/proc/sys/kernel/numa_balancing): pages that it has unmapped may be missing");
}

static void explain_pages(const struct idle *idle, struct wss_sample *sample)
{
	const struct wss_idle_counts *seen = &idle->seen;
	char size[16];

	wss_size_format(seen->unsure_pages * PAGE, size, sizeof(size));
	if (seen->unsure_pages)
		wss_sample_note(
			sample,
			"the low bound leaves out %s that cannot be made idle (the zero page, or just allocated) or that KSM shares",
			size);
	wss_size_format(idle->taken_pages * PAGE, size, sizeof(size));
	if (idle->taken_pages * 100 > seen->touched_pages)
		wss_sample_degrade(
			sample,
			"the host has taken %s from the guest within the window (reclaim, balloon): some of it may be missing",
			size);
	if (seen->largest_pages > 1)
		wss_sample_note(
			sample,
			"some of the guest's RAM is on large pages, where one access counts for all: the low bound has 4 KiB of each");
}

static void idle_explain(const struct wss_tracker *tracker, struct wss_sample *sample)
{
	const struct idle *idle = (const struct idle *)tracker;
	char duration[16];

	sample->cost.memory_ns += idle->spent_ns;
	wss_marks_explain_hidden(idle->hidden_bytes, sample);
	explain_pages(idle, sample);
	explain_others(idle, sample);
	/* A guest that was held begins later. */
	wss_duration_format(idle->arming_ns, duration, sizeof(duration));
	if (idle->start_ns == idle->armed_ns)
		wss_sample_note(
			sample,
			"marking the pages took %s before the window, and what the guest touched meanwhile may count, too",
			duration);
	wss_sample_note(
		sample,
		"accesses by QEMU's own device emulation and by vhost count, those of VFIO devices are not seen");
}

const struct wss_tracker_ops wss_tracker_idle = {
	.name = "idle",
	.summary = "marks the host's pages of the guest as idle and counts which are no longer",
	.observes = WSS_OBSERVES_ACCESSES,
	.granularity = "4 KiB; the whole of a large page",
	.costs =
		"no fault; the kernel looks up each of the host's pages when the window starts, and when it ends",
	.limits =
		"misses the pages whose translation a TLB keeps: up to 32 MiB a vCPU of 4 KiB pages, all of them on huge pages; counts QEMU's own accesses",
	.by_name_only = true,
	.probe = idle_probe,
	.open = idle_open,
	.predict = idle_predict,
	.check_stopped = idle_check_stopped,
	.begin = idle_begin,
	.started = idle_started,
	.poll = idle_poll,
	.explain = idle_explain,
	.close = idle_close,
};
