/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Accessed bits of KVM's own page tables, which the kernel's multi-generational LRU (MGLRU) clears.
 *
 * Theory of operation
 *
 * A line written to debugfs' lru_gen starts a new generation of the pages of one memory cgroup on one NUMA node
 * (Documentation/admin-guide/mm/multigen_lru.rst). For that the kernel walks the page tables of the cgroup's processes and
 * clears the accessed bit of each page, by the MMU notifier also that of KVM's entry (Linux 6.12, mm/vmscan.c,
 * walk_pte_range(), ptep_clear_young_notify(); commit 1d4832becdc2: before it only QEMU's own bits were cleared). No entry is
 * dropped, so the guest takes no fault, and nothing has to be undone: a generation is what the kernel starts by itself
 * when memory is short. It becomes harder for the kernel to tell which of the guest's pages have been idle longest, as it
 * keeps four generations. Whether MGLRU is on is never changed here.
 *
 * Then the recorder walks KVM's tables and adds up the pages that are marked as accessed.
 *
 * The set that is seen is a lower bound. KVM does not flush the TLB when a mark is cleared (virt/kvm/kvm_main.c,
 * kvm_mmu_notifier_clear_young()), and an access by a translation that is still there sets none: so what is hidden is at most
 * what a TLB holds, unless a vCPU moves to another processor or KVM flushes for another reason. That is what a
 * guest uses most. Pages that MGLRU passes by would always look touched: hugetlb and locked memory and that of other
 * cgroups is refused; the zero page and those shared by KSM are mapped read-only, and the low bound leaves those out that
 * are still marked right after the aging. A walk of the kernel's that finds QEMU's mmap_lock taken ends at once, and
 * reports success. So it is looked at what it has done: either marks are gone, or as many pages as were marked have moved to
 * the generation that was the newest. Otherwise aging is repeated.
 */
#include <limits.h>
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
#include "measure/kvm-cost.h"
#include "measure/marks.h"
#include "measure/methods.h"
#include "measure/recorder.h"
#include "measure/stall.h"

#define SWITCHES "sys/kernel/mm/lru_gen/enabled"
/* mm/vmscan.c, show_enabled(): MGLRU itself, and that it clears accessed bits by walking page tables. */
#define SWITCH_CORE 1UL
#define SWITCH_WALK 2UL

#define PAGE 4096ULL
/* Aging is repeated where fewer marks than this part of them are gone, and there were more than a few. */
#define CLEARED_PART 16
#define CLEARED_FEW 256
#define ROUNDS 3
/* Walks before the last one take at most this part of the time, and are this factor apart: those of the curve's points. */
#define WALKS_PART 16
#define WALK_FACTOR 1.3
/* QEMU's program and libraries are charged to who used them first. */
#define CHARGED_SLACK (128 * WSS_MIB)
/*
 * An entry that is aged is looked up by itself, from the root of the tables, while entries that are dropped are so in a row:
 * in the nested lab it takes 4 to 10 times as long.
 */
#define AGE_ENTRY_FACTOR 8

struct lrugen {
	struct wss_tracker base;
	const struct wss_host *host;
	struct wss_guest *guest;
	struct wss_counters *counters;
	struct wss_recorder *recorder;
	char cgroup[PATH_MAX];
	uint64_t predicted_ns; /* of the aging */

	/* Of the window: */
	struct wss_generations aged; /* as they are since the aging */
	uint64_t aging_ns;	     /* that it took */
	bool ineffective;	     /* it has cleared hardly any mark */
	uint64_t passed_by_pages;    /* that aging cannot clear, as far as is known */
	struct wss_kvm_counts armed; /* before the aging */
	uint64_t start_ns;
	struct wss_reading reading; /* the last one */
	struct wss_recorder_counts counts;
	uint64_t walk_ns; /* that its walk took; 0: there was none yet */
	uint64_t flushes; /* requested by the host until then */
	uint64_t hidden_bytes;
	bool sample_is_due; /* the next poll is for a sample */
	bool aged_by_others, incomplete, nested;
};

