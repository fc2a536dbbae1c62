/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pages/recording.h"

const char *wss_region_kind_name(enum wss_region_kind kind)
{
	static const char *const names[] = {"below-1m", "low", "high", "device"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == WSS_REGION_KINDS, "a name each");
	return names[kind];
}

const char *wss_written_name(enum wss_written written)
{
	static const char *const names[] = {"absent", "exact", "upper bound", "lower bound"};

	_Static_assert(sizeof(names) / sizeof(names[0]) == WSS_WRITTEN_KINDS, "a name each");
	return names[written];
}

uint64_t wss_recording_pages(const struct wss_recording *recording)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < recording->n_regions; i++)
		pages += recording->regions[i].length >> WSS_PAGE_SHIFT;
	return pages;
}

bool wss_recording_map_valid(const struct wss_recording *recording)
{
	const uint64_t highest = 1ULL << 52;
	uint64_t end = 0, pages = 0;

	if (!recording->n_regions || recording->n_regions > WSS_REGIONS_MAX)
		return false;
	for (size_t i = 0; i < recording->n_regions; i++) {
		const struct wss_region *region = &recording->regions[i];

		if (region->start < end || !region->length || region->start > highest ||
		    region->length > highest - region->start ||
		    (region->start | region->length) % WSS_PAGE_BYTES)
			return false;
		end = region->start + region->length;
		pages += region->length >> WSS_PAGE_SHIFT;
	}
	return pages <= WSS_PAGESET_MAX_PAGES;
}

void wss_region_index_init(struct wss_region_index *index, const struct wss_recording *recording)
{
	uint64_t first = 0;

	index->n = recording->n_regions;
	index->hint = 0;
	for (size_t i = 0; i < index->n; i++) {
		index->gfn[i] = recording->regions[i].start >> WSS_PAGE_SHIFT;
		index->first[i] = first;
		first += recording->regions[i].length >> WSS_PAGE_SHIFT;
	}
	index->first[index->n] = first;
}

/*
 * Returns the index of the last of n ascending numbers that is not greater than number; 0 if
 * all are greater.
 */
static size_t last_below(const uint64_t *numbers, size_t n, uint64_t number)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (numbers[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

size_t wss_region_index_of(struct wss_region_index *index, uint64_t page)
{
	if (page < index->first[index->hint] || page >= index->first[index->hint + 1]) {
		if (page >= index->first[index->n])
			return index->n;
		index->hint = last_below(index->first, index->n, page);
	}
	return index->hint;
}

bool wss_region_index_gfn(struct wss_region_index *index, uint64_t gfn, uint64_t *ret_page,
			  uint64_t *ret_n)
{
	size_t i = index->hint;
	uint64_t n = index->first[i + 1] - index->first[i];

	if (gfn < index->gfn[i] || gfn - index->gfn[i] >= n) {
		i = last_below(index->gfn, index->n, gfn);
		n = index->first[i + 1] - index->first[i];
		if (gfn < index->gfn[i] || gfn - index->gfn[i] >= n)
			return false;
		index->hint = i;
	}
	*ret_page = index->first[i] + (gfn - index->gfn[i]);
	*ret_n = n - (gfn - index->gfn[i]);
	return true;
}

size_t wss_recording_region(const struct wss_recording *recording, uint64_t index,
			    uint64_t *ret_first)
{
	uint64_t first = 0;

	for (size_t i = 0; i < recording->n_regions; i++) {
		uint64_t n = recording->regions[i].length >> WSS_PAGE_SHIFT;

		if (index - first < n) {
			*ret_first = first;
			return i;
		}
		first += n;
	}
	*ret_first = first;
	return recording->n_regions;
}

uint64_t wss_recording_address(const struct wss_recording *recording, uint64_t index)
{
	uint64_t first;
	size_t i = wss_recording_region(recording, index, &first);

	return recording->regions[i].start + ((index - first) << WSS_PAGE_SHIFT);
}

/* Returns the end of the piece of RAM that begins with a region: the adjacent ones after it belong to it. Moves *i past them. */
static uint64_t piece_end(const struct wss_recording *recording, size_t *i)
{
	uint64_t end = recording->regions[*i].start;

	while (*i < recording->n_regions && recording->regions[*i].start == end)
		end += recording->regions[(*i)++].length;
	return end;
}

bool wss_recording_same_map(const struct wss_recording *a, const struct wss_recording *b)
{
	size_t i = 0, j = 0;

	while (i < a->n_regions && j < b->n_regions)
		if (a->regions[i].start != b->regions[j].start ||
		    piece_end(a, &i) != piece_end(b, &j))
			return false;
	return i == a->n_regions && j == b->n_regions;
}
