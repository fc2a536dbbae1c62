/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The columns of top: what each says of a guest, and what it sorts by. */
#include "top/columns.h"

#include <stdio.h>

#include "base/units.h"
#include "client/guest-view.h"
#include "top/top.h"

/* Width of the screen from which reasons have a column. */
#define WHY_FROM 118

/* Formats an amount of memory; the text stays "" if it is unknown. */
static void format_size(struct wss_amount bytes, const char *bound, char *ret_text, size_t size)
{
	char text[16];

	if (!bytes.known)
		return;
	wss_size_format(bytes.value, text, sizeof(text));
	snprintf(ret_text, size, "%s%s", bound, text);
}

static enum wss_bound bound_of(const struct wss_guest_view *guest)
{
	return wss_bound_of(guest->sample.wss_bytes.value, guest->sample.low_bytes,
			    guest->sample.high_bytes);
}

#define SIZE_COLUMN(name, amount)                                                       \
	static struct wss_top_key key_##name(const struct wss_guest_view *guest)        \
	{                                                                               \
		return (struct wss_top_key){.number = guest->amount};                   \
	}                                                                               \
                                                                                        \
	static void format_##name(const struct wss_guest_view *guest, uint64_t late_ns, \
				  char *ret_text, size_t size)                          \
	{                                                                               \
		(void)late_ns;                                                          \
		format_size(guest->amount, "", ret_text, size);                         \
	}

SIZE_COLUMN(rss, sample.memory.rss_bytes)
SIZE_COLUMN(swap, sample.memory.swap_bytes)
SIZE_COLUMN(maximum, sample.memory.maximum_bytes)
SIZE_COLUMN(recommended, advice.recommended_bytes)
SIZE_COLUMN(reclaimable, advice.reclaimable_bytes)

static struct wss_top_key key_cold(const struct wss_guest_view *guest)
{
	return (struct wss_top_key){.number = guest->cold.high_bytes};
}

/* Memory that was not seen touched may have been, where something was not observed or only by blocks. */
static void format_cold(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	const struct wss_guest_cold *cold = &guest->cold;
	bool exact = cold->low_bytes.known && cold->low_bytes.value == cold->high_bytes.value;

	(void)late_ns;
	format_size(cold->high_bytes, exact ? "" : "<= ", ret_text, size);
}

static struct wss_top_key key_name(const struct wss_guest_view *guest)
{
	return (struct wss_top_key){.text = guest->name};
}

static void format_name(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->name);
}

static void format_state(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			 size_t size)
{
	char letter = wss_view_is(guest, "measuring")  ? 'M'
		      : wss_view_is(guest, "refused")  ? 'R'
		      : wss_view_is(guest, "left out") ? 'O'
		      : wss_view_is(guest, "paused")   ? 'P'
		      : guest->why[0]		       ? '!'
						       : ' ';

	(void)late_ns;
	snprintf(ret_text, size, "%c", letter);
}

static struct wss_top_key key_wss(const struct wss_guest_view *guest)
{
	return (struct wss_top_key){.number = guest->sample.wss_bytes};
}

static void format_wss(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	enum wss_bound bound = bound_of(guest);

	(void)late_ns;
	format_size(guest->sample.wss_bytes,
		    bound == WSS_BOUND_AT_MOST	  ? "<= "
		    : bound == WSS_BOUND_AT_LEAST ? ">= "
						  : "",
		    ret_text, size);
}

static struct wss_top_key key_percent(const struct wss_guest_view *guest)
{
	double percent;

	if (!wss_view_percent(guest, &percent))
		return (struct wss_top_key){.text = NULL};
	return (struct wss_top_key){.number = wss_amount_of((uint64_t)(percent * 1000))};
}

static void format_percent(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			   size_t size)
{
	enum wss_bound bound = bound_of(guest);
	double percent;

	(void)late_ns;
	if (wss_view_percent(guest, &percent))
		snprintf(ret_text, size, "%s%.0f%%",
			 bound == WSS_BOUND_AT_MOST    ? "<="
			 : bound == WSS_BOUND_AT_LEAST ? ">="
						       : "",
			 wss_bound_round(percent, bound));
}