/* --- probe --- */

static int probe_mglru(const struct wss_host *host, struct wss_error *err)
{
	char line[32], *end;
	unsigned long switches;

	if (wss_root_read_line(&host->root, SWITCHES, line, sizeof(line)) < 0)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "this kernel has no MGLRU (CONFIG_LRU_GEN)");
	if (host->version < WSS_KERNEL_VERSION(6, 12))
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"MGLRU clears no accessed bits of KVM's before Linux 6.12, and this is %s",
			host->release[0] ? host->release : "of an unknown version");
	switches = strtoul(line, &end, 16);
	if (end == line || *end)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "/" SWITCHES " has a form that virt-wss does not know");
	if (!(switches & SWITCH_CORE))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "MGLRU is off on this host (/" SWITCHES " is %s)", line);
	if (!(switches & SWITCH_WALK))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "MGLRU walks no page tables on this host (/" SWITCHES
				     " is %s, without 0x0002)",
				     line);
	return wss_generations_probe(host, err);
}

static int probe_host(const struct wss_host *host, struct wss_error *err)
{
	if (probe_mglru(host, err) < 0 || wss_marks_probe_host(host, "lrugen", err) < 0)
		return -1;
	return wss_recorder_probe(host, NULL, err) < 0
		       ? wss_error_prefix(err, "KVM's page tables cannot be read")
		       : 0;
}

/* Pages of other cgroups are passed by, and others' processes in this one would be aged as well. */
static int probe_cgroup(const struct wss_host *host, const struct wss_process *process,
			char ret_cgroup[PATH_MAX], struct wss_error *err)
{
	struct wss_amount charged;
	uint64_t rss;
	bool own;

	if (!wss_vmm_cgroup_of_memory(&host->root, &process->proc, process->pid, ret_cgroup, &own))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "QEMU is in no memory cgroup (version 2) but the root");
	if (!own)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"QEMU shares its memory cgroup %s with other processes, which would be aged, too: "
			"start it in a scope of its own",
			ret_cgroup);
	if (wss_resident_read(process, &rss, NULL, err) < 0)
		return -1;
	charged = wss_vmm_cgroup_charged(&host->root, ret_cgroup);
	if (charged.known && charged.value + CHARGED_SLACK < rss)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"%llu MiB of QEMU's memory are charged to another cgroup than its own, which is not aged",
			(rss - charged.value) / WSS_MIB);
	return 0;
}

static int probe_process(const struct wss_host *host, struct wss_guest *guest,
			 char ret_cgroup[PATH_MAX], struct wss_error *err)
{
	struct wss_generations generations;
	uint64_t rss, hugetlb;

	if (wss_recorder_probe(host, guest, err) < 0 ||
	    wss_resident_read(&guest->process, &rss, &hugetlb, err) < 0)
		return -1;
	if (hugetlb)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "guest RAM is hugetlb, which MGLRU does not age");
	if (guest->config.locked)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"guest RAM is locked in the host's memory, and MGLRU passes it by");
	if (probe_cgroup(host, &guest->process, ret_cgroup, err) < 0)
		return -1;
	return wss_generations_read(host, ret_cgroup, &generations, err);
}

static int lrugen_probe(const struct wss_host *host, struct wss_guest *guest, struct wss_error *err)
{
	char cgroup[PATH_MAX];

	if ((guest && wss_marks_probe_guest(guest, err) < 0) || probe_host(host, err) < 0)
		return -1;
	return guest && guest->process.proc.dirfd >= 0 ? probe_process(host, guest, cgroup, err)
						       : 0;
}

/* --- a window --- */

static void lrugen_close(struct wss_tracker *tracker)
{
	struct lrugen *lrugen = (struct lrugen *)tracker;

	if (!lrugen)
		return;
	wss_recorder_close(lrugen->recorder);
	wss_counters_close(lrugen->counters);
	free(lrugen);
}

