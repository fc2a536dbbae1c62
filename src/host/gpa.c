/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/gpa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "kvm/kvm.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define FOUR_GIB (4 * GIB)
#define VGA_START 0xa0000ULL
#define VGA_END 0xc0000ULL
/*
 * If guest memory extends beyond this address, QEMU may move RAM for an AMD CPU. QEMU also
 * counts the PCI window behind the RAM, 32 GiB for q35, and room for memory devices.
 */
#define KNOWN_END (0xfd00000000ULL - 64 * GIB)
#define PAGE_MASK 4095ULL

static bool machine_has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Returns how much of the RAM lies below 4 GiB; 0 for an unknown machine. */
static uint64_t ram_below_4g(const struct wss_domxml *config)
{
	const char *machine = config->machine;
	uint64_t ram = config->initial_bytes, limit = config->max_ram_below_4g_bytes, low;

	/* Machines of QEMU 1.x split at 3.5 GiB. */
	if (machine_has_prefix(machine, "pc-i440fx-1.") || machine_has_prefix(machine, "pc-q35-1."))
		return 0;
	if (!strcmp(machine, "pc") || machine_has_prefix(machine, "pc-i440fx-")) {
		low = limit ? limit : 7 * GIB / 2;
		if (ram >= low && low > 3 * GIB)
			low = 3 * GIB;
	} else if (!strcmp(machine, "q35") || machine_has_prefix(machine, "pc-q35-")) {
		low = ram >= 11 * GIB / 4 ? 2 * GIB : 11 * GIB / 4;
		if (limit && low > limit)
			low = limit;
	} else {
		return 0;
	}
	return ram < low ? ram : low;
}

/* Adds a piece behind those before, or to the last of them if it continues that one. */
static int layout_add(struct wss_gpa_layout *layout, const struct wss_gpa_range *range,
		      struct wss_error *err)
{
	struct wss_gpa_range *last =
		layout->n_ranges ? &layout->ranges[layout->n_ranges - 1] : NULL;

	if (last && range->start == last->end &&
	    range->host == (last->host ? last->host + (last->end - last->start) : 0)) {
		last->end = range->end;
		return 0;
	}
	if (layout->n_ranges == WSS_GPA_RANGES_MAX)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest's RAM has more than %d address ranges",
				     WSS_GPA_RANGES_MAX);
	layout->ranges[layout->n_ranges++] = *range;
	return 0;
}

/* --- by KVM's slots --- */

static int range_compare(const void *a, const void *b)
{
	const struct wss_gpa_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Takes the part of each slot whose memory in the VMM is guest RAM, not a device's or firmware; sorted by address. */
static size_t slots_in_ram(const struct wss_kvm_slots *slots, const struct wss_ram *ram,
			   struct wss_gpa_range *ret_pieces)
{
	size_t n = 0;

	for (size_t i = 0; i < slots->n_slots; i++) {
		const struct wss_kvm_slot_record *slot = &slots->slots[i];
		uint64_t slot_end = slot->host_address + (slot->n_pages << 12);

		for (size_t k = 0; k < ram->n_ranges; k++) {
			uint64_t host = wss_u64_max(ram->ranges[k].start, slot->host_address);
			uint64_t end = wss_u64_min(ram->ranges[k].end, slot_end);
			uint64_t start = (slot->first_page << 12) + (host - slot->host_address);

			if (host < end)
				ret_pieces[n++] =
					(struct wss_gpa_range){start, start + (end - host), host};
		}
	}
	qsort(ret_pieces, n, sizeof(*ret_pieces), range_compare);
	return n;
}

int wss_gpa_of_slots(const struct wss_kvm_slots *slots, const struct wss_ram *ram,
		     struct wss_gpa_layout *ret_layout, struct wss_error *err)
{
	wss_auto_free struct wss_gpa_range *pieces =
		calloc(slots->n_slots * ram->n_ranges + 1, sizeof(*pieces));
	struct wss_gpa_layout layout = {.n_ranges = 0};
	size_t n;

	if (!pieces)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	n = slots_in_ram(slots, ram, pieces);
	for (size_t i = 0; i < n; i++)
		if (layout_add(&layout, &pieces[i], err) < 0)
			return -1;
	if (!n)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "KVM has no memory slot with the guest's RAM");
	*ret_layout = layout;
	return 0;
}

/* Adds what firmware hides now to the piece behind it, where that has the memory that would be there. */
static int show_hidden(const struct wss_gpa_layout *layout, struct wss_gpa_layout *ret_layout,
		       struct wss_error *err)
{
	ret_layout->n_ranges = 0;
	for (size_t i = 0; i < layout->n_ranges; i++) {
		struct wss_gpa_range range = layout->ranges[i];

		if (i && range.start <= MIB &&
		    layout->ranges[i - 1].host - layout->ranges[i - 1].start ==
			    range.host - range.start) {
			uint64_t hidden = wss_u64_sub(
				range.start, wss_u64_max(layout->ranges[i - 1].end, VGA_END));

			range.start -= hidden;
			range.host -= hidden;
		}
		if (layout_add(ret_layout, &range, err) < 0)
			return -1;
	}
	return 0;
}

/* --- by the configuration --- */

