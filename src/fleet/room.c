/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/room.h"

#include <stdlib.h>

#include "base/number.h"

uint64_t wss_room_need_in(const struct wss_room_need *need, struct wss_amount hour)
{
	uint64_t bytes = hour.known ? hour.value : need->flat_bytes;

	if (need->minimum_bytes.known)
		bytes = wss_u64_max(bytes, need->minimum_bytes.value);
	return need->maximum_bytes.known ? wss_u64_min(bytes, need->maximum_bytes.value) : bytes;
}

void wss_room_add(struct wss_room *room, const struct wss_room_need *need,
		  const uint64_t *week_bytes)
{
	for (int i = 0; i < WSS_PACK_HOURS; i++) {
		struct wss_amount hour = {week_bytes && week_bytes[i],
					  week_bytes ? week_bytes[i] : 0};

		room->measured[i] |= hour.known;
		room->bytes[i] = wss_u64_add(room->bytes[i], wss_room_need_in(need, hour));
	}
}

static uint64_t bytes_less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* An hour of the week, and what its guests need together. */
struct room_hour {
	uint64_t bytes;
	/* Unknown, after those that are as large, if nothing was measured in it. */
	struct wss_amount hour;
};

static int hours_compare(const void *a, const void *b)
{
	const struct room_hour *left = a, *right = b;

	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	if (left->hour.known != right->hour.known)
		return left->hour.known ? -1 : 1;
	return left->hour.value < right->hour.value ? -1 : 1;
}

/*
 * The limit holds in all hours but the largest over_hours, so it is the next one that decides;
 * the memory has to suffice for the largest, too.
 */
struct wss_room_answer wss_room_ask(const struct wss_room *room, const struct wss_room_host *host)
{
	struct room_hour hours[WSS_PACK_HOURS];
	const struct room_hour *worst = &hours[0], *decides = &hours[host->over_hours];
	struct wss_room_answer answer;
	uint64_t by_limit, by_memory;

	for (unsigned i = 0; i < WSS_PACK_HOURS; i++)
		hours[i] = (struct room_hour){room->bytes[i], {room->measured[i], i}};
	qsort(hours, WSS_PACK_HOURS, sizeof(hours[0]), hours_compare);
	by_limit = bytes_less(host->limit_bytes, decides->bytes);
	by_memory = bytes_less(host->memory_bytes, worst->bytes);
	answer = (struct wss_room_answer){
		.fits_bytes = wss_u64_min(by_limit, by_memory),
		.short_bytes = wss_u64_max(bytes_less(decides->bytes, host->limit_bytes),
					   bytes_less(worst->bytes, host->memory_bytes)),
		.hour = by_limit <= by_memory ? decides->hour : worst->hour,
		.need_bytes = worst->bytes,
		.worst_hour = worst->hour,
	};
	if (answer.short_bytes)
		answer.hour = answer.short_bytes == bytes_less(decides->bytes, host->limit_bytes)
				      ? decides->hour
				      : worst->hour;
	return answer;
}

double wss_room_risk(uint64_t above, uint64_t hours)
{
	return ((double)above + 1) / ((double)hours + 2);
}

static int shrinks_compare(const void *a, const void *b)
{
	const struct wss_room_shrink *left = a, *right = b;
	double x = (double)left->gain_bytes / left->risk;
	double y = (double)right->gain_bytes / right->risk;

	if (x > y || x < y)
		return x > y ? -1 : 1;
	if (left->gain_bytes != right->gain_bytes)
		return left->gain_bytes > right->gain_bytes ? -1 : 1;
	return left->guest < right->guest ? -1 : left->guest > right->guest;
}

void wss_room_rank(struct wss_room_shrink *list, size_t n)
{
	if (n)
		qsort(list, n, sizeof(*list), shrinks_compare);
}
