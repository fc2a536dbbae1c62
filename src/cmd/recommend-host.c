/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend-host.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

/* --- guests --- */

static const struct wss_host_room_guest *guest_of(const void *row)
{
	return row;
}

static bool guest_shrinks(const void *row)
{
	return guest_of(row)->why == WSS_HOST_ROOM_SHRINK;
}

static struct wss_value value_share(double share)
{
	return (struct wss_value){.kind = WSS_KIND_SHARE, .real = share};
}

static struct wss_value room_get_rank(const void *row)
{
	return guest_shrinks(row) ? wss_value_number(guest_of(row)->rank, WSS_KIND_COUNT)
				  : wss_value_absent();
}

static struct wss_value room_get_domain(const void *row)
{
	return wss_value_text(guest_of(row)->name);
}

static struct wss_value room_get_uuid(const void *row)
{
	return wss_value_text(guest_of(row)->uuid);
}

static struct wss_value room_get_action(const void *row)
{
	return wss_value_text(guest_shrinks(row) ? "shrink" : "keep");
}

#define AMOUNT(name)                                                                          \
	static struct wss_value room_get_##name(const void *row)                              \
	{                                                                                     \
		return wss_value_amount(guest_of(row)->name##_bytes, WSS_KIND_BYTES);         \
	}

AMOUNT(assigned)
AMOUNT(held)
AMOUNT(recommended)
AMOUNT(gain)
AMOUNT(free)

static struct wss_value room_get_hours(const void *row)
{
	return guest_of(row)->recommended_bytes.known
		       ? wss_value_number(guest_of(row)->hours, WSS_KIND_COUNT)
		       : wss_value_absent();
}

static struct wss_value room_get_above(const void *row)
{
	return guest_of(row)->recommended_bytes.known
		       ? wss_value_number(guest_of(row)->above_hours, WSS_KIND_COUNT)
		       : wss_value_absent();
}

static struct wss_value room_get_risk(const void *row)
{
	return guest_shrinks(row) && guest_of(row)->hours >= WSS_HOST_ROOM_RISK_HOURS
		       ? value_share(guest_of(row)->risk)
		       : wss_value_absent();
}

static struct wss_value room_get_confidence(const void *row)
{
	return guest_of(row)->windows ? wss_value_text(wss_confidence_name(guest_of(row)->confidence))
				      : wss_value_absent();
}

static const char *reason_text(const struct wss_host_room_guest *guest, char *text, size_t size)
{
	switch (guest->why) {
	case WSS_HOST_ROOM_SHRINK:
		if (guest->hours < WSS_HOST_ROOM_RISK_HOURS)
			snprintf(text, size, "risk needs %d hours, has %" PRIu64, WSS_HOST_ROOM_RISK_HOURS,
				 guest->hours);
		else
			snprintf(text, size, "exceeded in %" PRIu64 " of %" PRIu64 " hours",
				 guest->above_hours, guest->hours);
		return text;
	case WSS_HOST_ROOM_LITTLE:
		return "would give back too little";
	case WSS_HOST_ROOM_PAUSED:
		return "paused";
	case WSS_HOST_ROOM_OPTED_OUT:
		return "opted out";
	case WSS_HOST_ROOM_TOO_EARLY:
		snprintf(text, size, "too early: %" PRIu64 " of %d windows", guest->windows,
			 WSS_SIZING_SAMPLES_MIN);
		return text;
	case WSS_HOST_ROOM_UNKNOWN:
		return guest->recommended_bytes.known ? "unknown: what it holds"
						      : "unknown: no window";
	default:
		return guest->error;
	}
}

static struct wss_value room_get_reason(const void *row)
{
	static _Thread_local char text[80];

	return wss_value_text(reason_text(row, text, sizeof(text)));
}

static const struct wss_column guest_columns[] = {
	{"rank", NULL, "RANK", 4, room_get_rank,
	 "Order in which to shrink: the largest gain for its risk is 1; absent: not at all", false},
	{"domain", NULL, "DOMAIN", -8, room_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, room_get_uuid, "UUID of the guest", false},
	{"action", NULL, "ACTION", -6, room_get_action, "shrink or keep", false},
	{"assigned_bytes", NULL, "ASSIGNED", 8, room_get_assigned,
	 "Maximum memory of the guest, in bytes", false},
	{"held_bytes", NULL, "HELD", 8, room_get_held,
	 "Guest memory that is resident on the host, in bytes", false},
	{"recommended_bytes", NULL, "SHRINK-TO", 9, room_get_recommended,
	 "Recommended memory size, in bytes", false},
	{"gain_bytes", NULL, "GAIN", 8, room_get_gain,
	 "Held memory beyond that, which the host would get back, in bytes", false},
	{"hours", NULL, "HOURS", 5, room_get_hours,
	 "Measured hours of the last four weeks, a count", false},
	{"above_hours", NULL, "ABOVE", 5, room_get_above,
	 "Those of them that needed more than the recommended size, a count", false},
	{"violation_share", NULL, "RISK", 6, room_get_risk,
	 "Predicted share of hours that would need more, (above + 1) / (hours + 2), 1 = 100%; absent below 24 hours", false},
	{"confidence", NULL, "CONFIDENCE", -10, room_get_confidence,
	 "How sure the recommendation is: none, low, medium or high", false},
	{"free_after_bytes", NULL, "FREE-THEN", 9, room_get_free,
	 "What the host has free once this guest and those before it have shrunk, in bytes", false},
	{"reason", NULL, "REASON", -20, room_get_reason, "Why it should shrink or not", false},
};

const struct wss_report_layout recommend_room_layout = {
	.schema = "virt-wss/host-room/1",
	.array_key = "guests",
	.columns = guest_columns,
	.n_columns = sizeof(guest_columns) / sizeof(guest_columns[0]),
	.shown = "rank,domain,recommended_bytes,gain_bytes,violation_share,free_after_bytes,reason",
	.wide = "rank,domain,action,assigned_bytes,held_bytes,recommended_bytes,gain_bytes,hours,"
		"above_hours,violation_share,confidence,free_after_bytes,reason",
};

/* --- the host --- */

static const struct wss_host_room *host_of(const void *row)
{
	return row;
}

/* Figures that take the host's memory; absent where that is unknown. */
#define ANSWER(name, value, kind)                                                             \
	static struct wss_value host_get_##name(const void *row)                              \
	{                                                                                     \
		return host_of(row)->memory_bytes.known                                       \
			       ? wss_value_number(host_of(row)->value, kind)                  \
			       : wss_value_absent();                                          \
	}

ANSWER(fits, answer.fits_bytes, WSS_KIND_BYTES)
ANSWER(short, answer.short_bytes, WSS_KIND_BYTES)

#define HOST(name, value)                                                                     \
	static struct wss_value host_get_##name(const void *row)                              \
	{                                                                                     \
		return wss_value_amount(host_of(row)->value, WSS_KIND_BYTES);                 \
	}

HOST(memory, memory_bytes)
HOST(reserve, reserve_bytes)
HOST(free, free_bytes)
HOST(free_after, free_after_bytes)

#define FIGURE(name, value, kind)                                                             \
	static struct wss_value host_get_##name(const void *row)                              \
	{                                                                                     \
		return wss_value_number(host_of(row)->value, kind);                           \
	}

FIGURE(guests, n, WSS_KIND_COUNT)
FIGURE(unsized, unsized, WSS_KIND_COUNT)
FIGURE(over_hours, host.over_hours, WSS_KIND_COUNT)
FIGURE(overhead, overhead_bytes, WSS_KIND_BYTES)
FIGURE(need, answer.need_bytes, WSS_KIND_BYTES)

static struct wss_value host_get_risk(const void *row)
{
	return value_share(host_of(row)->risk);
}

/* A table shows the day and the time, local ones: those of the last time that the hour was. */
static struct wss_value value_hour(struct wss_amount hour, char *text, size_t size)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	struct wss_value value = wss_value_amount(hour, WSS_KIND_COUNT);
	int64_t now = wss_clock_wall_seconds() / 3600;
	/* Hour 0 is Monday 00:00 UTC, and time began on a Thursday. */
	int64_t since = (now + 72 - (int64_t)hour.value) % WSS_PACK_HOURS;
	time_t when = (time_t)((now - since) * 3600);
	struct tm tm;

	localtime_r(&when, &tm);
	snprintf(text, size, "%.3s %02d:%02d", days + tm.tm_wday * 3, tm.tm_hour, tm.tm_min);
	if (hour.known)
		value.text = text;
	return value;
}

