/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host/gpa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
	if (machine_has_prefix(machine, "pc-i440fx-1.") ||
	    machine_has_prefix(machine, "pc-q35-1."))
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

static int layout_add(struct wss_gpa_layout *layout, uint64_t start, uint64_t bytes,
		      struct wss_error *err)
{
	struct wss_range *last = layout->n_ranges ? &layout->ranges[layout->n_ranges - 1] : NULL;
	uint64_t end;

	if (!bytes)
		return 0;
	if (__builtin_add_overflow(start, bytes, &end) || end > KNOWN_END)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest-physical layout of RAM of this size is unknown");
	start &= ~PAGE_MASK;
	end = (end + PAGE_MASK) & ~PAGE_MASK;
	if (last && start < last->end)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest's memory devices overlap its RAM");
	if (last && start == last->end) {
		last->end = end;
		return 0;
	}
	if (layout->n_ranges == WSS_GPA_RANGES_MAX)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest's RAM has more than %d address ranges",
				     WSS_GPA_RANGES_MAX);
	layout->ranges[layout->n_ranges++] = (struct wss_range){ start, end };
	return 0;
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
		if (layout_add(layout, devices[i].gpa, devices[i].bytes, err) < 0)
			return -1;
	}
	return 0;
}

int wss_gpa_layout(const struct wss_domxml *config, struct wss_gpa_layout *ret_layout,
		   struct wss_error *err)
{
	struct wss_gpa_layout layout = { .n_ranges = 0 };
	uint64_t low = ram_below_4g(config), ram = config->initial_bytes;
	bool x86 = !config->arch[0] || !strcmp(config->arch, "x86_64") ||
		   !strcmp(config->arch, "i686");

	if (!low || !x86)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the guest-physical layout of RAM in a machine '%s' is unknown",
			config->machine);
	if (config->qemu_passthrough)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "QEMU's own options (qemu:commandline) may have moved the guest's RAM");
	if (layout_add(&layout, 0, low < VGA_START ? low : VGA_START, err) < 0 ||
	    (low > VGA_END && layout_add(&layout, VGA_END, low - VGA_END, err) < 0) ||
	    layout_add(&layout, FOUR_GIB, ram - low, err) < 0 ||
	    layout_add_devices(config, &layout, err) < 0)
		return -1;
	*ret_layout = layout;
	return 0;
}

uint64_t wss_gpa_end(const struct wss_gpa_layout *layout)
{
	return layout->n_ranges ? layout->ranges[layout->n_ranges - 1].end : 0;
}
