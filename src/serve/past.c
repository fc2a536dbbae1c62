/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/past.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct wss_pasts {
	struct wss_history *history;
	struct wss_past read;	/* what is being read; the reader's */
	pthread_mutex_t lock;	/* of what follows; never held while a disk is waited for */
	struct wss_past **list; /* sorted by UUID */
	size_t n, room;
};

struct wss_pasts *wss_pasts_new(struct wss_history *history)
{
	struct wss_pasts *pasts = calloc(1, sizeof(*pasts));

	if (!pasts)
		return NULL;
	pasts->history = history;
	pthread_mutex_init(&pasts->lock, NULL);
	return pasts;
}

void wss_pasts_free(struct wss_pasts *pasts)
{
	if (!pasts)
		return;
	for (size_t i = 0; i < pasts->n; i++)
		free(pasts->list[i]);
	pthread_mutex_destroy(&pasts->lock);
	free(pasts->list);
	free(pasts);
}

/* Returns the place of a guest in the list, or the one that it would have. */
static size_t past_place(const struct wss_pasts *pasts, const char *uuid)
{
	size_t from = 0, to = pasts->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(pasts->list[middle]->uuid, uuid) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct wss_past *past_find(const struct wss_pasts *pasts, const char *uuid)
{
	size_t i = past_place(pasts, uuid);

	return i < pasts->n && !strcmp(pasts->list[i]->uuid, uuid) ? pasts->list[i] : NULL;
}

void wss_pasts_lock(struct wss_pasts *pasts)
{
	if (pasts)
		pthread_mutex_lock(&pasts->lock);
}

void wss_pasts_unlock(struct wss_pasts *pasts)
{
	if (pasts)
		pthread_mutex_unlock(&pasts->lock);
}

const struct wss_past *wss_pasts_find(const struct wss_pasts *pasts, const char *uuid)
{
	return pasts ? past_find(pasts, uuid) : NULL;
}

/* NULL: out of memory. */
static struct wss_past *past_get(struct wss_pasts *pasts, const char *uuid)
{
	struct wss_past *past = past_find(pasts, uuid);
	size_t place = past_place(pasts, uuid);

	if (past)
		return past;
	if (pasts->n == pasts->room) {
		size_t room = pasts->room ? 2 * pasts->room : 16;
		struct wss_past **list = reallocarray(pasts->list, room, sizeof(*list));

		if (!list)
			return NULL;
		pasts->list = list;
		pasts->room = room;
	}
	past = calloc(1, sizeof(*past));
	if (!past)
		return NULL;
	memcpy(past->uuid, uuid, strnlen(uuid, sizeof(past->uuid) - 1));
	memmove(&pasts->list[place + 1], &pasts->list[place],
		(pasts->n++ - place) * sizeof(*pasts->list));
	return pasts->list[place] = past;
}

void wss_pasts_add(struct wss_pasts *pasts, const char *uuid, const struct wss_sample *sample)
{
	struct wss_past *past;

	pthread_mutex_lock(&pasts->lock);
	past = past_get(pasts, uuid);
	if (past)
		wss_trend_add(&past->trend, sample);
	pthread_mutex_unlock(&pasts->lock);
}

void wss_pasts_forget(struct wss_pasts *pasts, const char *uuid)
{
	size_t place;

	pthread_mutex_lock(&pasts->lock);
	place = past_place(pasts, uuid);
	if (past_find(pasts, uuid)) {
		free(pasts->list[place]);
		memmove(&pasts->list[place], &pasts->list[place + 1],
			(--pasts->n - place) * sizeof(*pasts->list));
	}
	pthread_mutex_unlock(&pasts->lock);
}

/* --- reading the history --- */

static void on_stored_sample(const struct wss_sample *sample, void *opaque)
{
	struct wss_pasts *pasts = opaque;
	struct wss_past *past;

	pthread_mutex_lock(&pasts->lock);
	past = past_find(pasts, pasts->read.uuid);
	if (past)
		wss_trend_add(&past->trend, sample);
	pthread_mutex_unlock(&pasts->lock);
}

/* Returns the number of the span's series among those of the days; the last place takes all others. */
static uint8_t days_series(struct wss_past *past, const struct wss_history_span *span)
{
	struct wss_trend_series series = {
		.observes = span->observes,
		.granularity_bytes =
			span->granularity_bytes.known ? span->granularity_bytes.value : 0,
		.window_ns = span->requested_window_ns,
	};
	size_t i = 0;

	memcpy(series.method, span->method, strnlen(span->method, sizeof(series.method) - 1));
	while (i < past->n_series && !wss_trend_series_equal(&past->series[i], &series))
		i++;
	if (i == WSS_TREND_SERIES_MAX)
		i--;
	else if (i == past->n_series)
		past->n_series++;
	past->series[i] = series;
	return (uint8_t)i;
}

static void on_stored_day(const struct wss_history_span *span, void *opaque)
{
	struct wss_past *past = opaque;
	struct wss_past_day *day = past->n_days ? &past->days[past->n_days - 1] : NULL;

	if (!span->summary.samples)
		return;
	if (!day || day->start != span->start) {
		if (past->n_days == WSS_PAST_DAYS) {
			memmove(past->days, past->days + 1, sizeof(past->days) - sizeof(*day));
			past->n_days--;
		}
		day = &past->days[past->n_days++];
		day->windows = 0;
	}
	if (day->windows >= span->summary.samples)
		return;
	*day = (struct wss_past_day){
		.start = span->start,
		.series = days_series(past, span),
		.windows = span->summary.samples,
		.p50_bytes = wss_summary_percentile(&span->summary, 0.5),
		.p95_bytes = wss_summary_percentile(&span->summary, 0.95),
		.max_bytes = span->summary.max_bytes,
	};
}

/* Whether the trend of a guest, which gets a place, has the samples of the history; -1: out of memory. */
static int past_has_stored(struct wss_pasts *pasts, const char *uuid)
{
	const struct wss_past *past;
	int has;

	pthread_mutex_lock(&pasts->lock);
	past = past_get(pasts, uuid);
	has = past ? past->has_stored : -1;
	pthread_mutex_unlock(&pasts->lock);
	return has;
}

/* The guest may be gone since the reading began. */
static void past_take(struct wss_pasts *pasts)
{
	const struct wss_past *read = &pasts->read;
	struct wss_past *past;

	pthread_mutex_lock(&pasts->lock);
	past = past_find(pasts, read->uuid);
	if (past) {
		past->has_stored = true;
		past->n_days = read->n_days;
		past->n_series = read->n_series;
		memcpy(past->days, read->days, sizeof(past->days));
		memcpy(past->series, read->series, sizeof(past->series));
	}
	pthread_mutex_unlock(&pasts->lock);
}

int wss_pasts_read(struct wss_pasts *pasts, const char *uuid, struct wss_error *err)
{
	time_t now = wss_clock_wall_seconds();
	struct wss_past *read = &pasts->read;
	int has_stored = past_has_stored(pasts, uuid);

	if (has_stored < 0)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	*read = (struct wss_past){.n_days = 0};
	memcpy(read->uuid, uuid, strnlen(uuid, sizeof(read->uuid) - 1));
	if (!has_stored &&
	    wss_history_samples(pasts->history, uuid, now - WSS_TREND_SLOTS * WSS_TREND_SLOT_S, now,
				on_stored_sample, pasts, err) < 0)
		return -1;
	if (wss_history_spans(pasts->history, uuid, WSS_HISTORY_DAY,
			      now - (time_t)WSS_PAST_DAYS * WSS_HISTORY_DAY, now, on_stored_day,
			      read, err) < 0)
		return -1;
	past_take(pasts);
	return 0;
}
