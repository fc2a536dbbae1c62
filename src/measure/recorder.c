/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * After an invalidation KVM maps a page of the guest when it is touched first. So the pages that are
 * mapped at the end are those that were touched, less those that the host has unmapped meanwhile (KSM,
 * NUMA balancing, reclaim, a balloon). Therefore walks within the window are added up: a page is only
 * missed if it was both touched first and unmapped between two of them, and not touched again.
 *
 * How many that can be is estimated from the same walks: of the pages mapped at one walk some are
 * no longer mapped at the next, and new pages can have been unmapped at that rate. This is on the safe
 * side, since they were mapped for a part of that time only.
 *
 * KVM maps pages that were not touched in two cases: for a huge page of the host, where an entry stands
 * for all its pages, and where it maps the neighbours of a page in advance (Linux 6.1,
 * arch/x86/kvm/mmu/mmu.c, direct_pte_prefetch()), which it does with shadow pages only: with shadow
 * paging, and for two-dimensional paging with the module's parameter tdp_mmu off. Entries mapped in
 * advance are not marked as accessed (make_spte()), so the marks give a lower bound. It can be too
 * low, as others may clear them.
 *
 * Where marks were cleared in place of an invalidation, an entry counts if it is marked, and a mark that has gone is one that
 * somebody else has cleared, or that the host has unmapped: both are lost alike.
 */
#include "measure/recorder.h"

#include <linux/kvm.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "host/gpa.h"
#include "kvm/kvm.h"

#define PAGE_SHIFT 12
#define WORD_PAGES 64

struct wss_recorder {
	const struct wss_host *host;
	const struct wss_guest *guest;
	struct wss_kvm_vm *vm;
	struct wss_kvm_slots slots; /* at the start, ordered by address */
	struct wss_gpa_layout ram;
	uint64_t words; /* of 64 pages, in each bitmap */
	uint64_t *touched, *written, *accessed;
	uint64_t *now,
		*last; /* mapped at the walk that is going on, else none; and at the one before */
	struct wss_recorder_counts counts;
	double lost_pages;
	bool need_marks; /* what is mapped but not marked as accessed does not count */
};

/* Whether KVM maps pages in advance. */
static bool maps_in_advance(const struct wss_host *host)
{
	return host->two_dim_paging == WSS_NO || host->tdp_mmu == WSS_NO;
}

static enum wss_kvm_accessed accessed_bit(const struct wss_host *host)
{
	return host->two_dim_paging == WSS_YES && host->ept ? WSS_KVM_ACCESSED_EPT
							    : WSS_KVM_ACCESSED_X86;
}

int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest,
		       struct wss_error *err)
{
	(void)host;
	if (wss_kvm.probe(err) < 0)
		return -1;
	if (!guest || guest->ram_known || guest->process.pidfd < 0)
		return 0;
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "%s", guest->ram_error.text);
}

void wss_recorder_close(struct wss_recorder *recorder)
{
	if (!recorder)
		return;
	wss_kvm.close(recorder->vm);
	free(recorder->slots.slots);
	free(recorder->touched);
	free(recorder);
}

int wss_recorder_open(const struct wss_host *host, const struct wss_guest *guest,
		      struct wss_recorder **ret_recorder, struct wss_error *err)
{
	struct wss_recorder *recorder = calloc(1, sizeof(*recorder));

	if (!recorder)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	recorder->host = host;
	recorder->guest = guest;
	if (wss_recorder_probe(host, guest, err) < 0 ||
	    wss_kvm.open(guest->process.pid, guest->vm, &recorder->vm, err) < 0) {
		wss_recorder_close(recorder);
		return -1;
	}
	*ret_recorder = recorder;
	return 0;
}

/* --- where the RAM is --- */

static int slot_compare(const void *a, const void *b)
{
	const struct wss_kvm_slot_record *x = a, *y = b;

	return (x->first_page > y->first_page) - (x->first_page < y->first_page);
}

/* Reads the slots, ordered by address. */
static int read_slots(const struct wss_recorder *recorder, struct wss_kvm_slots *ret_slots,
		      struct wss_error *err)
{
	if (wss_kvm.slots(recorder->vm, ret_slots, err) < 0)
		return -1;
	qsort(ret_slots->slots, ret_slots->n_slots, sizeof(*ret_slots->slots), slot_compare);
	return 0;
}

