/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "measure/curve.h"

#define FORMAT 1
/* Limit in pages of 4 KiB: no guest has more, and sums fit their types. */
#define PAGES_MAX (WSS_BYTES_MAX / 4096)

void wss_summary_free(struct wss_summary *summary)
{
	wss_histogram_free(&summary->sizes);
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++)
		wss_histogram_free(&summary->curve[k].sizes);
	*summary = (struct wss_summary){0};
}

uint64_t wss_summary_time_ns(size_t k)
{
	return wss_u64_from_double(1e6 * pow(10, (double)k / WSS_SUMMARY_PER_DECADE) + 0.5);
}

bool wss_summary_point_is_typical(const struct wss_summary *summary, size_t k)
{
	return wss_u64_mul(summary->curve[k].n, 10) >= wss_u64_mul(summary->samples, 9);
}

static uint64_t pages_of(uint64_t bytes)
{
	return bytes / 4096 + (bytes % 4096 != 0);
}

static void extend_span(struct wss_summary *summary, time_t first, time_t last)
{
	bool empty = !summary->samples && !summary->degraded;

	if (empty || first < summary->first)
		summary->first = first;
	if (empty || last > summary->last)
		summary->last = last;
}

static int add_curve(struct wss_summary *summary, const struct wss_sample *sample)
{
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		struct wss_summary_point *point = &summary->curve[k];
		double bytes;

		if (!wss_curve_at(sample->curve, sample->n_curve, wss_summary_time_ns(k), &bytes))
			continue;
		if (wss_histogram_add(&point->sizes, (uint64_t)bytes) < 0)
			return -1;
		point->n++;
		point->sum_pages += pages_of((uint64_t)bytes);
	}
	return 0;
}

uint64_t wss_summary_percentile(const struct wss_summary *summary, double p)
{
	return wss_u64_min(wss_histogram_percentile(&summary->sizes, p), summary->max_bytes);
}

int wss_summary_add(struct wss_summary *summary, const struct wss_sample *sample)
{
	uint64_t bytes = sample->wss_bytes.value;

	if (sample->quality == WSS_QUALITY_OK) {
		if (wss_histogram_add(&summary->sizes, bytes) < 0 || add_curve(summary, sample) < 0)
			return -1;
		if (!summary->samples || bytes < summary->min_bytes)
			summary->min_bytes = bytes;
		summary->sum_pages += pages_of(bytes);
	} else {
		bytes = sample->low_bytes.known ? sample->low_bytes.value : 0;
	}
	if (bytes > summary->max_bytes)
		summary->max_bytes = bytes;
	extend_span(summary, sample->wall, sample->wall);
	if (sample->quality == WSS_QUALITY_OK)
		summary->samples++;
	else
		summary->degraded++;
	return 0;
}

int wss_summary_merge(struct wss_summary *into, const struct wss_summary *from)
{
	if (!from->samples && !from->degraded)
		return 0;
	if (wss_histogram_merge(&into->sizes, &from->sizes) < 0)
		return -1;
	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++) {
		if (wss_histogram_merge(&into->curve[k].sizes, &from->curve[k].sizes) < 0)
			return -1;
		into->curve[k].n += from->curve[k].n;
		into->curve[k].sum_pages =
			wss_u64_add(into->curve[k].sum_pages, from->curve[k].sum_pages);
	}
	if (from->samples && (!into->samples || from->min_bytes < into->min_bytes))
		into->min_bytes = from->min_bytes;
	if (from->max_bytes > into->max_bytes)
		into->max_bytes = from->max_bytes;
	into->sum_pages = wss_u64_add(into->sum_pages, from->sum_pages);
	extend_span(into, from->first, from->last);
	into->samples += from->samples;
	into->degraded += from->degraded;
	return 0;
}

/* Trailing points without a window are left out. */
static size_t encode_curve(const struct wss_summary *summary, uint8_t *buf, size_t size)
{
	size_t points = WSS_SUMMARY_POINTS, len;

	while (points && !summary->curve[points - 1].n)
		points--;
	len = wss_varint_put(FORMAT, buf, size);
	len += wss_varint_put(points, buf + len, size > len ? size - len : 0);
	for (size_t k = 0; k < points; k++) {
		const struct wss_summary_point *point = &summary->curve[k];

		len += wss_varint_put(point->sum_pages, buf + len, size > len ? size - len : 0);
		len += wss_histogram_encode(&point->sizes, buf + len, size > len ? size - len : 0);
	}
	return len;
}

uint8_t *wss_summary_encode_curve(const struct wss_summary *summary, size_t *ret_len)
{
	/* A number takes at most 10 bytes: two per bucket, two per point, two in all. */
	size_t size = 20 + WSS_SUMMARY_POINTS * 20;
	uint8_t *buf;

	for (size_t k = 0; k < WSS_SUMMARY_POINTS; k++)
		size += summary->curve[k].sizes.n * 20;
	buf = malloc(size);
	if (buf)
		*ret_len = encode_curve(summary, buf, size);
	return buf;
}

int wss_summary_decode_curve(const uint8_t *bytes, size_t len, struct wss_summary *summary)
{
	const uint8_t *at = bytes, *end = bytes + len;
	uint64_t format, points;
	int r;

	if (wss_varint_get(&at, end, &format) < 0 || format != FORMAT ||
	    wss_varint_get(&at, end, &points) < 0 || points > WSS_SUMMARY_POINTS)
		return -EINVAL;
	for (uint64_t k = 0; k < points; k++) {
		struct wss_summary_point *point = &summary->curve[k];

		if (wss_varint_get(&at, end, &point->sum_pages) < 0)
			return -EINVAL;
		r = wss_histogram_decode(&at, end, &point->sizes);
		if (r < 0)
			return r;
		point->n = point->sizes.total;
		if (point->n > WSS_SUMMARY_DAY_MAX)
			return -EINVAL;
		if (point->sum_pages > wss_u64_mul(point->n, PAGES_MAX))
			return -ERANGE;
	}
	return at == end ? 0 : -EINVAL;
}
