/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The lines above the table of top: the host, its memory, where the figures come from, and what is wrong. */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "client/guest-view.h"
#include "show/width.h"
#include "top/top.h"

struct totals {
	uint64_t maximum_bytes, size_bytes, oldest_ns;
	struct wss_view_sum wss;
	uint64_t untouched_bytes; /* at most: it counts what surely was touched as touched */
	struct wss_amount reclaimable_bytes;
	size_t measured, refused, left_out;
	size_t advised; /* of those measured: with a part of reclaimable_bytes */
};

static struct totals totals_of(const struct wss_guests *guests)
{
	struct totals t = {.measured = 0};
	uint64_t low;

	for (size_t i = 0; i < guests->n; i++) {
		const struct wss_guest_view *guest = &guests->list[i];
		const struct wss_guest_sample *sample = &guest->sample;

		t.refused += wss_view_is(guest, "refused");
		t.left_out += wss_view_is(guest, "left out");
		t.maximum_bytes += sample->memory.maximum_bytes.value;
		if (guest->advice.reclaimable_bytes.known)
			t.reclaimable_bytes = wss_amount_of(t.reclaimable_bytes.value +
							    guest->advice.reclaimable_bytes.value);
		if (!wss_view_has_wss(guest))
			continue;
		t.measured++;
		t.advised += guest->advice.reclaimable_bytes.known;
		low = wss_view_sum_add(&t.wss, sample);
		t.size_bytes += wss_view_size(guest).value;
		if (!guest->blocked_why[0] && sample->memory.rss_bytes.value > low)
			t.untouched_bytes += sample->memory.rss_bytes.value - low;
		t.oldest_ns = wss_u64_max(t.oldest_ns, guest->age_ns.value);
	}
	return t;
}

/* What a service computes from its history, else what the last windows did not touch. */
static void reclaimable_text(const struct totals *t, char *ret_text, size_t size)
{
	char bytes[16];

	wss_size_format(t->reclaimable_bytes.known ? t->reclaimable_bytes.value
						   : t->untouched_bytes,
			bytes, sizeof(bytes));
	if (t->reclaimable_bytes.known && t->advised < t->measured)
		snprintf(ret_text, size, "%s (%zu of %zu guests)", bytes, t->advised, t->measured);
	else
		snprintf(ret_text, size, "%s%s", t->reclaimable_bytes.known ? "" : "<= ", bytes);
}

static void head_host(const struct wss_top_settings *settings, const struct wss_top_view *view,
		      size_t n_shown, char *ret_text)
{
	struct totals t = totals_of(&view->guests);
	time_t now = wss_clock_wall_seconds();
	struct tm local = {.tm_sec = 0};
	int len;

	localtime_r(&now, &local);
	len = snprintf(ret_text, WSS_TOP_TEXT_MAX, "virt-wss top, %02d:%02d:%02d", local.tm_hour,
		       local.tm_min, local.tm_sec);
	if (view->any && !wss_guests_starting(&view->guests))
		len += snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, ": %zu guest%s",
				view->guests.n, wss_plural(view->guests.n));
	if (t.measured < view->guests.n)
		len += snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, ", %zu measured",
				t.measured);
	if (t.refused)
		len += snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, ", %zu refused",
				t.refused);
	if (t.left_out)
		len += snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, ", %zu opted out",
				t.left_out);
	if (settings->filter[0])
		len += snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, "; %zu with \"%s\"",
				n_shown, settings->filter);
	snprintf(ret_text + len, WSS_TOP_TEXT_MAX - (size_t)len, "%s",
		 settings->paused ? "; PAUSED" : "");
}

/* "72.9 MiB (9%)", of all guests that were measured; a sum of bounds is one. */
static void wss_text(const struct totals *t, char *ret_text, size_t size)
{
	enum wss_bound bound = wss_view_sum_bound(&t->wss);
	uint64_t sum = bound == WSS_BOUND_AT_LEAST ? t->wss.low_bytes : t->wss.bytes;
	double percent = t->size_bytes ? 100.0 * (double)sum / (double)t->size_bytes : 0.0;
	const char *sign = bound == WSS_BOUND_AT_MOST	 ? "<= "
			   : bound == WSS_BOUND_AT_LEAST ? ">= "
							 : "";
	char bytes[16];

	wss_size_format(sum, bytes, sizeof(bytes));
	snprintf(ret_text, size, "%s%s (%.*s%.0f%%)", sign, bytes, 2, sign,
		 wss_bound_round(percent, bound));
}

