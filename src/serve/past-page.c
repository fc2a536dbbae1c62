/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/past-page.h"

#include "serve/page-json.h"

#define HISTORY_SCHEMA "virt-wss/history-of-guest/1"
#define TRENDS_SCHEMA "virt-wss/trends/1"
/* A short trend has a value for each of these. */
#define SHORT_SLOTS 6
#define SHORT_N (WSS_TREND_SLOTS / SHORT_SLOTS)

static void put_amount_or_null(struct wss_json *list, struct wss_amount amount)
{
	if (amount.known)
		page_put_amount(list, NULL, amount);
	else
		wss_json_null(list, NULL);
}

static void write_series(struct wss_json *parent, const struct wss_trend_series *series, size_t n)
{
	struct wss_json list = wss_json_list(parent->stream, parent, "series");

	for (size_t i = 0; i < n; i++) {
		struct wss_json json = wss_json_object(list.stream, &list, NULL);

		page_put_text(&json, "method", series[i].method);
		page_put_text(&json, "observes", wss_observes_name(series[i].observes));
		if (series[i].granularity_bytes)
			page_put_number(&json, "granularity_bytes", series[i].granularity_bytes,
					WSS_KIND_BYTES);
		page_put_number(&json, "window_seconds", series[i].window_ns, WSS_KIND_DURATION);
		wss_json_object_end(&json);
	}
	wss_json_list_end(&list);
}

/* --- the last 24 hours --- */

static const struct {
	const char *key;
	size_t offset; /* in struct wss_trend_slot */
} figures[] = {
	{"wss_bytes", offsetof(struct wss_trend_slot, wss)},
	{"low_bytes", offsetof(struct wss_trend_slot, low)},
	{"high_bytes", offsetof(struct wss_trend_slot, high)},
	{"balloon_bytes", offsetof(struct wss_trend_slot, balloon)},
	{"rss_bytes", offsetof(struct wss_trend_slot, rss)},
	{"maximum_bytes", offsetof(struct wss_trend_slot, maximum)},
};

static struct wss_amount slot_figure(const struct wss_trend_slot *slot, size_t offset)
{
	if (!slot)
		return (struct wss_amount){0};
	return wss_trend_bytes(*(const wss_trend_figure *)((const char *)slot + offset));
}

/* The slots from the first that has a window to the last. */
static void write_figure(struct wss_json *parent, const char *key, size_t offset,
			 const struct wss_trend *trend, time_t now, size_t first)
{
	struct wss_json list = wss_json_list(parent->stream, parent, key);
	time_t start;

	for (size_t i = first; i < WSS_TREND_SLOTS; i++)
		put_amount_or_null(&list,
				   slot_figure(wss_trend_slot(trend, now, i, &start), offset));
	wss_json_list_end(&list);
}

static void write_slot_series(struct wss_json *parent, const struct wss_trend *trend, time_t now,
			      size_t first)
{
	struct wss_json list = wss_json_list(parent->stream, parent, "of_series");
	time_t start;

	for (size_t i = first; i < WSS_TREND_SLOTS; i++) {
		const struct wss_trend_slot *slot = wss_trend_slot(trend, now, i, &start);

		if (slot)
			page_put_number(&list, NULL, slot->series, WSS_KIND_COUNT);
		else
			wss_json_null(&list, NULL);
	}
	wss_json_list_end(&list);
}

static void write_recent(struct wss_json *parent, const struct wss_trend *trend, time_t now)
{
	struct wss_json json;
	size_t first = 0;
	time_t start;

	while (first < WSS_TREND_SLOTS && !wss_trend_slot(trend, now, first, &start))
		first++;
	if (first == WSS_TREND_SLOTS)
		return;
	json = wss_json_object(parent->stream, parent, "recent");
	page_put_number(&json, "start_seconds", (uint64_t)start, WSS_KIND_COUNT);
	page_put_number(&json, "step_seconds", WSS_TREND_SLOT_S, WSS_KIND_COUNT);
	write_series(&json, trend->series, trend->n_series);
	write_slot_series(&json, trend, now, first);
	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		write_figure(&json, figures[i].key, figures[i].offset, trend, now, first);
	wss_json_object_end(&json);
}

/* --- the last 90 days --- */

static void write_days(struct wss_json *parent, const struct wss_past *past)
{
	struct wss_json json, list;

	if (!past->n_days)
		return;
	json = wss_json_object(parent->stream, parent, "days");
	write_series(&json, past->series, past->n_series);
	list = wss_json_list(json.stream, &json, "days");
	for (size_t i = 0; i < past->n_days; i++) {
		const struct wss_past_day *day = &past->days[i];
		struct wss_json item = wss_json_object(list.stream, &list, NULL);

		page_put_number(&item, "start_seconds", (uint64_t)day->start, WSS_KIND_COUNT);
		page_put_number(&item, "of_series", day->series, WSS_KIND_COUNT);
		page_put_number(&item, "windows", day->windows, WSS_KIND_COUNT);
		page_put_number(&item, "p50_bytes", day->p50_bytes, WSS_KIND_BYTES);
		page_put_number(&item, "p95_bytes", day->p95_bytes, WSS_KIND_BYTES);
		page_put_number(&item, "max_bytes", day->max_bytes, WSS_KIND_BYTES);
		wss_json_object_end(&item);
	}
	wss_json_list_end(&list);
	wss_json_object_end(&json);
}

