/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/trend.h"

#include <string.h>

#define PAGE_BYTES 4096
#define FIGURE_MAX (UINT32_MAX - 1)

static wss_trend_figure figure_of(struct wss_amount amount)
{
	uint64_t pages = amount.value / PAGE_BYTES + (amount.value % PAGE_BYTES != 0);

	if (!amount.known)
		return 0;
	return (wss_trend_figure)(pages < FIGURE_MAX ? pages : FIGURE_MAX) + 1;
}

struct wss_amount wss_trend_bytes(wss_trend_figure figure)
{
	return figure ? wss_amount_of((uint64_t)(figure - 1) * PAGE_BYTES) : (struct wss_amount){0};
}

bool wss_trend_series_equal(const struct wss_trend_series *a, const struct wss_trend_series *b)
{
	return !strcmp(a->method, b->method) && a->observes == b->observes &&
	       a->granularity_bytes == b->granularity_bytes && a->window_ns == b->window_ns;
}

/* Empties the slots of a series, whose place another one gets. */
static void series_drop(struct wss_trend *trend, size_t i)
{
	for (size_t j = 0; j < WSS_TREND_SLOTS; j++)
		if (trend->slots[j].series == i)
			trend->slots[j].wss = 0;
}

static uint8_t series_find(struct wss_trend *trend, const struct wss_sample *sample)
{
	struct wss_trend_series series = {
		.observes = sample->observes,
		.granularity_bytes =
			sample->granularity_bytes.known ? sample->granularity_bytes.value : 0,
		.window_ns = sample->requested_window_ns,
	};
	size_t i = 0;

	if (sample->method)
		memcpy(series.method, sample->method,
		       strnlen(sample->method, sizeof(series.method) - 1));
	while (i < trend->n_series && !wss_trend_series_equal(&trend->series[i], &series))
		i++;
	if (i < trend->n_series)
		return (uint8_t)i;
	if (i < WSS_TREND_SERIES_MAX)
		trend->n_series++;
	else
		series_drop(trend, --i);
	trend->series[i] = series;
	return (uint8_t)i;
}

/* Whether a window replaces the one that the slot has. */
static bool slot_prefers(const struct wss_trend *trend, const struct wss_trend_slot *slot,
			 uint8_t series, wss_trend_figure wss)
{
	uint64_t has_ns = trend->series[slot->series].window_ns,
		 gets_ns = trend->series[series].window_ns;

	if (series == slot->series)
		return wss >= slot->wss;
	return gets_ns >= has_ns;
}

void wss_trend_add(struct wss_trend *trend, const struct wss_sample *sample)
{
	uint32_t number = (uint32_t)(sample->wall / WSS_TREND_SLOT_S);
	struct wss_trend_slot *slot = &trend->slots[number % WSS_TREND_SLOTS];
	uint8_t series;

	if (sample->wall <= 0 || !sample->wss_bytes.known)
		return;
	if (slot->number > number && slot->number - number < WSS_TREND_SLOTS * 2)
		return;
	if (slot->number != number)
		*slot = (struct wss_trend_slot){.number = number};
	if (sample->quality != WSS_QUALITY_OK) {
		slot->degraded += slot->degraded < UINT16_MAX;
		return;
	}
	series = series_find(trend, sample);
	if (slot->wss && !slot_prefers(trend, slot, series, figure_of(sample->wss_bytes)))
		return;
	*slot = (struct wss_trend_slot){
		.number = number,
		.series = series,
		.degraded = slot->degraded,
		.wss = figure_of(sample->wss_bytes),
		.low = figure_of(sample->low_bytes),
		.high = figure_of(sample->high_bytes),
		.balloon = figure_of(sample->memory.balloon_bytes),
		.rss = figure_of(sample->memory.rss_bytes),
		.maximum = figure_of(sample->memory.maximum_bytes),
	};
}

const struct wss_trend_slot *wss_trend_slot(const struct wss_trend *trend, time_t now, size_t i,
					    time_t *ret_start)
{
	int64_t last = now / WSS_TREND_SLOT_S, number = last - (WSS_TREND_SLOTS - 1) + (int64_t)i;
	const struct wss_trend_slot *slot;

	*ret_start = (time_t)(number * WSS_TREND_SLOT_S);
	if (number <= 0)
		return NULL;
	slot = &trend->slots[number % WSS_TREND_SLOTS];
	return slot->number == number && slot->wss ? slot : NULL;
}

uint64_t wss_trend_degraded(const struct wss_trend *trend, time_t now)
{
	int64_t last = now / WSS_TREND_SLOT_S;
	uint64_t n = 0;

	for (size_t i = 0; i < WSS_TREND_SLOTS; i++)
		if (trend->slots[i].number > last - WSS_TREND_SLOTS &&
		    trend->slots[i].number <= last)
			n += trend->slots[i].degraded;
	return n;
}