static struct wss_top_key key_balloon(const struct wss_guest_view *guest)
{
	return (struct wss_top_key){.number = wss_view_size(guest)};
}

static void format_balloon(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			   size_t size)
{
	(void)late_ns;
	format_size(wss_view_size(guest), "", ret_text, size);
}

static struct wss_top_key key_age(const struct wss_guest_view *guest)
{
	return (struct wss_top_key){.number = guest->age_ns};
}

static void format_age(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	if (guest->age_ns.known)
		wss_age_format((guest->age_ns.value + late_ns) / WSS_NS_PER_S, ret_text, size);
}

static void format_period(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			  size_t size)
{
	(void)late_ns;
	if (guest->period_ns.known)
		wss_age_format(guest->period_ns.value / WSS_NS_PER_S, ret_text, size);
}

static void format_kind(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->kind);
}

static void format_method(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
			  size_t size)
{
	(void)late_ns;
	snprintf(ret_text, size, "%s", guest->sample.method);
}

static void format_why(const struct wss_guest_view *guest, uint64_t late_ns, char *ret_text,
		       size_t size)
{
	(void)late_ns;
	/* The policy is why, whatever failed before it was set. */
	if (wss_view_is(guest, "left out"))
		snprintf(ret_text, size, "opted out by its policy");
	else if (!guest->why[0] && guest->coarse_why[0])
		snprintf(ret_text, size, "upper limit: %s", guest->coarse_why);
	else
		snprintf(ret_text, size, "%s%s", wss_view_is(guest, "refused") ? "refused: " : "",
			 guest->why);
}

/* In the order of the screen. */
const struct wss_top_column wss_top_columns[] = {
	{"name", "NAME", 0, 0, 'N', true, false, "name of the guest", key_name, format_name},
	{NULL, "S", 1, 24, 0, true, false,
	 "M measuring, R refused, O opted out, P paused, ! not measured", NULL, format_state},
	{"wss", "WSS", 11, 24, 'W', false, true,
	 "working set; <= or >= where only that bound is known", key_wss, format_wss},
	{"percent", "%BAL", 6, 32, 'P', false, true, "WSS as a share of the balloon", key_percent,
	 format_percent},
	{"balloon", "BALLOON", 8, 44, 'B', false, true, "memory that the balloon leaves the guest",
	 key_balloon, format_balloon},
	{"maximum", "MAXIMUM", 8, 110, 'M', false, true, "maximum memory of the guest", key_maximum,
	 format_maximum},
	{"rss", "RSS", 8, 62, 'R', false, true, "resident memory on the host", key_rss, format_rss},
	{"swap", "SWAP", 8, 165, 'S', false, true, "memory that the host has swapped out", key_swap,
	 format_swap},
	{"cold", "COLD", 11, 76, 'C', false, true,
	 "memory that no window has seen touched for 10 minutes; <= where some of it may have been",
	 key_cold, format_cold},
	{"recommended", "RECOMM", 8, 150, 'E', false, true, "recommended size", key_recommended,
	 format_recommended},
	{"reclaimable", "RECLAIM", 8, 140, 'L', false, true,
	 "memory that the recommended size would free", key_reclaimable, format_reclaimable},
	{"age", "AGE", 7, 53, 'A', false, true, "age of the sample", key_age, format_age},
	{NULL, "PERIOD", 7, 160, 0, false, false, "time from one window to the next", NULL,
	 format_period},
	{NULL, "KIND", 6, 158, 0, true, false, "kind of the last window", NULL, format_kind},
	{NULL, "METHOD", 6, 172, 0, true, false, "method of the last window", NULL, format_method},
	{NULL, "REMARK", 0, WHY_FROM, 0, true, false,
	 "why there is no sample, or only an upper limit", NULL, format_why},
};

const size_t wss_top_n_columns = sizeof(wss_top_columns) / sizeof(wss_top_columns[0]);

_Static_assert(sizeof(wss_top_columns) / sizeof(wss_top_columns[0]) <= WSS_TOP_COLUMNS_MAX,
	       "a layout has room for all columns");