void wss_past_page_write(FILE *stream, const struct wss_past *past, time_t now)
{
	struct wss_json json = page_begin(stream, HISTORY_SCHEMA);

	page_put_text(&json, "uuid", past->uuid);
	write_recent(&json, &past->trend, now);
	if (wss_trend_degraded(&past->trend, now))
		page_put_number(&json, "degraded_windows", wss_trend_degraded(&past->trend, now),
				WSS_KIND_COUNT);
	write_days(&json, past);
	page_end(&json);
}

/* --- all guests --- */

/* The largest working set in some slots, of the windows of one series. */
static struct wss_amount slots_largest(const struct wss_trend *trend, time_t now, size_t from,
				       uint8_t series)
{
	wss_trend_figure largest = 0;
	time_t start;

	for (size_t i = from; i < from + SHORT_SLOTS; i++) {
		const struct wss_trend_slot *slot = wss_trend_slot(trend, now, i, &start);

		if (slot && slot->series == series && slot->wss > largest)
			largest = slot->wss;
	}
	return wss_trend_bytes(largest);
}

/* NULL: there is none. */
static const struct wss_trend_slot *newest_slot(const struct wss_trend *trend, time_t now)
{
	const struct wss_trend_slot *newest = NULL;
	time_t start;

	for (size_t i = WSS_TREND_SLOTS; i-- && !newest;)
		newest = wss_trend_slot(trend, now, i, &start);
	return newest;
}

static void write_trend(struct wss_json *parent, const struct wss_past *past, time_t now)
{
	const struct wss_trend_slot *newest = newest_slot(&past->trend, now);
	struct wss_json list;

	if (!newest)
		return;
	list = wss_json_list(parent->stream, parent, past->uuid);
	for (size_t i = 0; i < SHORT_N; i++)
		put_amount_or_null(
			&list, slots_largest(&past->trend, now, i * SHORT_SLOTS, newest->series));
	wss_json_list_end(&list);
}

/* Whether some of a short trend's values are bounds. */
static void write_trend_bound(struct wss_json *parent, const struct wss_past *past, time_t now)
{
	const struct wss_trend_slot *newest = newest_slot(&past->trend, now);
	enum wss_bound bound = WSS_BOUND_EXACT;
	time_t start;

	if (!newest)
		return;
	for (size_t i = 0; i < WSS_TREND_SLOTS && bound == WSS_BOUND_EXACT; i++) {
		const struct wss_trend_slot *slot = wss_trend_slot(&past->trend, now, i, &start);

		if (slot && slot->series == newest->series)
			bound = wss_bound_of(wss_trend_bytes(slot->wss).value,
					     wss_trend_bytes(slot->low),
					     wss_trend_bytes(slot->high));
	}
	page_put_text(parent, past->uuid, wss_bound_name(bound));
}

static void write_of_guests(struct wss_json *parent, const char *key, const struct wss_watch *watch,
			    const struct wss_pasts *pasts, time_t now,
			    void (*write)(struct wss_json *parent, const struct wss_past *past,
					  time_t now))
{
	struct wss_json guests = wss_json_object(parent->stream, parent, key);

	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		const struct wss_past *past =
			wss_pasts_find(pasts, wss_watch_guest(watch, i)->uuid);

		if (past)
			write(&guests, past, now);
	}
	wss_json_object_end(&guests);
}

void wss_trends_page_write(FILE *stream, const struct wss_watch *watch,
			   const struct wss_pasts *pasts, time_t now)
{
	struct wss_json json = page_begin(stream, TRENDS_SCHEMA);
	time_t last = now / WSS_TREND_SLOT_S * WSS_TREND_SLOT_S;

	page_put_number(&json, "start_seconds",
			(uint64_t)(last - (WSS_TREND_SLOTS - 1) * WSS_TREND_SLOT_S),
			WSS_KIND_COUNT);
	page_put_number(&json, "step_seconds", SHORT_SLOTS * WSS_TREND_SLOT_S, WSS_KIND_COUNT);
	write_of_guests(&json, "wss_bytes", watch, pasts, now, write_trend);
	write_of_guests(&json, "bounds", watch, pasts, now, write_trend_bound);
	page_end(&json);
}

static void write_named(struct wss_http_named_draft *draft, const struct wss_watch *watch,
			const struct wss_pasts *pasts, time_t now)
{
	wss_trends_page_write(draft->stream, watch, pasts, now);
	wss_http_named_page(draft, WSS_HTTP_TRENDS);
	for (size_t i = 0; i < wss_watch_count(watch); i++) {
		const struct wss_past *past =
			wss_pasts_find(pasts, wss_watch_guest(watch, i)->uuid);

		if (!past)
			continue;
		wss_past_page_write(draft->stream, past, now);
		wss_http_named_page(draft, past->uuid);
	}
}

int wss_past_named(const struct wss_watch *watch, struct wss_pasts *pasts, int *ret_fd,
		   struct wss_error *err)
{
	wss_auto_http_named_draft struct wss_http_named_draft draft = WSS_HTTP_NAMED_DRAFT_INIT;

	if (wss_http_named_begin(&draft, wss_watch_count(watch) + 1, err) < 0)
		return -1;
	wss_pasts_lock(pasts);
	write_named(&draft, watch, pasts, wss_clock_wall_seconds());
	wss_pasts_unlock(pasts);
	return wss_http_named_end(&draft, ret_fd, err);
}
