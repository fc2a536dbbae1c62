/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the service keeps of each guest's past, for the pages: the trend of the last 24 hours, and the daily
 * sums of 90 days. New samples join the trend as they come, which costs next to nothing. Everything else comes
 * from the history, whose queries take milliseconds: watch/advisor.h paces the reading. A guest takes about
 * 16 KiB.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "history/history.h"
#include "host/domxml.h"
#include "sizing/trend.h"

#define WSS_PAST_DAYS 90

/* The windows of a day: the series with the most of them. */
struct wss_past_day {
	time_t start; /* in UTC */
	uint8_t series;
	uint64_t windows;
	uint64_t p50_bytes, p95_bytes, max_bytes;
};

struct wss_past {
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_trend trend;
	size_t n_days, n_series;
	struct wss_past_day days[WSS_PAST_DAYS];	      /* sorted by time */
	struct wss_trend_series series[WSS_TREND_SERIES_MAX]; /* of the days */
	bool has_stored; /* the trend has the samples of the history */
};

struct wss_pasts;

/* history may be NULL: only trends are kept. For wss_pasts_free(); NULL: out of memory. */
struct wss_pasts *wss_pasts_new(struct wss_history *history);

/* Takes NULL. */
void wss_pasts_free(struct wss_pasts *pasts);

/* Adds a measured sample of a guest. Without memory the guest has no past until the next one. */
void wss_pasts_add(struct wss_pasts *pasts, const char *uuid, const struct wss_sample *sample);

/* Forgets a guest. */
void wss_pasts_forget(struct wss_pasts *pasts, const char *uuid);

/*
 * Reads the past of a guest from the history, which must not be NULL: another thread may do that, one guest at a
 * time, while the others use the pasts. -1 with the errors of the history, and
 * WSS_ERR_NO_MEMORY.
 */
int wss_pasts_read(struct wss_pasts *pasts, const char *uuid, struct wss_error *err);

/* While they are locked, for a moment, no reading changes them. Take NULL. */
void wss_pasts_lock(struct wss_pasts *pasts);
void wss_pasts_unlock(struct wss_pasts *pasts);

/* NULL: nothing is known of that guest's past. The pasts must be locked: it is valid until they are not. */
const struct wss_past *wss_pasts_find(const struct wss_pasts *pasts, const char *uuid);