static int layout_derive(struct wss_gpa_layout *layout, uint64_t start, uint64_t bytes,
			 struct wss_error *err)
{
	struct wss_gpa_range range = {.start = start & ~PAGE_MASK};

	if (!bytes)
		return 0;
	if (__builtin_add_overflow(start, bytes, &range.end) || range.end > KNOWN_END)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest-physical layout of RAM of this size is unknown");
	range.end = (range.end + PAGE_MASK) & ~PAGE_MASK;
	if (layout->n_ranges && range.start < layout->ranges[layout->n_ranges - 1].end)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest's memory devices overlap its RAM");
	return layout_add(layout, &range, err);
}

static int compare_devices(const void *a, const void *b)
{
	uint64_t x = ((const struct wss_memory_device *)a)->gpa;
	uint64_t y = ((const struct wss_memory_device *)b)->gpa;

	return (x > y) - (x < y);
}

static int layout_add_devices(const struct wss_domxml *config, struct wss_gpa_layout *layout,
			      struct wss_error *err)
{
	struct wss_memory_device devices[WSS_MEMORY_DEVICES_MAX];

	memcpy(devices, config->devices, config->n_devices * sizeof(devices[0]));
	qsort(devices, config->n_devices, sizeof(devices[0]), compare_devices);
	for (size_t i = 0; i < config->n_devices; i++) {
		if (!devices[i].gpa)
			return wss_error_set(err, WSS_ERR_UNSUPPORTED,
					     "the address of a memory device is unknown");
		if (layout_derive(layout, devices[i].gpa, devices[i].bytes, err) < 0)
			return -1;
	}
	return 0;
}

/*
 * Derives the layout from the machine type, the size of the RAM and the addresses of memory
 * devices, for the x86 PC machines "pc" (i440fx, of QEMU 2.0 and newer) and "q35" only:
 *
 *   RAM up to a limit starts at 0; the rest starts at 4 GiB. pc: up to 3.5 GiB is not split,
 *   more is split at 3 GiB (hw/i386/pc_piix.c, pc_init1()). q35: less than 2.75 GiB is not
 *   split, more is split at 2 GiB (hw/i386/pc_q35.c, pc_q35_init()); QEMU 7.2 and 10.0. The
 *   VGA window, 0xa0000 to 0xbffff, hides the RAM behind it.
 *
 * WSS_ERR_UNSUPPORTED, with the reason, if the layout is unknown: another machine type,
 * passed-through QEMU options, a memory device without an address, or so much memory that QEMU
 * moves it past 1 TiB for AMD CPUs (hw/i386/pc.c, AMD_HT_START).
 */
static int derive(const struct wss_domxml *config, struct wss_gpa_layout *ret_layout,
		  struct wss_error *err)
{
	struct wss_gpa_layout layout = {.n_ranges = 0};
	uint64_t low = ram_below_4g(config), ram = config->initial_bytes;
	bool x86 = !config->arch[0] || !strcmp(config->arch, "x86_64") ||
		   !strcmp(config->arch, "i686");

	if (!low || !x86)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest-physical layout of RAM in a machine '%s' is unknown",
			config->machine);
	if (config->qemu_passthrough)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"QEMU's own options (qemu:commandline) may have moved the guest's RAM");
	if (layout_derive(&layout, 0, low < VGA_START ? low : VGA_START, err) < 0 ||
	    (low > VGA_END && layout_derive(&layout, VGA_END, low - VGA_END, err) < 0) ||
	    layout_derive(&layout, FOUR_GIB, ram - low, err) < 0 ||
	    layout_add_devices(config, &layout, err) < 0)
		return -1;
	*ret_layout = layout;
	return 0;
}

/*
 * Where the RAM is one block, it has the pieces one after the other, as if those above 4 GiB followed those below. What
 * the VGA window hides exists, too.
 */
static void place_in_block(struct wss_gpa_layout *layout, const struct wss_ram *ram)
{
	uint64_t low = 0;

	for (size_t i = 0; i < layout->n_ranges; i++) {
		struct wss_gpa_range *range = &layout->ranges[i];
		uint64_t offset =
			range->start < FOUR_GIB ? range->start : low + (range->start - FOUR_GIB);

		range->host = ram->ranges[0].start + offset;
		if (range->start < FOUR_GIB)
			low = range->end;
	}
}

int wss_gpa_of_guest(struct wss_guest *guest, struct wss_gpa_layout *ret_layout,
		     struct wss_error *err)
{
	wss_cleanup(wss_kvm_slots_free) struct wss_kvm_slots slots = {.n_slots = 0};
	struct wss_gpa_layout layout;

	if (guest->ram_known && wss_guest_kernel_vm(guest)) {
		if (wss_guest_slots(guest, &slots, err) < 0 ||
		    wss_gpa_of_slots(&slots, &guest->ram, &layout, err) < 0)
			return -1;
		return show_hidden(&layout, ret_layout, err);
	}
	if (derive(&guest->config, ret_layout, err) < 0)
		return -1;
	if (guest->ram_known && guest->config.n_blocks == 1 && guest->ram.n_ranges == 1 &&
	    guest->ram.total_bytes >= guest->config.initial_bytes)
		place_in_block(ret_layout, &guest->ram);
	return 0;
}
