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
 */
#include "track/recorder.h"

#include <linux/kvm.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "host/gpa.h"
#include "kvm/vm.h"

#define PAGE_SHIFT 12
#define WORD_PAGES 64

/* Pages of 4 KiB; end is exclusive. */
struct page_range {
	uint64_t first, end;
};

struct wss_recorder {
	const struct wss_host *host;
	const struct wss_guest *guest;
	struct wss_kvm_vm *vm;
	struct wss_kvm_slots slots;
	struct page_range *ram; /* ordered by address, disjoint */
	size_t n_ram, ram_room;
	uint64_t words; /* of 64 pages, in each bitmap */
	uint64_t *touched, *written, *accessed;
	uint64_t *now, *last; /* mapped at the walk that is going on, else none; and at the one before */
	struct wss_recorder_counts counts;
	double lost_pages;
};

/* Whether KVM maps pages in advance. */
static bool maps_in_advance(const struct wss_host *host)
{
	return host->two_dim_paging == WSS_NO || host->tdp_mmu == WSS_NO;
}

static enum wss_kvm_accessed accessed_bit(const struct wss_host *host)
{
	return host->two_dim_paging == WSS_YES && host->ept ? WSS_KVM_ACCESSED_EPT : WSS_KVM_ACCESSED_X86;
}

int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest, struct wss_error *err)
{
	struct wss_gpa_layout unused;

	(void)host;
	if (wss_kvm.probe(err) < 0)
		return -1;
	return !guest || guest->ram_known ? 0 : wss_gpa_layout(&guest->config, &unused, err);
}

void wss_recorder_close(struct wss_recorder *recorder)
{
	if (!recorder)
		return;
	wss_kvm.close(recorder->vm);
	free(recorder->slots.slots);
	free(recorder->ram);
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
	    wss_kvm.open(guest->process.pid, &recorder->vm, err) < 0) {
		wss_recorder_close(recorder);
		return -1;
	}
	*ret_recorder = recorder;
	return 0;
}

/* --- where the RAM is --- */

static int ram_add(struct wss_recorder *recorder, uint64_t first, uint64_t end, struct wss_error *err)
{
	size_t room = recorder->ram_room ? 2 * recorder->ram_room : 16;
	struct page_range *larger;

	if (recorder->n_ram == recorder->ram_room) {
		larger = reallocarray(recorder->ram, room, sizeof(*larger));
		if (!larger)
			return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		recorder->ram = larger;
		recorder->ram_room = room;
	}
	recorder->ram[recorder->n_ram++] = (struct page_range){ first, end };
	return 0;
}

/* Adds the part of a slot whose memory in QEMU is guest RAM, not a device's or firmware. */
static int ram_add_slot(struct wss_recorder *recorder, const struct wss_kvm_slot_record *slot, struct wss_error *err)
{
	const struct wss_ram *ram = &recorder->guest->ram;
	uint64_t slot_end = slot->host_address + (slot->n_pages << PAGE_SHIFT);

	for (size_t i = 0; i < ram->n_ranges; i++) {
		uint64_t start = wss_u64_max(ram->ranges[i].start, slot->host_address);
		uint64_t end = wss_u64_min(ram->ranges[i].end, slot_end);
		uint64_t first = slot->first_page + ((start - slot->host_address) >> PAGE_SHIFT);

		if (start < end && ram_add(recorder, first, first + ((end - start) >> PAGE_SHIFT), err) < 0)
			return -1;
	}
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct page_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

static int find_ram(struct wss_recorder *recorder, struct wss_error *err)
{
	struct wss_gpa_layout layout;

	recorder->n_ram = 0;
	free(recorder->slots.slots);
	recorder->slots = (struct wss_kvm_slots){0};
	if (wss_kvm.slots(recorder->vm, &recorder->slots, err) < 0)
		return -1;
	if (!recorder->guest->ram_known) {
		if (wss_gpa_layout(&recorder->guest->config, &layout, err) < 0)
			return -1;
		for (size_t i = 0; i < layout.n_ranges; i++)
			if (ram_add(recorder, layout.ranges[i].start >> PAGE_SHIFT,
				    layout.ranges[i].end >> PAGE_SHIFT, err) < 0)
				return -1;
		return 0;
	}
	for (size_t i = 0; i < recorder->slots.n_slots; i++)
		if (ram_add_slot(recorder, &recorder->slots.slots[i], err) < 0)
			return -1;
	if (!recorder->n_ram)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "KVM has no memory slot with the guest's RAM");
	qsort(recorder->ram, recorder->n_ram, sizeof(*recorder->ram), compare_ranges);
	return 0;
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
		for (size_t k = 0; k < recorder->n_ram && slot->flags & KVM_MEM_LOG_DIRTY_PAGES; k++)
			logs |= slot->first_page < recorder->ram[k].end &&
				recorder->ram[k].first < slot->first_page + slot->n_pages;
	}
	free(slots.slots);
	return logs ? WSS_YES : WSS_NO;
}

/* --- bitmaps --- */

static int make_bitmaps(struct wss_recorder *recorder, struct wss_error *err)
{
	size_t n = maps_in_advance(recorder->host) ? 5 : 4;
	uint64_t words = (recorder->ram[recorder->n_ram - 1].end + WORD_PAGES - 1) / WORD_PAGES;
	uint64_t *bitmaps = words > SIZE_MAX / (5 * sizeof(*bitmaps)) ? NULL : calloc(words * n, sizeof(*bitmaps));

	if (!bitmaps)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	free(recorder->touched);
	recorder->words = words;
	recorder->touched = bitmaps;
	recorder->written = bitmaps + words;
	recorder->now = bitmaps + 2 * words;
	recorder->last = bitmaps + 3 * words;
	recorder->accessed = n == 5 ? bitmaps + 4 * words : NULL;
	return 0;
}

int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err)
{
	recorder->counts = (struct wss_recorder_counts){ .touched_pages = 0 };
	recorder->lost_pages = 0;
	return find_ram(recorder, err) < 0 ? -1 : make_bitmaps(recorder, err);
}

/* Returns which of 64 pages are guest RAM, a bit each. */
static uint64_t ram_mask(const struct wss_recorder *recorder, uint64_t first_page)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < recorder->n_ram && recorder->ram[i].first < first_page + WORD_PAGES; i++) {
		uint64_t first = wss_u64_max(recorder->ram[i].first, first_page);
		uint64_t end = wss_u64_min(recorder->ram[i].end, first_page + WORD_PAGES);

		if (first < end)
			mask |= (end - first == WORD_PAGES ? UINT64_MAX : (1ULL << (end - first)) - 1)
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
	uint64_t ram = ram_mask(recorder, leaf->first_page & ~(WORD_PAGES - 1ULL)), i = leaf->first_page / WORD_PAGES;
	uint64_t mapped = leaf->mapped & ram, writable = leaf->writable & ram, accessed = leaf->accessed & ram;

	counts->outside_pages += ones(leaf->mapped & ~ram);
	if (!mapped || i >= recorder->words)
		return;
	recorder->now[i] |= mapped;
	counts->written_pages += ones(writable & ~recorder->written[i]);
	recorder->written[i] |= writable;
	if (!recorder->accessed)
		return;
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
	if (!recorder->accessed)
		recorder->counts.accessed_pages = recorder->counts.touched_pages;
}

int wss_recorder_walk(struct wss_recorder *recorder, struct wss_error *err)
{
	int r;

	recorder->counts.outside_pages = 0;
	r = wss_kvm.walk(recorder->vm, &recorder->slots, accessed_bit(recorder->host), add_leaf, recorder, err);
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