static int check_small(const struct lrugen *lrugen, struct wss_error *err)
{
	struct wss_kvm_counts counts;

	if (wss_counters_read(lrugen->counters, &counts, err) < 0)
		return -1;
	if (!counts.pages_2m && !counts.pages_1g)
		return 0;
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"4 KiB granularity: KVM maps some of the guest's memory by %s, with one accessed bit for all of that",
		counts.pages_1g ? "1 GiB" : "2 MiB");
}

static int lrugen_open(const struct wss_host *host, struct wss_guest *guest,
		       const struct wss_track_options *options, struct wss_tracker **ret_tracker,
		       struct wss_error *err)
{
	struct lrugen *lrugen = calloc(1, sizeof(*lrugen));

	if (!lrugen)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	lrugen->base.ops = &wss_tracker_lrugen;
	lrugen->host = host;
	lrugen->guest = guest;
	if (wss_marks_probe_guest(guest, err) < 0 || probe_host(host, err) < 0 ||
	    probe_process(host, guest, lrugen->cgroup, err) < 0 ||
	    wss_counters_open(host, guest, &lrugen->counters, err) < 0 ||
	    (options->granularity == WSS_GRANULARITY_4K && check_small(lrugen, err) < 0) ||
	    wss_recorder_open(host, guest, &lrugen->recorder, err) < 0) {
		lrugen_close(&lrugen->base);
		return -1;
	}
	wss_recorder_need_marks(lrugen->recorder);
	*ret_tracker = &lrugen->base;
	return 0;
}

/*
 * The aging costs no vCPU more than a wait for a lock that is held for a page at a time. Its walk is charged: of the host's
 * entries once for each node, and of KVM's, which are looked up one by one.
 */
static int lrugen_predict(struct wss_tracker *tracker, struct wss_prediction *ret_prediction,
			  struct wss_error *err)
{
	struct lrugen *lrugen = (struct lrugen *)tracker;
	struct wss_generations generations;
	struct wss_kvm_counts counts;
	uint64_t rss, huge, entries;

	if (wss_resident_read(&lrugen->guest->process, &rss, NULL, err) < 0 ||
	    wss_counters_read(lrugen->counters, &counts, err) < 0 ||
	    wss_generations_read(lrugen->host, lrugen->cgroup, &generations, err) < 0)
		return -1;
	/* KVM maps 2 MiB only where the host's page is huge. */
	huge = wss_u64_min(wss_u64_mul(counts.pages_2m, 2 * WSS_MIB), rss);
	entries = (rss - huge) / PAGE + huge / (2 * WSS_MIB);
	lrugen->predicted_ns = wss_u64_from_double(
		(double)entries * ((double)generations.n_nodes * wss_stall_entry_ns() +
				   AGE_ENTRY_FACTOR * wss_kvm_cost()->entry_ns));
	ret_prediction->memory_ns = lrugen->predicted_ns;
	ret_prediction->faults = wss_amount_of(0);
	ret_prediction->faults_so_far = (struct wss_amount){counts.has_pf_fixed, counts.pf_fixed};
	return 0;
}

static int lrugen_check_stopped(const struct wss_tracker *tracker, struct wss_error *err)
{
	if (!wss_counters_need_qemu(((const struct lrugen *)tracker)->counters))
		return 0;
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"holding the guest needs debugfs or BPF for KVM's counters: a stopped QEMU cannot be asked for them");
}

/* Forgets what was seen, and takes the marks that there are now. */
static int marks_read(struct lrugen *lrugen, struct wss_recorder_counts *ret, struct wss_error *err)
{
	if (wss_recorder_start(lrugen->recorder, err) < 0)
		return -1;
	/* Tables that change meanwhile are no reason to give up at once. */
	if (wss_recorder_walk(lrugen->recorder, NULL) < 0 &&
	    wss_recorder_walk(lrugen->recorder, err) < 0)
		return -1;
	*ret = wss_recorder_counts(lrugen->recorder);
	return 0;
}

