/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/regions.h"

#include <stdio.h>

#include "base/number.h"
#include "host/gpa.h"

#define MIB (1ULL << 20)
#define FOUR_GIB (4096 * MIB)

struct layout {
	const struct wss_domxml *config;
	struct wss_recording *recording;
	uint64_t ram_done; /* bytes of initial RAM in earlier ranges */
};

/*
 * Returns the NUMA node at an offset of the initial RAM; -1 if there is only one. *ret_left is
 * the length of the RAM from there on that belongs to the node. QEMU gives the RAM to the
 * nodes one after the other (hw/core/numa.c of 7.2, numa_init_memdev_container()).
 */
static int node_at(const struct wss_domxml *config, uint64_t offset, uint64_t *ret_left)
{
	*ret_left = UINT64_MAX;
	if (config->n_cells < 2)
		return -1;
	for (size_t i = 0; i + config->n_devices < config->n_blocks; i++) {
		if (offset < config->block_bytes[i]) {
			*ret_left = config->block_bytes[i] - offset;
			return config->block_nodes[i];
		}
		offset -= config->block_bytes[i];
	}
	return -1;
}

static const struct wss_memory_device *device_at(const struct wss_domxml *config, uint64_t address,
						 size_t *ret_number)
{
	for (size_t i = 0; i < config->n_devices; i++) {
		if (address - config->devices[i].gpa < config->devices[i].bytes) {
			*ret_number = i;
			return &config->devices[i];
		}
	}
	return NULL;
}

static int regions_add(struct layout *layout, const struct wss_region *region,
		       struct wss_error *err)
{
	if (layout->recording->n_regions == WSS_REGIONS_MAX)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the guest's memory has more than %d parts", WSS_REGIONS_MAX);
	layout->recording->regions[layout->recording->n_regions++] = *region;
	return 0;
}

/* Returns the longest part of a range from start on that has a single kind and node. */
static struct wss_region part_at(const struct layout *layout, uint64_t start, uint64_t end)
{
	struct wss_region region = {.start = start, .node = -1};
	const struct wss_memory_device *device;
	uint64_t offset, left;
	size_t number;

	device = device_at(layout->config, start, &number);
	if (device) {
		region.kind = WSS_REGION_DEVICE;
		region.length = wss_u64_min(end, device->gpa + device->bytes) - start;
		region.node = layout->config->n_cells < 2 ? -1 : device->node;
		snprintf(region.name, sizeof(region.name), "memory device %zu", number);
		return region;
	}
	for (size_t i = 0; i < layout->config->n_devices; i++)
		if (layout->config->devices[i].gpa > start)
			end = wss_u64_min(end, layout->config->devices[i].gpa);
	region.kind = start < MIB	 ? WSS_REGION_BELOW_1M
		      : start < FOUR_GIB ? WSS_REGION_LOW
					 : WSS_REGION_HIGH;
	if (start < MIB)
		end = wss_u64_min(end, MIB);
	/* The RAM behind the VGA window exists, although the guest does not see it. */
	offset = start < FOUR_GIB ? start : layout->ram_done + (start - FOUR_GIB);
	region.node = node_at(layout->config, offset, &left);
	region.length = end - start < left ? end - start : left;
	return region;
}

static int regions_add_range(struct layout *layout, uint64_t start, uint64_t end,
			     struct wss_error *err)
{
	while (start < end) {
		struct wss_region region = part_at(layout, start, end);

		/* A page in which a node ends also counts for the next node. */
		region.length = (region.length + WSS_PAGE_BYTES - 1) & ~(WSS_PAGE_BYTES - 1);
		if (regions_add(layout, &region, err) < 0)
			return -1;
		start += region.length;
	}
	return 0;
}

int wss_regions_of(struct wss_guest *guest, struct wss_recording *recording, struct wss_error *err)
{
	struct layout layout = {.config = &guest->config, .recording = recording};
	struct wss_gpa_layout gpa;

	if (wss_gpa_of_guest(guest, &gpa, err) < 0)
		return -1;
	recording->n_regions = 0;
	for (size_t i = 0; i < gpa.n_ranges; i++)
		if (gpa.ranges[i].end <= FOUR_GIB)
			layout.ram_done = gpa.ranges[i].end;
	for (size_t i = 0; i < gpa.n_ranges; i++)
		if (regions_add_range(&layout, gpa.ranges[i].start, gpa.ranges[i].end, err) < 0)
			return -1;
	return wss_recording_map_valid(recording)
		       ? 0
		       : wss_error_set(err, WSS_ERR_UNSUPPORTED,
				       "the layout of the guest's memory is unknown");
}
