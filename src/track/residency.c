/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/residency.h"

#include <fcntl.h>

#include "base/cleanup.h"
#include "base/io.h"

#define FOUR_GIB (1ULL << 32)
/* Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bit 62 swapped. */
#define ENTRY_THERE (3ULL << 62)
#define ENTRIES 8192

/*
 * Returns the offset of the part above 4 GiB within the block, that is, the amount of RAM
 * below 4 GiB.
 */
static uint64_t low_bytes(const struct wss_recording *recording)
{
	uint64_t end = 0;

	for (size_t i = 0; i < recording->n_regions; i++)
		if (recording->regions[i].start < FOUR_GIB)
			end = recording->regions[i].start + recording->regions[i].length;
	return end;
}

static int read_region(int fd, uint64_t address, uint64_t pages, uint64_t index,
		       struct wss_pageset *set, struct wss_error *err)
{
	uint64_t entries[ENTRIES];

	while (pages) {
		uint64_t n = pages < ENTRIES ? pages : ENTRIES;

		if (wss_io_pread(fd, entries, n * 8, (off_t)(address / 4096 * 8)) != (ssize_t)(n * 8))
			return wss_error_set(err, WSS_ERR_FAILED, "cannot read the process's pagemap");
		for (uint64_t i = 0; i < n;) {
			uint64_t first = i;

			while (i < n && (entries[i] & ENTRY_THERE))
				i++;
			if (i > first && wss_pageset_add(set, index + first, i - first) < 0)
				return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
			i += i == first;
		}
		address += n * 4096;
		index += n;
		pages -= n;
	}
	return 0;
}

int wss_residency_read(const struct wss_guest *guest, const struct wss_recording *recording,
		       struct wss_pageset *ret_pages, struct wss_error *err)
{
	wss_auto_close int fd = -1;
	uint64_t low = low_bytes(recording), index = 0;

	if (!guest->ram_known || guest->ram.all_shared || guest->config.n_blocks != 1 ||
	    guest->ram.n_ranges != 1 || guest->ram.total_bytes < guest->config.initial_bytes)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the pages that the balloon takes are known only if the "
				     "RAM is a single private block");
	fd = wss_root_openat(&guest->process.proc, "pagemap", O_RDONLY);
	if (fd < 0)
		return wss_process_error(&guest->process, fd, "pagemap", err);
	wss_pageset_remove(ret_pages, 0, wss_pageset_size(ret_pages));
	for (size_t i = 0; i < recording->n_regions; i++) {
		const struct wss_region *region = &recording->regions[i];
		uint64_t offset = region->start < FOUR_GIB ? region->start
							   : low + (region->start - FOUR_GIB);
		uint64_t pages = region->length >> WSS_PAGE_SHIFT;

		if (read_region(fd, guest->ram.ranges[0].start + offset, pages, index, ret_pages,
				err) < 0)
			return -1;
		index += pages;
	}
	return 0;
}
