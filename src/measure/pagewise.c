/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/pagewise.h"

#include "base/clock.h"
#include "base/number.h"

#define PAGE 4096ULL
#define BLOCK (2ULL << 20)
/* Tolerance for a few pages: those mapped during the reading. */
#define SLACK_PAGES 64
/*
 * Without any unmapping, walks are at 1/16, 1/8, a quarter and a half of the window, and at its end: whatever is unmapped
 * later was probably seen. With unmapping they take at most this part of the time.
 */
#define FIRST_WALK_PART 16
#define WALK_FACTOR 2
#define WALKS_PART 64

static void close_recorder(struct wss_pagewise *pages)
{
	wss_recorder_close(pages->recorder);
	pages->recorder = NULL;
}

static int open_recorder(struct wss_pagewise *pages, struct wss_error *err)
{
	pages->why_not = (struct wss_error)WSS_ERROR_INIT;
	if (wss_recorder_open(pages->host, pages->guest, &pages->recorder, &pages->why_not) == 0 ||
	    pages->choice == WSS_RECORDER_AUTO)
		return 0;
	*err = pages->why_not;
	return -1;
}

int wss_pagewise_open(struct wss_pagewise *pages, const struct wss_host *host,
		      const struct wss_guest *guest, enum wss_recorder_choice choice,
		      struct wss_error *err)
{
	*pages = (struct wss_pagewise){
		.host = host,
		.guest = guest,
		.choice = choice,
		.shadow = host->two_dim_paging == WSS_NO,
	};
	if (choice != WSS_RECORDER_COUNTERS)
		return open_recorder(pages, err);
	wss_error_set(&pages->why_not, WSS_ERR_UNSUPPORTED, "the recorder was not requested");
	return 0;
}

/* Drops the recorder, for the reason in why_not, unless pages are wanted. */
static int do_without(struct wss_pagewise *pages, struct wss_error *err)
{
	close_recorder(pages);
	if (pages->choice == WSS_RECORDER_AUTO)
		return 0;
	*err = pages->why_not;
	return -1;
}

int wss_pagewise_begin(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
		       struct wss_error *err)
{
	pages->exact = pages->blocks = pages->inconsistent = false;
	pages->large_seen = counts->pages_2m || counts->pages_1g;
	pages->walked_ns = 0;
	pages->walk_error = (struct wss_error)WSS_ERROR_INIT;
	if (!pages->recorder || wss_recorder_start(pages->recorder, &pages->why_not) == 0)
		return 0;
	return do_without(pages, err);
}

void wss_pagewise_started(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
			  uint64_t start_ns, uint64_t window_ns)
{
	pages->start_ns = start_ns;
	pages->next_ns = start_ns + window_ns / FIRST_WALK_PART;
	pages->flushes = counts->tlb_flushes;
}

/* Whether the host has unmapped something since the last walk, as far as is known. */
static bool host_unmapped(const struct wss_pagewise *pages, const struct wss_kvm_counts *counts)
{
	return !counts->has_tlb_flushes || counts->tlb_flushes != pages->flushes;
}

static void walk(struct wss_pagewise *pages, const struct wss_kvm_counts *counts, uint64_t now_ns)
{
	pages->walk_error = (struct wss_error)WSS_ERROR_INIT;
	wss_recorder_walk(pages->recorder, &pages->walk_error);
	while (pages->next_ns <= now_ns)
		pages->next_ns = pages->start_ns +
				 wss_u64_max((pages->next_ns - pages->start_ns) * WALK_FACTOR, 1);
	pages->flushes = counts->tlb_flushes;
	pages->walked_ns += wss_clock_now_ns() - now_ns;
}

void wss_pagewise_poll(struct wss_pagewise *pages, const struct wss_kvm_counts *counts)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (pages->recorder && (now_ns >= pages->next_ns ||
				(host_unmapped(pages, counts) &&
				 pages->walked_ns * WALKS_PART <= now_ns - pages->start_ns)))
		walk(pages, counts, now_ns);
}

static uint64_t seen_pages(const struct wss_pagewise *pages)
{
	return pages->counts.touched_pages + pages->counts.outside_pages;
}

