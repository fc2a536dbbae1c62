/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/gauge.h"

#include "base/number.h"

#define SIZE_4K (1ULL << 12)
#define SIZE_2M (1ULL << 21)
#define SIZE_1G (1ULL << 30)

uint64_t wss_gauge_bytes(const struct wss_gauge_reading *reading)
{
	uint64_t bytes = wss_u64_mul(reading->entries_4k, SIZE_4K);

	bytes = wss_u64_add(bytes, wss_u64_mul(reading->entries_2m, SIZE_2M));
	return wss_u64_add(bytes, wss_u64_mul(reading->entries_1g, SIZE_1G));
}

static uint64_t count_entries(const struct wss_gauge_reading *reading)
{
	return wss_u64_add(wss_u64_add(reading->entries_4k, reading->entries_2m),
			   reading->entries_1g);
}

void wss_gauge_begin(struct wss_gauge *gauge, const struct wss_gauge_reading *reading)
{
	*gauge = (struct wss_gauge){.base = *reading, .granularity_bytes = SIZE_4K};
	wss_gauge_add(gauge, reading);
}

void wss_gauge_add(struct wss_gauge *gauge, const struct wss_gauge_reading *reading)
{
	uint64_t bytes = wss_gauge_bytes(reading);

	if (bytes < gauge->last_bytes)
		gauge->fallen_bytes = wss_u64_add(gauge->fallen_bytes, gauge->last_bytes - bytes);
	gauge->last_bytes = bytes;
	gauge->max_bytes = wss_u64_max(gauge->max_bytes, bytes);
	gauge->max_entries = wss_u64_max(gauge->max_entries, count_entries(reading));
	if (reading->entries_1g)
		gauge->granularity_bytes = SIZE_1G;
	else if (reading->entries_2m)
		gauge->granularity_bytes = wss_u64_max(gauge->granularity_bytes, SIZE_2M);
	gauge->has_faults = reading->has_faults && gauge->base.has_faults &&
			    reading->faults >= gauge->base.faults;
	if (gauge->has_faults)
		gauge->faults = reading->faults - gauge->base.faults;
	gauge->flushed = !reading->has_flushes || !gauge->base.has_flushes ||
			 reading->flushes != gauge->base.flushes;
}

static uint64_t cap_bytes(uint64_t bytes, uint64_t ram_bytes)
{
	return ram_bytes && bytes > ram_bytes ? ram_bytes : bytes;
}

/*
 * Each entry, however large, is at least one touched page of 4 KiB. But when another dirty log
 * starts (a migration's, say), KVM splits a large entry into 512, of which only one was
 * touched.
 */
static uint64_t touched_entries(const struct wss_gauge *gauge)
{
	uint64_t faulted = wss_u64_add(count_entries(&gauge->base), gauge->faults);

	if (gauge->granularity_bytes == SIZE_4K || !gauge->has_faults)
		return gauge->max_entries;
	return faulted < gauge->max_entries ? faulted : gauge->max_entries;
}

void wss_gauge_result(const struct wss_gauge *gauge, uint64_t ram_bytes,
		      struct wss_gauge_result *ret_result)
{
	uint64_t grown = gauge->max_entries - count_entries(&gauge->base);
	uint64_t excess = gauge->flushed && gauge->faults > grown ? gauge->faults - grown : 0;
	uint64_t lost = wss_u64_mul(excess, gauge->granularity_bytes);

	*ret_result = (struct wss_gauge_result){
		.low_bytes = cap_bytes(wss_u64_mul(touched_entries(gauge), SIZE_4K), ram_bytes),
		.high_bytes = cap_bytes(wss_u64_add(gauge->max_bytes, lost), ram_bytes),
		.granularity_bytes = gauge->granularity_bytes,
		.excess_faults = excess,
		.fallen_bytes = gauge->fallen_bytes,
	};
	/*
	 * At 4 KiB the low bound is the best figure; for larger pages only the high bound is
	 * certain.
	 */
	ret_result->wss_bytes = gauge->granularity_bytes == SIZE_4K ? ret_result->low_bytes
								    : ret_result->high_bytes;
}