static int lrugen_age(struct lrugen *lrugen, uint64_t *ret_end_ns, struct wss_error *err)
{
	uint64_t start_ns = wss_clock_now_ns();

	if (!wss_fault("skip-aging") && wss_generations_start(lrugen->host, &lrugen->aged, err) < 0)
		return -1;
	*ret_end_ns = wss_clock_now_ns();
	lrugen->aging_ns += *ret_end_ns - start_ns;
	return 0;
}

/*
 * Whether the aging since has found the pages that were marked: a busy guest may have touched all of them again before the
 * marks were read. MGLRU counts those that it finds marked to the generation that was the newest when it began.
 */
static bool aging_found(const struct wss_generations *before, const struct wss_generations *after,
			uint64_t marked_bytes)
{
	uint64_t found = 0;

	for (size_t i = 0; i < before->n_nodes && i < after->n_nodes; i++)
		if (after->nodes[i].newest == before->nodes[i].newest + 1)
			found = wss_u64_add(found, wss_u64_sub(after->nodes[i].previous_pages,
							       before->nodes[i].newest_pages));
	return found >= marked_bytes / PAGE / 2;
}

/* Ages once, and reads the marks. Returns 1: they were cleared; 0: it has had no effect that could be seen; -1: failed. */
static int lrugen_age_and_look(struct lrugen *lrugen, const struct wss_recorder_counts *before,
			       struct wss_recorder_counts *ret_after, uint64_t *ret_end_ns,
			       struct wss_error *err)
{
	struct wss_generations was;

	if (wss_generations_read(lrugen->host, lrugen->cgroup, &lrugen->aged, err) < 0)
		return -1;
	was = lrugen->aged;
	if (lrugen_age(lrugen, ret_end_ns, err) < 0 || marks_read(lrugen, ret_after, err) < 0 ||
	    wss_generations_read(lrugen->host, lrugen->cgroup, &lrugen->aged, err) < 0)
		return -1;
	return before->touched_pages <= CLEARED_FEW ||
	       ret_after->touched_pages <=
		       before->touched_pages - before->touched_pages / CLEARED_PART ||
	       aging_found(&was, &lrugen->aged, before->touched_bytes);
}

static int lrugen_begin(struct wss_tracker *tracker, struct wss_span *ret_span,
			struct wss_error *err)
{
	struct lrugen *lrugen = (struct lrugen *)tracker;
	struct wss_recorder_counts before, after;
	uint64_t end_ns = 0;
	int r = 0;

	if (wss_counters_read(lrugen->counters, &lrugen->armed, err) < 0 ||
	    marks_read(lrugen, &before, err) < 0)
		return -1;
	lrugen->aging_ns = 0;
	for (int i = 0; i < ROUNDS && r == 0; i++) {
		r = lrugen_age_and_look(lrugen, &before, &after, &end_ns, err);
		if (r < 0)
			return -1;
	}
	lrugen->ineffective = r == 0;
	lrugen->passed_by_pages = after.touched_pages - after.written_pages;
	lrugen->counts = after;
	lrugen->walk_ns = 0;
	lrugen->start_ns = end_ns;
	lrugen->flushes = lrugen->armed.tlb_flushes;
	lrugen->sample_is_due = lrugen->aged_by_others = false;
	lrugen->incomplete = lrugen->nested = false;
	wss_log_guest(WSS_LOG_DEBUG, lrugen->guest->config.name, lrugen->guest->config.uuid,
		      "aged in %.3f ms, predicted %.3f ms: %llu pages were marked before, %llu are",
		      (double)lrugen->aging_ns / 1e6, (double)lrugen->predicted_ns / 1e6,
		      (unsigned long long)before.touched_pages,
		      (unsigned long long)after.touched_pages);
	/* No vCPU waits for all of it. */
	*ret_span = (struct wss_span){end_ns, end_ns};
	return 0;
}

static void lrugen_started(struct wss_tracker *tracker, uint64_t start_ns)
{
	((struct lrugen *)tracker)->start_ns = start_ns;
}