/* Whether the walks have found this many entries, up to a few. */
static bool explains(const struct wss_pagewise *pages, uint64_t entries)
{
	/* The tables that shadow a nested guest's map some pages a second time. */
	uint64_t seen = pages->nested ? pages->counts.entries : seen_pages(pages);

	return entries <= seen + seen / 100 + SLACK_PAGES;
}

/* Where pages are mapped in advance, those that are not marked as accessed may not have been touched. */
static bool all_accessed(const struct wss_pagewise *pages)
{
	const struct wss_recorder_counts *counts = &pages->counts;

	return counts->touched_pages - counts->accessed_pages <=
	       counts->touched_pages / 100 + SLACK_PAGES;
}

/* Of entries that KVM counted at some time in the window, those that no walk has found are lost, too. */
static uint64_t lost_pages(const struct wss_pagewise *pages, const struct wss_reading *reading)
{
	uint64_t most = pages->shadow ? 0 : reading->wss_bytes / PAGE;

	return wss_u64_max(pages->counts.lost_pages, wss_u64_sub(most, seen_pages(pages)));
}

static void refine_pages(struct wss_pagewise *pages, struct wss_reading *reading)
{
	uint64_t lost = lost_pages(pages, reading), touched = pages->counts.touched_pages;

	/* Where the walks found nothing in the guest's RAM there is no exact figure, but KVM's counters still have one. */
	if (!touched && pages->mapped_bytes)
		return;
	reading->low_bytes = pages->counts.accessed_pages * PAGE;
	reading->high_bytes = (touched + lost) * PAGE;
	pages->exact = all_accessed(pages) && lost <= touched / 100;
	if (all_accessed(pages))
		reading->low_bytes = touched * PAGE;
	reading->wss_bytes = all_accessed(pages) ? reading->low_bytes : reading->high_bytes;
}

static void refine_blocks(struct wss_pagewise *pages, struct wss_reading *reading)
{
	uint64_t touched_bytes = pages->counts.touched_pages * PAGE;

	pages->blocks = reading->granularity_bytes <= BLOCK && all_accessed(pages) &&
			explains(pages, reading->low_bytes / PAGE);
	reading->low_bytes = wss_u64_max(reading->low_bytes, pages->counts.accessed_pages * PAGE);
	reading->high_bytes = wss_u64_max(reading->high_bytes, touched_bytes);
	reading->wss_bytes = wss_u64_max(reading->wss_bytes, reading->low_bytes);
}

/*
 * KVM shadows the tables that a guest has made for a nested one, and counts a page twice that both reach. The walks give
 * the page numbers of the outer guest for both (arch/x86/kvm/mmu/mmu.c, kvm_mmu_page_get_gfn()), and so their union.
 */
static void refine_nested(const struct wss_pagewise *pages, struct wss_reading *reading)
{
	uint64_t touched_bytes = pages->counts.touched_pages * PAGE;

	reading->low_bytes = pages->counts.accessed_pages * PAGE;
	reading->high_bytes =
		wss_u64_max(reading->high_bytes, touched_bytes + pages->counts.lost_pages * PAGE);
	if (reading->granularity_bytes == PAGE)
		reading->wss_bytes = touched_bytes;
}

void wss_pagewise_refine(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
			 bool nested, struct wss_reading *reading)
{
	pages->mapped_bytes = reading->wss_bytes;
	pages->large_seen |= reading->granularity_bytes > PAGE;
	pages->exact = pages->blocks = false;
	pages->nested = nested;
	if (!pages->recorder)
		return;
	walk(pages, counts, wss_clock_now_ns());
	pages->counts = wss_recorder_counts(pages->recorder);
	/* A frame may be mapped at several places by shadow pages. */
	pages->inconsistent = !pages->shadow && !pages->walk_error.code &&
			      !explains(pages, wss_kvm_counts_entries(counts));
	if (pages->inconsistent || pages->walk_error.code)
		return;
	if (nested)
		refine_nested(pages, reading);
	else if (reading->granularity_bytes == PAGE)
		refine_pages(pages, reading);
	else
		refine_blocks(pages, reading);
	if (pages->counts.slots != WSS_SLOTS_SAME) {
		pages->exact = pages->blocks = false;
		/* Memory that was plugged is not known to be RAM. */
		reading->high_bytes += pages->counts.outside_pages * PAGE;
	}
}

