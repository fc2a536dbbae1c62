/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/host-room-report.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"

/* --- guests --- */

static const struct wss_host_room_guest *room_guest(const void *row)
{
	return row;
}

static bool guest_shrinks(const void *row)
{
	return room_guest(row)->why == WSS_HOST_ROOM_SHRINK;
}

static const void *shrinking_of(const void *row)
{
	return guest_shrinks(row) ? row : NULL;
}

static const void *sized_of(const void *row)
{
	return room_guest(row)->recommended_bytes.known ? row : NULL;
}

static struct wss_value room_get_action(const void *row)
{
	return wss_value_text(guest_shrinks(row) ? "shrink" : "keep");
}

static struct wss_value room_get_risk(const void *row)
{
	return guest_shrinks(row) && room_guest(row)->hours >= WSS_HOST_ROOM_RISK_HOURS
		       ? wss_value_share(room_guest(row)->risk)
		       : wss_value_absent();
}

static struct wss_value room_get_confidence(const void *row)
{
	return room_guest(row)->windows
		       ? wss_value_text(wss_confidence_name(room_guest(row)->confidence))
		       : wss_value_absent();
}

static const char *reason_text(const struct wss_host_room_guest *guest, char *text, size_t size)
{
	switch (guest->why) {
	case WSS_HOST_ROOM_SHRINK:
		if (guest->hours < WSS_HOST_ROOM_RISK_HOURS)
			snprintf(text, size, "risk needs %d hours, has %" PRIu64,
				 WSS_HOST_ROOM_RISK_HOURS, guest->hours);
		else
			snprintf(text, size, "exceeded in %" PRIu64 " of %" PRIu64 " hours",
				 guest->above_hours, guest->hours);
		return text;
	case WSS_HOST_ROOM_LITTLE:
		return "would give back too little";
	case WSS_HOST_ROOM_FULL:
		return "its set fills its memory";
	case WSS_HOST_ROOM_PAUSED:
		return "paused";
	case WSS_HOST_ROOM_OPTED_OUT:
		return "opted out";
	case WSS_HOST_ROOM_TOO_EARLY:
		snprintf(text, size, "too early: %" PRIu64 " of %d windows", guest->windows,
			 WSS_SIZING_SAMPLES_MIN);
		return text;
	case WSS_HOST_ROOM_NO_SIZE:
		return "unknown: what it cannot give up";
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

#define GUEST_FIELD(member, kind) WSS_FIELD(struct wss_host_room_guest, member, kind)
#define SIZED(member) WSS_FIELD_OF(sized_of, struct wss_host_room_guest, member, COUNT)

static const struct wss_column guest_columns[] = {
	{"rank", NULL, "RANK", 4,
	 WSS_FIELD_OF(shrinking_of, struct wss_host_room_guest, rank, COUNT),
	 "Order in which to shrink: the largest gain for its risk is 1; absent: not at all"},
	{"domain", NULL, "DOMAIN", -8, GUEST_FIELD(name, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, GUEST_FIELD(uuid, TEXT), "UUID of the guest"},
	{"action", NULL, "ACTION", -6, WSS_GET(room_get_action), "shrink or keep"},
	{"assigned_bytes", NULL, "ASSIGNED", 8, GUEST_FIELD(assigned_bytes, BYTES),
	 "Maximum memory of the guest, in bytes"},
	{"held_bytes", NULL, "HELD", 8, GUEST_FIELD(held_bytes, BYTES),
	 "Guest memory that is resident on the host, in bytes"},
	{"recommended_bytes", NULL, "SHRINK-TO", 9, GUEST_FIELD(recommended_bytes, BYTES),
	 "Recommended memory size, in bytes"},
	{"gain_bytes", NULL, "GAIN", 8, GUEST_FIELD(gain_bytes, BYTES),
	 "Held memory beyond that, which the host would get back, in bytes"},
	{"hours", NULL, "HOURS", 5, SIZED(hours), "Measured hours of the last four weeks, a count"},
	{"above_hours", NULL, "ABOVE", 5, SIZED(above_hours),
	 "Those of them that needed more than the recommended size, a count"},
	{"violation_share", NULL, "RISK", 6, WSS_GET(room_get_risk),
	 "Predicted share of hours that would need more, (above + 1) / (hours + 2), 1 = 100%; absent below 24 hours"},
	{"confidence", NULL, "CONFIDENCE", -10, WSS_GET(room_get_confidence),
	 "How sure the recommendation is: none, low, medium or high"},
	{"free_after_bytes", NULL, "FREE-THEN", 9, GUEST_FIELD(free_bytes, BYTES),
	 "What the host has free once this guest and those before it have shrunk, in bytes"},
	{"reason", NULL, "REASON", -20, WSS_GET(room_get_reason), "Why it should shrink or not"},
};

const struct wss_report_layout wss_host_room_layout = {
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

/* For figures that take the host's memory; NULL where that is unknown. */
static const void *answer_of(const void *row)
{
	return host_of(row)->memory_bytes.known ? &host_of(row)->answer : NULL;
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

#define ROOM_FIELD(member, kind) WSS_FIELD(struct wss_host_room, member, kind)
#define ANSWER(member) WSS_FIELD_OF(answer_of, struct wss_room_answer, member, BYTES)

static const struct wss_column total_columns[] = {
	{"guests", NULL, "GUESTS", 6, ROOM_FIELD(n, COUNT), "Guests that run on the host, a count"},
	{"unsized_guests", NULL, "UNSIZED", 7, ROOM_FIELD(unsized, COUNT),
	 "Guests without a size, each of which counts with all its memory, a count"},
	{"host_bytes", NULL, "HOST", 8, ROOM_FIELD(memory_bytes, BYTES),
	 "Memory of the host, in bytes"},
	{"reserve_bytes", NULL, "RESERVE", 8, ROOM_FIELD(reserve_bytes, BYTES),
	 "What the host keeps for itself, in bytes"},
	{"overhead_bytes", NULL, "OVERHEAD", 8, ROOM_FIELD(overhead_bytes, BYTES),
	 "Resident memory of QEMU that is not guest memory, in bytes"},
	{"risk", NULL, "RISK", 6, ROOM_FIELD(risk, SHARE),
	 "Share of the hours of a week in which guests may need more than the rest, 1 = 100%"},
	{"over_hours", NULL, "OVER-HOURS", 10, ROOM_FIELD(host.over_hours, COUNT),
	 "Whole hours of the week in that share, a count"},
	{"need_bytes", NULL, "WEEK-PEAK", 9, ROOM_FIELD(answer.need_bytes, BYTES),
	 "Need of all guests together in their worst hour of the week, in bytes"},
	{"need_hour", NULL, "WORST-HOUR", 10, WSS_GET(host_get_worst_hour),
	 "That hour of the week, a count from Monday 00:00 UTC, in tables in local time; absent: not measured"},
	{"fits_bytes", NULL, "NEW-GUEST", 9, ANSWER(fits_bytes),
	 "Steady need of a further guest that fits at that risk, in bytes"},
	{"fits_hour", NULL, "HOUR", 9, WSS_GET(host_get_hour),
	 "The hour of the week that leaves no more, likewise"},
	{"short_bytes", NULL, "SHORT", 8, ANSWER(short_bytes),
	 "What the host lacks at that risk, in bytes"},
	{"free_bytes", NULL, "FREE-NOW", 8, ROOM_FIELD(free_bytes, BYTES),
	 "The host less reserve, less what guests and QEMU hold now, in bytes"},
	{"free_after_bytes", NULL, "FREE-THEN", 9, ROOM_FIELD(free_after_bytes, BYTES),
	 "The same once all guests with a rank have shrunk, in bytes"},
};

const struct wss_report_layout wss_host_room_total_layout = {
	.schema = "virt-wss/host-room/1",
	.array_key = "host",
	.columns = total_columns,
	.n_columns = sizeof(total_columns) / sizeof(total_columns[0]),
	.shown = "guests,host_bytes,reserve_bytes,risk,need_bytes,fits_bytes,fits_hour,short_bytes,"
		 "free_bytes",
	.wide = "guests,unsized_guests,host_bytes,reserve_bytes,overhead_bytes,risk,over_hours,need_bytes,"
		"need_hour,fits_bytes,fits_hour,short_bytes,free_bytes,free_after_bytes",
};

void wss_host_room_report(const struct wss_host_room *room, struct wss_report *report)
{
	wss_report_hold(report);
	for (size_t i = 0; i < room->n; i++) {
		const struct wss_host_room_guest *guest = &room->guests[i];

		if (guest->why == WSS_HOST_ROOM_FAILED)
			wss_report_bad_row(report, guest);
		else
			wss_report_row(report, guest);
	}
	wss_report_total(report, "host", &wss_host_room_total_layout, room);
}