static uint64_t slots_pages(const struct wss_kvm_slots *slots)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < slots->n_slots; i++)
		pages += slots->slots[i].n_pages;
	return pages;
}

/* Their flags do not matter: they change with the dirty log. */
static enum wss_recorder_slots slots_change(const struct wss_kvm_slots *before,
					    const struct wss_kvm_slots *now)
{
	uint64_t pages_before = slots_pages(before), pages_now = slots_pages(now);
	bool same = before->n_slots == now->n_slots;

	for (size_t i = 0; i < now->n_slots && same; i++) {
		const struct wss_kvm_slot_record *x = &before->slots[i], *y = &now->slots[i];

		same = x->first_page == y->first_page && x->n_pages == y->n_pages &&
		       x->host_address == y->host_address;
	}
	if (same)
		return WSS_SLOTS_SAME;
	return pages_now > pages_before	  ? WSS_SLOTS_GREW
	       : pages_now < pages_before ? WSS_SLOTS_SHRANK
					  : WSS_SLOTS_MOVED;
}

static int find_ram(struct wss_recorder *recorder, struct wss_error *err)
{
	free(recorder->slots.slots);
	recorder->slots = (struct wss_kvm_slots){0};
	if (read_slots(recorder, &recorder->slots, err) < 0)
		return -1;
	return wss_gpa_of_slots(&recorder->slots, &recorder->guest->ram, &recorder->ram, err);
}

enum wss_tristate wss_recorder_logs_writes(const struct wss_recorder *recorder)
{
	struct wss_kvm_slots slots;
	bool logs = false;

	if (wss_kvm.slots(recorder->vm, &slots, NULL) < 0)
		return WSS_UNKNOWN;
	for (size_t i = 0; i < slots.n_slots; i++) {
		const struct wss_kvm_slot_record *slot = &slots.slots[i];

		/* QEMU always logs a graphics card's memory. */
		for (size_t k = 0;
		     k < recorder->ram.n_ranges && slot->flags & KVM_MEM_LOG_DIRTY_PAGES; k++)
			logs |= slot->first_page << PAGE_SHIFT < recorder->ram.ranges[k].end &&
				recorder->ram.ranges[k].start < (slot->first_page + slot->n_pages)
									<< PAGE_SHIFT;
	}
	free(slots.slots);
	return logs ? WSS_YES : WSS_NO;
}

/* --- bitmaps --- */

static int make_bitmaps(struct wss_recorder *recorder, struct wss_error *err)
{
	uint64_t end_page = recorder->ram.ranges[recorder->ram.n_ranges - 1].end >> PAGE_SHIFT;
	uint64_t words = (end_page + WORD_PAGES - 1) / WORD_PAGES;
	uint64_t *bitmaps = words > SIZE_MAX / (5 * sizeof(*bitmaps))
				    ? NULL
				    : calloc(words * 5, sizeof(*bitmaps));

	if (!bitmaps)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	free(recorder->touched);
	recorder->words = words;
	recorder->touched = bitmaps;
	recorder->written = bitmaps + words;
	recorder->now = bitmaps + 2 * words;
	recorder->last = bitmaps + 3 * words;
	recorder->accessed = bitmaps + 4 * words;
	return 0;
}

int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err)
{
	recorder->counts = (struct wss_recorder_counts){.touched_pages = 0};
	recorder->lost_pages = 0;
	return find_ram(recorder, err) < 0 ? -1 : make_bitmaps(recorder, err);
}

void wss_recorder_need_marks(struct wss_recorder *recorder)
{
	recorder->need_marks = true;
}

/* Returns which of 64 pages are guest RAM, a bit each. */
static uint64_t ram_mask(const struct wss_recorder *recorder, uint64_t first_page)
{
	const struct wss_gpa_range *ranges = recorder->ram.ranges;
	uint64_t mask = 0;

	for (size_t i = 0;
	     i < recorder->ram.n_ranges && ranges[i].start >> PAGE_SHIFT < first_page + WORD_PAGES;
	     i++) {
		uint64_t first = wss_u64_max(ranges[i].start >> PAGE_SHIFT, first_page);
		uint64_t end = wss_u64_min(ranges[i].end >> PAGE_SHIFT, first_page + WORD_PAGES);

		if (first < end)
			mask |= (end - first == WORD_PAGES ? UINT64_MAX
							   : (1ULL << (end - first)) - 1)
				<< (first - first_page);
	}
	return mask;
}