static struct wss_value host_get_hour(const void *row)
{
	static _Thread_local char text[40];

	return host_of(row)->memory_bytes.known
		       ? value_hour(host_of(row)->answer.hour, text, sizeof(text))
		       : wss_value_absent();
}

static struct wss_value host_get_worst_hour(const void *row)
{
	static _Thread_local char text[40];

	return value_hour(host_of(row)->answer.worst_hour, text, sizeof(text));
}

static const struct wss_column total_columns[] = {
	{"guests", NULL, "GUESTS", 6, host_get_guests, "Guests that run on the host, a count", false},
	{"unsized_guests", NULL, "UNSIZED", 7, host_get_unsized,
	 "Guests without a size, each of which counts with all its memory, a count", false},
	{"host_bytes", NULL, "HOST", 8, host_get_memory, "Memory of the host, in bytes", false},
	{"reserve_bytes", NULL, "RESERVE", 8, host_get_reserve,
	 "What the host keeps for itself, in bytes", false},
	{"overhead_bytes", NULL, "OVERHEAD", 8, host_get_overhead,
	 "Resident memory of QEMU that is not guest memory, in bytes", false},
	{"risk", NULL, "RISK", 6, host_get_risk,
	 "Share of the hours of a week in which guests may need more than the rest, 1 = 100%", false},
	{"over_hours", NULL, "OVER-HOURS", 10, host_get_over_hours,
	 "Whole hours of the week in that share, a count", false},
	{"need_bytes", NULL, "WEEK-PEAK", 9, host_get_need,
	 "Need of all guests together in their worst hour of the week, in bytes", false},
	{"need_hour", NULL, "WORST-HOUR", 10, host_get_worst_hour,
	 "That hour of the week, a count from Monday 00:00 UTC, in tables in local time; absent: not measured", false},
	{"fits_bytes", NULL, "NEW-GUEST", 9, host_get_fits,
	 "Steady need of a further guest that fits at that risk, in bytes", false},
	{"fits_hour", NULL, "HOUR", 9, host_get_hour,
	 "The hour of the week that leaves no more, likewise", false},
	{"short_bytes", NULL, "SHORT", 8, host_get_short,
	 "What the host lacks at that risk, in bytes", false},
	{"free_bytes", NULL, "FREE-NOW", 8, host_get_free,
	 "The host less reserve, less what guests and QEMU hold now, in bytes", false},
	{"free_after_bytes", NULL, "FREE-THEN", 9, host_get_free_after,
	 "The same once all guests with a rank have shrunk, in bytes", false},
};

const struct wss_report_layout recommend_room_total_layout = {
	.schema = "virt-wss/host-room/1",
	.array_key = "host",
	.columns = total_columns,
	.n_columns = sizeof(total_columns) / sizeof(total_columns[0]),
	.shown = "guests,host_bytes,reserve_bytes,risk,need_bytes,fits_bytes,fits_hour,short_bytes,"
		 "free_bytes",
	.wide = "guests,unsized_guests,host_bytes,reserve_bytes,overhead_bytes,risk,over_hours,need_bytes,"
		"need_hour,fits_bytes,fits_hour,short_bytes,free_bytes,free_after_bytes",
};

void recommend_room_report(const struct wss_host_room *room, struct wss_report *report)
{
	wss_report_hold(report);
	for (size_t i = 0; i < room->n; i++) {
		const struct wss_host_room_guest *guest = &room->guests[i];

		if (guest->why == WSS_HOST_ROOM_FAILED)
			wss_report_bad_row(report, guest);
		else
			wss_report_row(report, guest);
	}
	wss_report_total(report, "host", &recommend_room_total_layout, room);
}