static void lrugen_want_pages(struct wss_tracker *tracker)
{
	((struct lrugen *)tracker)->sample_is_due = true;
}

/* What the host unmaps is lost unless a walk has seen it before: the more often the better, within limits. */
static bool walk_is_due(const struct lrugen *lrugen, const struct wss_kvm_counts *counts)
{
	uint64_t now_ns = wss_clock_now_ns(), last_ns = lrugen->reading.span.end_ns;

	if (lrugen->sample_is_due || !lrugen->walk_ns)
		return true;
	if ((now_ns - last_ns) / WALKS_PART < lrugen->walk_ns)
		return false;
	return (counts->has_tlb_flushes && counts->tlb_flushes != lrugen->flushes) ||
	       (double)(now_ns - lrugen->start_ns) >=
		       (double)(last_ns - lrugen->start_ns) * WALK_FACTOR;
}

static uint64_t largest_entry(const struct wss_kvm_counts *counts)
{
	return counts->pages_1g ? WSS_GIB : counts->pages_2m ? 2 * WSS_MIB : PAGE;
}

static void make_reading(struct lrugen *lrugen, const struct wss_kvm_counts *counts,
			 struct wss_reading *ret)
{
	const struct wss_recorder_counts *seen = &lrugen->counts;
	uint64_t granularity_bytes = largest_entry(counts), most;

	lrugen->hidden_bytes =
		wss_marks_hidden_bytes(lrugen->guest, granularity_bytes,
				       wss_u64_sub(seen->mapped_bytes, seen->touched_bytes));
	most = wss_u64_add(wss_u64_add(seen->touched_bytes, lrugen->hidden_bytes),
			   wss_u64_mul(seen->lost_pages, granularity_bytes));
	if (lrugen->incomplete)
		most = UINT64_MAX;
	ret->low_bytes = lrugen->ineffective
				 ? 0
				 : wss_u64_sub(seen->touched_pages, lrugen->passed_by_pages) * PAGE;
	ret->high_bytes = wss_u64_max(wss_u64_min(most, lrugen->guest->config.maximum_bytes),
				      seen->touched_bytes);
	/* Of larger entries one page is certain, which says less than the high bound. */
	ret->wss_bytes =
		granularity_bytes > PAGE || lrugen->ineffective ? ret->high_bytes : ret->low_bytes;
	ret->granularity_bytes = granularity_bytes;
	/* Those that the guest took anyway. */
	ret->faults = (struct wss_amount){counts->has_pf_fixed && lrugen->armed.has_pf_fixed &&
						  counts->pf_fixed >= lrugen->armed.pf_fixed,
					  counts->pf_fixed - lrugen->armed.pf_fixed};
}

static int lrugen_walk(struct lrugen *lrugen, struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;

	lrugen->incomplete = wss_recorder_walk(lrugen->recorder, &why) < 0;
	if (lrugen->incomplete && why.code != WSS_ERR_FAILED) {
		*err = why;
		return -1;
	}
	lrugen->counts = wss_recorder_counts(lrugen->recorder);
	return 0;
}

static int lrugen_poll(struct wss_tracker *tracker, struct wss_reading *ret_reading,
		       struct wss_error *err)
{
	struct lrugen *lrugen = (struct lrugen *)tracker;
	uint64_t start_ns = wss_clock_now_ns();
	struct wss_kvm_counts counts;

	if (wss_counters_read(lrugen->counters, &counts, err) < 0)
		return -1;
	if ((counts.has_guest_mode && counts.guest_mode) ||
	    (counts.has_nested && counts.nested_run != lrugen->armed.nested_run))
		lrugen->nested = true;
	if (walk_is_due(lrugen, &counts)) {
		if (lrugen_walk(lrugen, err) < 0)
			return -1;
		make_reading(lrugen, &counts, &lrugen->reading);
		lrugen->flushes = counts.tlb_flushes;
		lrugen->reading.span = (struct wss_span){start_ns, wss_clock_now_ns()};
		lrugen->walk_ns = wss_u64_max(lrugen->reading.span.end_ns - start_ns, 1);
	}
	if (lrugen->sample_is_due)
		lrugen->aged_by_others =
			wss_generations_has_newer(lrugen->host, lrugen->cgroup, &lrugen->aged);
	lrugen->sample_is_due = false;
	*ret_reading = lrugen->reading;
	return 0;
}