static unsigned ones(uint64_t word)
{
	return (unsigned)__builtin_popcountll(word);
}

static void add_leaf(const struct wss_kvm_leaf_record *leaf, void *opaque)
{
	struct wss_recorder *recorder = opaque;
	struct wss_recorder_counts *counts = &recorder->counts;
	uint64_t ram = ram_mask(recorder, leaf->first_page & ~(WORD_PAGES - 1ULL)),
		 i = leaf->first_page / WORD_PAGES;
	uint64_t mapped = leaf->mapped & ram, writable = leaf->writable & ram;
	uint64_t page_bytes = leaf->n_pages > WORD_PAGES ? (uint64_t)leaf->n_pages << PAGE_SHIFT
							 : 1 << PAGE_SHIFT;
	/* KVM also maps pages in advance where it shadows a nested guest's tables. */
	uint64_t accessed =
		maps_in_advance(recorder->host) || leaf->guest_mode ? leaf->accessed & ram : mapped;

	counts->entries += ones(leaf->mapped);
	counts->outside_pages += ones(leaf->mapped & ~ram);
	counts->mapped_bytes += ones(mapped) * page_bytes;
	if (recorder->need_marks) {
		mapped &= leaf->accessed;
		writable &= leaf->accessed;
	}
	if (!mapped || i >= recorder->words)
		return;
	counts->touched_bytes +=
		ones(mapped & ~recorder->touched[i] & ~recorder->now[i]) * page_bytes;
	recorder->now[i] |= mapped;
	counts->written_pages += ones(writable & ~recorder->written[i]);
	recorder->written[i] |= writable;
	counts->accessed_pages += ones(accessed & ~recorder->accessed[i]);
	recorder->accessed[i] |= accessed;
}

/* Adds the walk that has just ended to those before. */
static void add_walk(struct wss_recorder *recorder)
{
	uint64_t new_pages = 0, known = 0, missing = 0, *spare = recorder->last;

	for (uint64_t i = 0; i < recorder->words; i++) {
		/* Most of a guest is not mapped; and what is not written to takes no memory. */
		if (!(recorder->now[i] | recorder->last[i]))
			continue;
		new_pages += ones(recorder->now[i] & ~recorder->touched[i]);
		recorder->touched[i] |= recorder->now[i];
		known += ones(recorder->last[i]);
		missing += ones(recorder->last[i] & ~recorder->now[i]);
		spare[i] = 0;
	}
	if (known)
		recorder->lost_pages += (double)new_pages * (double)missing / (double)known;
	recorder->last = recorder->now;
	recorder->now = spare;
	recorder->counts.walks++;
	recorder->counts.touched_pages += new_pages;
	recorder->counts.lost_pages = wss_u64_from_double(recorder->lost_pages);
}

int wss_recorder_walk(struct wss_recorder *recorder, struct wss_error *err)
{
	struct wss_kvm_slots slots;
	int r;

	if (read_slots(recorder, &slots, err) < 0)
		return -1;
	if (recorder->counts.slots == WSS_SLOTS_SAME)
		recorder->counts.slots = slots_change(&recorder->slots, &slots);
	recorder->counts.entries = recorder->counts.outside_pages = 0;
	recorder->counts.mapped_bytes = 0;
	r = wss_kvm.walk(recorder->vm, &slots, accessed_bit(recorder->host), add_leaf, recorder,
			 err);
	free(slots.slots);
	add_walk(recorder);
	recorder->counts.incomplete = r < 0;
	return r;
}

struct wss_recorder_counts wss_recorder_counts(const struct wss_recorder *recorder)
{
	return recorder->counts;
}

struct wss_pages wss_recorder_touched(const struct wss_recorder *recorder)
{
	return wss_pages_of_bits(recorder->touched, recorder->words);
}

struct wss_pages wss_recorder_written(const struct wss_recorder *recorder)
{
	return wss_pages_of_bits(recorder->written, recorder->words);
}
