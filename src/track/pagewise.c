/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/pagewise.h"

#include "base/number.h"

#define PAGE 4096ULL
#define BLOCK (2ULL << 20)
/*
 * Tolerance for a few pages: two vCPUs on the same page, firmware, and pages mapped during the
 * reading.
 */
#define SLACK_PAGES 64

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
	*pages = (struct wss_pagewise){ .host = host, .guest = guest, .choice = choice };
	if (choice != WSS_RECORDER_COUNTERS)
		return open_recorder(pages, err);
	wss_error_set(&pages->why_not, WSS_ERR_UNSUPPORTED, "the recorder was not requested");
	return 0;
}

int wss_pagewise_begin(struct wss_pagewise *pages, const struct wss_kvm_counts *counts,
		       struct wss_error *err)
{
	pages->exact = pages->blocks = pages->inconsistent = false;
	pages->large_seen = counts->pages_2m || counts->pages_1g;
	if (pages->recorder && !wss_recorder_fits(pages->recorder, pages->guest)) {
		close_recorder(pages);
		if (open_recorder(pages, err) < 0)
			return -1;
	}
	if (!pages->recorder || wss_recorder_start(pages->recorder, &pages->why_not) == 0)
		return 0;
	close_recorder(pages);
	if (pages->choice == WSS_RECORDER_AUTO)
		return 0;
	*err = pages->why_not;
	return -1;
}

void wss_pagewise_started(struct wss_pagewise *pages, uint64_t start_ns)
{
	if (pages->recorder)
		wss_recorder_set_origin(pages->recorder, start_ns);
}

/*
 * Whether the recorder has seen a fault for each entry of at most 2 MiB, so that each touched block has
 * a page in the bitmap.
 */
static bool knows_blocks(const struct wss_pagewise *pages, const struct wss_reading *reading)
{
	uint64_t seen = pages->counts.touched_pages + pages->counts.outside_faults;

	/* One page of each entry is the counters' low bound. */
	return reading->granularity_bytes <= BLOCK && !pages->counts.missed_events &&
	       pages->host->tdp_mmu != WSS_NO &&
	       reading->low_bytes / PAGE <= seen + seen / 100 + SLACK_PAGES;
}

/*
 * Whether recorder and counters agree: everything that KVM maps has faulted since the
 * invalidation, inside the RAM or outside. If KVM maps more, the recorder observes the wrong
 * process or addresses.
 */
static bool is_consistent(const struct wss_pagewise *pages)
{
	uint64_t seen = pages->counts.touched_pages + pages->counts.outside_faults;

	return pages->mapped_bytes / PAGE <= seen + seen / 100 + SLACK_PAGES;
}

void wss_pagewise_refine(struct wss_pagewise *pages, bool nested, struct wss_reading *reading)
{
	uint64_t touched;

	pages->mapped_bytes = reading->wss_bytes;
	pages->large_seen |= reading->granularity_bytes > PAGE;
	pages->exact = pages->blocks = false;
	pages->nested = nested;
	if (!pages->recorder)
		return;
	wss_recorder_read(pages->recorder, &pages->counts);
	touched = pages->counts.touched_pages * PAGE;
	pages->inconsistent = reading->granularity_bytes == PAGE && !is_consistent(pages);
	if (nested || pages->inconsistent)
		return;
	pages->blocks = knows_blocks(pages, reading);
	/* A guest of which the recorder saw nothing has no exact figure, but KVM's counters still have one. */
	pages->exact = reading->granularity_bytes == PAGE && !pages->counts.missed_events &&
		       pages->host->tdp_mmu != WSS_NO && (touched || !pages->mapped_bytes);
	reading->low_bytes = pages->exact ? touched : wss_u64_max(reading->low_bytes, touched);
	reading->high_bytes = pages->exact ? touched : wss_u64_max(reading->high_bytes, touched);
	if (pages->exact || reading->wss_bytes < reading->low_bytes)
		reading->wss_bytes = reading->low_bytes;
}

size_t wss_pagewise_curve(const struct wss_pagewise *pages, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n)
{
	return pages->exact ? wss_recorder_curve(pages->recorder, until_ns, ret_points, n) : 0;
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
	struct wss_amount low = wss_amount_of(pages->counts.written_pages * PAGE);
	const char *why = why_bounded(pages, sample);

	sample->written_low_bytes = low;
	sample->written_high_bytes = why ? sample->high_bytes : low;
	if (!why) {
		sample->written_bytes = low;
		return;
	}
	wss_sample_note(sample,
			"the written memory is an upper bound, because %s: a page that was read "
			"may then be written without a fault",
			why);
}

void wss_pagewise_explain(const struct wss_pagewise *pages, struct wss_sample *sample)
{
	bool usable = pages->recorder && !pages->inconsistent && !pages->nested;

	sample->recorder = usable ? "bpf" : "counters";
	sample->mapped_bytes = wss_amount_of(pages->mapped_bytes);
	if (pages->inconsistent)
		wss_sample_degrade(sample, "KVM maps more pages than the recorder has seen "
					   "touched: the figures are those of KVM's counters");
	if (!pages->recorder)
		wss_sample_note(sample,
				"measured by KVM's counters only, so the written memory is "
				"unknown: %s",
				pages->why_not.text);
	if (!usable)
		return;
	sample->cost.outside_faults = wss_amount_of(pages->counts.outside_faults);
	if (pages->counts.missed_events)
		wss_sample_degrade(sample, "the recorder missed %llu faults",
				   (unsigned long long)pages->counts.missed_events);
	explain_written(pages, sample);
}

void wss_pagewise_rest(struct wss_pagewise *pages)
{
	if (pages->recorder)
		wss_recorder_stop(pages->recorder);
}

void wss_pagewise_close(struct wss_pagewise *pages)
{
	close_recorder(pages);
}