enum wss_tristate wss_pagewise_logs_writes(const struct wss_pagewise *pages)
{
	return pages->recorder ? wss_recorder_logs_writes(pages->recorder) : WSS_UNKNOWN;
}

void wss_pagewise_view(const struct wss_pagewise *pages, struct wss_page_view *ret_view)
{
	if (pages->exact) {
		ret_view->touched = wss_recorder_touched(pages->recorder);
		ret_view->written = wss_recorder_written(pages->recorder);
	} else if (pages->blocks) {
		ret_view->blocks = wss_recorder_touched(pages->recorder);
	}
}

/* Returns why a write may have been missed; NULL if none can have been. */
static const char *why_bounded(const struct wss_pagewise *pages, const struct wss_sample *sample)
{
	if (pages->host->soft_dirty != WSS_YES)
		return "this kernel has no soft-dirty tracking";
	if (!sample->memory.huge_bytes.known)
		return "it is not known whether its memory is on huge pages";
	if (pages->large_seen || sample->memory.huge_bytes.value)
		return "its memory is on huge pages";
	if (pages->guest->config.hostdevs)
		return "assigned devices pin its memory";
	if (!pages->exact)
		return "the touched pages are not known exactly";
	return NULL;
}

static void explain_written(const struct wss_pagewise *pages, struct wss_sample *sample)
{
	struct wss_amount written = wss_amount_of(pages->counts.written_pages * PAGE);
	const char *why = why_bounded(pages, sample);

	if (!why) {
		sample->written_bytes = sample->written_low_bytes = sample->written_high_bytes =
			written;
		return;
	}
	sample->written_high_bytes = pages->exact ? written : sample->high_bytes;
	wss_sample_note(
		sample,
		"the written memory is an upper bound, because %s: KVM may map a page writable that is only read",
		why);
}

static void explain_slots(enum wss_recorder_slots slots, struct wss_sample *sample)
{
	static const char *const texts[] = {
		[WSS_SLOTS_GREW] =
			"memory was plugged into the guest within the window: pages touched there are missing",
		[WSS_SLOTS_SHRANK] =
			"memory was unplugged from the guest within the window: pages touched there may be missing",
		[WSS_SLOTS_MOVED] =
			"memory of the guest moved within the window: pages touched there may be missing",
	};

	if (texts[slots])
		wss_sample_degrade(sample, "%s", texts[slots]);
}

void wss_pagewise_explain(const struct wss_pagewise *pages, struct wss_sample *sample)
{
	bool usable = pages->recorder && !pages->inconsistent && !pages->walk_error.code;

	sample->recorder = usable ? "bpf" : "counters";
	sample->mapped_bytes = wss_amount_of(pages->mapped_bytes);
	if (pages->inconsistent)
		wss_sample_degrade(
			sample,
			"KVM counts more pages than its tables show: the figures are those of its counters");
	if (pages->recorder && pages->walk_error.code)
		wss_sample_note(sample, "the figures are those of KVM's counters: %s",
				pages->walk_error.text);
	if (!pages->recorder)
		wss_sample_note(sample,
				"measured by KVM's counters only, so the written memory is "
				"unknown: %s",
				pages->why_not.text);
	if (!usable && pages->shadow)
		wss_sample_degrade(
			sample,
			"KVM uses shadow paging: its counters also count pages that it maps in advance or twice");
	else if (!usable && pages->host->tdp_mmu == WSS_NO)
		wss_sample_degrade(
			sample,
			"kvm.tdp_mmu is off: KVM's counters also count pages that it maps in advance");
	if (!usable && pages->nested)
		wss_sample_degrade(
			sample, "a nested guest ran: its shadow page tables are counted as well");
	if (!usable)
		return;
	explain_slots(pages->counts.slots, sample);
	if (pages->nested)
		wss_sample_note(
			sample,
			"a nested guest ran: a page that both it and the guest touched counts once, and twice in the high bound");
	if (!all_accessed(pages))
		wss_sample_note(
			sample,
			"KVM has mapped pages in advance: the low bound has those that the processor has marked as accessed");
	explain_written(pages, sample);
}

void wss_pagewise_close(struct wss_pagewise *pages)
{
	close_recorder(pages);
}
