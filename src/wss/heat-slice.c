/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "wss/heat.h"

/*
 * A page that comes when n windows are left, the one under way included, and goes when m are
 * left was touched in n - m of them; one that stays, in n. Unsigned differences that wrap are as good
 * as signed ones, the sums being small.
 */

int wss_heat_slice_init(struct wss_heat_slice *slice, uint64_t pages, struct wss_error *err)
{
	uint64_t n = pages < WSS_HEAT_SLICE_PAGES ? pages : WSS_HEAT_SLICE_PAGES;

	*slice = (struct wss_heat_slice){ .n = n };
	slice->differences = calloc(n + 1, sizeof(*slice->differences));
	return slice->differences ? 0 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

void wss_heat_slice_start(struct wss_heat_slice *slice, uint64_t first, uint64_t pages)
{
	slice->first = first;
	slice->n = pages - first < WSS_HEAT_SLICE_PAGES ? pages - first : WSS_HEAT_SLICE_PAGES;
	memset(slice->differences, 0, (slice->n + 1) * sizeof(*slice->differences));
}

static void add(struct wss_heat_slice *slice, struct wss_run run, uint32_t count)
{
	uint64_t first = run.first > slice->first ? run.first : slice->first;
	uint64_t end = run.first + run.n < slice->first + slice->n ? run.first + run.n
								   : slice->first + slice->n;

	if (first >= end)
		return;
	slice->differences[first - slice->first] += count;
	slice->differences[end - slice->first] -= count;
}

void wss_heat_slice_recording(struct wss_heat_slice *slice, uint64_t windows)
{
	slice->windows_left = (uint32_t)windows;
}

int wss_heat_slice_change(void *opaque, enum wss_change change, struct wss_run run,
			  struct wss_error *err)
{
	struct wss_heat_slice *slice = opaque;

	(void)err;
	if (change == WSS_CHANGE_TOUCHED)
		add(slice, run, slice->windows_left);
	else if (change == WSS_CHANGE_UNTOUCHED)
		add(slice, run, 0U - slice->windows_left);
	return 0;
}

int wss_heat_slice_end(void *opaque, const struct wss_interval *interval,
		       const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_heat_slice *slice = opaque;

	(void)sets;
	(void)err;
	slice->windows_left -= !interval->gap;
	return 0;
}

void wss_heat_flush(struct wss_page_range *carry, struct wss_top *top)
{
	if (carry->n && carry->value)
		wss_top_offer(top, carry);
	carry->n = 0;
}

void wss_heat_slice_ranges(const struct wss_heat_slice *slice,
			   const struct wss_recording *recording, struct wss_page_range *carry,
			   struct wss_top *top)
{
	uint64_t region_end = 0;
	uint32_t count = 0;

	for (uint64_t i = 0; i < slice->n; i++) {
		uint64_t index = slice->first + i;
		bool region_begins = index == region_end;

		count += slice->differences[i];
		if (index >= region_end) {
			uint64_t first;
			size_t region = wss_recording_region(recording, index, &first);

			region_begins = index == first;
			region_end = first + (recording->regions[region].length >> WSS_PAGE_SHIFT);
		}
		if (carry->n && !region_begins && carry->value == count) {
			carry->n++;
			carry->pages++;
			continue;
		}
		wss_heat_flush(carry, top);
		*carry = (struct wss_page_range){ index, 1, 1, count };
	}
}

void wss_heat_slice_free(struct wss_heat_slice *slice)
{
	free(slice->differences);
	slice->differences = NULL;
}
