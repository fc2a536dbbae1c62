/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trend of a guest: its figures of the last 24 hours, in slots of 5 minutes. Takes the same memory
 * however often the guest is measured. A slot has the figures of one window, never a mixture: the largest
 * working set of the longest windows in it. Its series says which windows those were, because figures of
 * different series do not compare. Degraded windows are only counted. Plain data.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "measure/sample.h"

#define WSS_TREND_SLOTS 288
#define WSS_TREND_SLOT_S 300
/* Series that it tells apart; the last one is replaced after that. */
#define WSS_TREND_SERIES_MAX 8

/* Windows whose figures compare. */
struct wss_trend_series {
	char method[WSS_METHOD_NAME_MAX];
	enum wss_observes observes;
	uint64_t granularity_bytes; /* 0: unknown */
	uint64_t window_ns;	    /* as requested */
};

/* In pages of 4 KiB, rounded up, plus 1; 0: unknown. */
typedef uint32_t wss_trend_figure;

struct wss_trend_slot {
	uint32_t number; /* of the slot since 1970; 0: empty */
	uint8_t series;
	uint16_t degraded; /* windows that it leaves out, as their figures may be wrong */
	wss_trend_figure wss, low, high, balloon, rss, maximum;
};

/* All zero is empty. */
struct wss_trend {
	size_t n_series;
	struct wss_trend_series series[WSS_TREND_SERIES_MAX];
	struct wss_trend_slot slots[WSS_TREND_SLOTS];
};

/* Adds a measured sample. One that is older than all slots takes the place of none. */
void wss_trend_add(struct wss_trend *trend, const struct wss_sample *sample);

/*
 * Returns the slot that is i slots after the oldest one, 0 to WSS_TREND_SLOTS - 1, at a time: the last one
 * contains it. NULL: it has no good window. *ret_start: when it begins.
 */
const struct wss_trend_slot *wss_trend_slot(const struct wss_trend *trend, time_t now, size_t i,
					    time_t *ret_start);

/* Returns how many degraded windows the slots at that time leave out. */
uint64_t wss_trend_degraded(const struct wss_trend *trend, time_t now);

struct wss_amount wss_trend_bytes(wss_trend_figure figure);

/* Whether the figures of two series compare. */
bool wss_trend_series_equal(const struct wss_trend_series *a, const struct wss_trend_series *b);
