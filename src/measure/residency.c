/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/residency.h"

#include <fcntl.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "host/gpa.h"
#include "pages/recording.h"

/* Documentation/admin-guide/mm/pagemap.rst: bit 63 present, bit 62 swapped. */
#define ENTRY_THERE (3ULL << 62)
#define ENTRIES 8192

static int read_range(int fd, uint64_t address, uint64_t pages, uint64_t number,
		      struct wss_pageset *set, struct wss_error *err)
{
	uint64_t entries[ENTRIES];

	while (pages) {
		uint64_t n = pages < ENTRIES ? pages : ENTRIES;

		if (wss_io_pread(fd, entries, n * 8, (off_t)(address / 4096 * 8)) !=
		    (ssize_t)(n * 8))
			return wss_error_set(err, WSS_ERR_FAILED,
					     "cannot read the process's pagemap");
		for (uint64_t i = 0; i < n;) {
			uint64_t first = i;

			while (i < n && (entries[i] & ENTRY_THERE))
				i++;
			if (i > first && wss_pageset_add(set, number + first, i - first) < 0)
				return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
			i += i == first;
		}
		address += n * 4096;
		number += n;
		pages -= n;
	}
	return 0;
}

static int read_layout(const struct wss_process *process, const struct wss_gpa_layout *layout,
		       struct wss_pageset *set, struct wss_error *err)
{
	wss_auto_close int fd = wss_root_openat(&process->proc, "pagemap", O_RDONLY);

	if (fd < 0)
		return wss_process_error(process, fd, "pagemap", err);
	for (size_t i = 0; i < layout->n_ranges; i++) {
		const struct wss_gpa_range *range = &layout->ranges[i];

		if (read_range(fd, range->host, (range->end - range->start) >> WSS_PAGE_SHIFT,
			       range->start >> WSS_PAGE_SHIFT, set, err) < 0)
			return -1;
	}
	return 0;
}

int wss_residency_read(struct wss_guest *guest, struct wss_pageset **ret_pages,
		       struct wss_error *err)
{
	struct wss_gpa_layout layout;
	struct wss_pageset *set;

	if (wss_gpa_of_guest(guest, &layout, err) < 0)
		return -1;
	if (guest->ram.any_shared || !layout.ranges[0].host)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the pages that the balloon takes are known only if the RAM is private and its place in QEMU is known");
	set = wss_pageset_new(layout.ranges[layout.n_ranges - 1].end >> WSS_PAGE_SHIFT);
	if (!set)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (read_layout(&guest->process, &layout, set, err) < 0) {
		wss_pageset_free(set);
		return -1;
	}
	*ret_pages = set;
	return 0;
}
