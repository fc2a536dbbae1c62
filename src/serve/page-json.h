/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Members of the JSON pages, in the form of show/json.h. */
#pragma once

#include "base/clock.h"
#include "show/json.h"

/* NULL and "" are left out. */
static inline void page_put_text(struct wss_json *json, const char *key, const char *text)
{
	struct wss_value value = wss_value_text(text);

	wss_json_value(json, key, &value);
}

static inline void page_put_number(struct wss_json *json, const char *key, uint64_t number,
				   enum wss_kind kind)
{
	struct wss_value value = wss_value_number(number, kind);

	wss_json_value(json, key, &value);
}

static inline void page_put_amount(struct wss_json *json, const char *key, struct wss_amount amount)
{
	struct wss_value value = wss_value_amount(amount, WSS_KIND_BYTES);

	wss_json_value(json, key, &value);
}

static inline void page_put_bool(struct wss_json *json, const char *key, bool yes)
{
	page_put_number(json, key, yes, WSS_KIND_BOOL);
}

/* 0 to 1 and above. */
static inline void page_put_share(struct wss_json *json, const char *key, double share)
{
	const struct wss_value value = {.kind = WSS_KIND_SHARE, .real = share};

	wss_json_value(json, key, &value);
}

static inline void page_put_time(struct wss_json *json, const char *key, time_t when)
{
	struct wss_value value = wss_value_time(when);

	wss_json_value(json, key, &value);
}

/* Starts a page: its schema and when it was written. */
static inline struct wss_json page_begin(FILE *stream, const char *schema)
{
	struct wss_json json = wss_json_object(stream, NULL, NULL);

	page_put_text(&json, "schema", schema);
	page_put_time(&json, "time", wss_clock_wall_seconds());
	return json;
}

static inline void page_end(struct wss_json *json)
{
	wss_json_object_end(json);
	fputc('\n', json->stream);
}