static void head_memory(const struct wss_top_view *view, uint64_t late_ns, char *ret_text)
{
	struct totals t = totals_of(&view->guests);
	char maximum[16], wss[64], reclaimable[80], age[16];

	if (wss_guests_starting(&view->guests)) {
		wss_age_format((view->guests.since_ns.value + late_ns) / WSS_NS_PER_S, age,
			       sizeof(age));
		snprintf(ret_text, WSS_TOP_TEXT_MAX,
			 "The service started %s ago and has not listed the guests yet", age);
		return;
	}
	if (!t.measured) {
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "%s",
			 !view->any	  ? ""
			 : view->guests.n ? "No guest has been measured yet"
					  : "No domain runs");
		return;
	}
	wss_size_format(t.maximum_bytes, maximum, sizeof(maximum));
	wss_text(&t, wss, sizeof(wss));
	reclaimable_text(&t, reclaimable, sizeof(reclaimable));
	wss_age_format((t.oldest_ns + late_ns) / WSS_NS_PER_S, age, sizeof(age));
	snprintf(ret_text, WSS_TOP_TEXT_MAX, "Maximum %s, WSS %s, reclaimable %s, oldest %s",
		 maximum, wss, reclaimable, age);
}

static void head_source(const struct wss_top_settings *settings, const struct wss_top_view *view,
			char *ret_text)
{
	snprintf(ret_text, WSS_TOP_TEXT_MAX, "%s, every %.3g s; sorted by %s%s; h: help",
		 settings->source, (double)settings->delay_ns / (double)WSS_NS_PER_S,
		 wss_top_column_name(settings->sort), settings->reverse ? ", reversed" : "");
	if (view->guests.held[0])
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "NOT MEASURING: %s (%s)", view->guests.held,
			 settings->source);
}

/* The first reason: there may be no column of reasons, and even a wide terminal's cuts most of them. */
static void head_reason(const struct wss_top_view *view, char *ret_text)
{
	for (size_t i = 0; i < view->guests.n; i++) {
		const struct wss_guest_view *guest = &view->guests.list[i];
		char name[WSS_NAME_SHORT_MAX];

		if (!guest->why[0] || wss_view_is(guest, "left out"))
			continue;
		wss_name_shorten(guest->name, name);
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "%s: %s", name, guest->why);
		return;
	}
}

static void head_trouble(const struct wss_top_view *view, uint64_t late_ns, char *ret_text)
{
	char age[16];

	wss_age_format(late_ns / WSS_NS_PER_S, age, sizeof(age));
	if (view->error.code && view->any)
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "No answer for %s, trying again: %s", age,
			 view->error.text);
	else if (view->error.code)
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "No answer, trying again: %s",
			 view->error.text);
	else if (!view->any)
		snprintf(ret_text, WSS_TOP_TEXT_MAX, "Waiting for the first answer");
	else
		head_reason(view, ret_text);
}

void wss_top_head(const struct wss_top_settings *settings, const struct wss_top_view *view,
		  size_t n_shown, int i, int width, char ret_text[WSS_TOP_TEXT_MAX])
{
	uint64_t now_ns = wss_clock_now_ns();
	uint64_t late_ns = view->any && now_ns > view->taken_ns ? now_ns - view->taken_ns : 0;

	ret_text[0] = '\0';
	if (i == 0)
		head_host(settings, view, n_shown, ret_text);
	else if (i == 1)
		head_memory(view, late_ns, ret_text);
	else if (i == 2)
		head_source(settings, view, ret_text);
	else
		head_trouble(view, late_ns, ret_text);
	wss_top_fit(settings, ret_text, width);
}