/* --- what the sample says --- */

static void explain_marks(const struct lrugen *lrugen, struct wss_sample *sample)
{
	char size[16];

	if (lrugen->ineffective)
		wss_sample_degrade(
			sample,
			"the aging cleared hardly any accessed bit: only the high bound is known");
	wss_marks_explain_hidden(lrugen->hidden_bytes, sample);
	wss_size_format(lrugen->passed_by_pages * PAGE, size, sizeof(size));
	if (lrugen->passed_by_pages && !lrugen->ineffective)
		wss_sample_note(
			sample,
			"the low bound leaves out %s mapped read-only (never written, or shared by KSM), whose accessed bits were not cleared",
			size);
	if (lrugen->aged_by_others)
		wss_sample_degrade(
			sample,
			"the kernel, or another program, aged the guest's memory within the window, too: pages may be missing");
	wss_size_format(wss_u64_mul(lrugen->counts.lost_pages, lrugen->reading.granularity_bytes),
			size, sizeof(size));
	if (lrugen->counts.lost_pages * 100 > lrugen->counts.touched_pages)
		wss_sample_degrade(
			sample,
			"accessed bits have gone within the window (reclaim, KSM, NUMA balancing, balloon, or another program): about %s may be missing",
			size);
}

static void lrugen_explain(const struct wss_tracker *tracker, struct wss_sample *sample)
{
	const struct lrugen *lrugen = (const struct lrugen *)tracker;
	char size[16];

	sample->recorder = "bpf";
	sample->mapped_bytes = wss_amount_of(lrugen->counts.mapped_bytes);
	sample->cost.memory_ns += lrugen->aging_ns;
	explain_marks(lrugen, sample);
	wss_size_format(lrugen->counts.touched_bytes, size, sizeof(size));
	if (lrugen->reading.granularity_bytes > PAGE)
		wss_sample_note(
			sample,
			"KVM maps this guest by %s, and entries of %s together were seen accessed: the low bound has a page of each",
			lrugen->reading.granularity_bytes > 2 * WSS_MIB ? "1 GiB" : "2 MiB", size);
	if (lrugen->counts.slots != WSS_SLOTS_SAME)
		wss_sample_degrade(
			sample,
			"memory was plugged, unplugged or moved within the window: pages touched there may be missing");
	if (lrugen->incomplete)
		wss_sample_degrade(sample, "a part of KVM's page tables could not be read");
	if (lrugen->nested)
		wss_sample_degrade(
			sample,
			"a nested guest ran: what it touched may be missing, as KVM keeps tables of its own for it");
	wss_sample_note(sample, "accesses by devices (QEMU's emulation, vhost, VFIO) are not seen");
}

const struct wss_tracker_ops wss_tracker_lrugen = {
	.name = "lrugen",
	.summary = "has MGLRU clear accessed bits and reads from EPT/NPT which are set again",
	.observes = WSS_OBSERVES_ACCESSES,
	.granularity = "as KVM maps: 4 KiB, 2 MiB or 1 GiB",
	.costs = "no fault; the kernel walks QEMU's page tables when the window starts",
	.limits =
		"misses the pages whose translation a TLB keeps: up to 32 MiB a vCPU of 4 KiB pages, all of them on huge pages",
	.cheap_poll = true,
	.by_name_only = true,
	.probe = lrugen_probe,
	.open = lrugen_open,
	.predict = lrugen_predict,
	.check_stopped = lrugen_check_stopped,
	.begin = lrugen_begin,
	.started = lrugen_started,
	.want_pages = lrugen_want_pages,
	.poll = lrugen_poll,
	.explain = lrugen_explain,
	.close = lrugen_close,
};
