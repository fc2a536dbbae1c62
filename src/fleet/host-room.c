/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/host-room.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/units.h"

/* As plan's default for --safe-limit. */
#define RESERVE_SHARE 10

static int error_reserve(uint64_t reserve_bytes, uint64_t memory_bytes, struct wss_error *err)
{
	char reserve[16], memory[16];

	wss_size_format(reserve_bytes, reserve, sizeof(reserve));
	wss_size_format(memory_bytes, memory, sizeof(memory));
	return wss_error_set(err, WSS_ERR_FAILED, "a reserve of %s is more than the %s of the host",
			     reserve, memory);
}

int wss_host_room_init(struct wss_host_room *ret_room, struct wss_amount memory,
		       struct wss_amount reserve, double risk, struct wss_error *err)
{
	if (memory.known && reserve.known && reserve.value > memory.value)
		return error_reserve(reserve.value, memory.value, err);
	if (!memory.known)
		reserve.known = false;
	else if (!reserve.known)
		reserve = wss_amount_of(memory.value / RESERVE_SHARE);
	*ret_room = (struct wss_host_room){
		.risk = risk, .memory_bytes = memory, .reserve_bytes = reserve};
	if (!memory.known)
		ret_room->memory_bytes.value = ret_room->reserve_bytes.value = 0;
	return 0;
}

/* --- a guest --- */

/* What a guest's hours of four weeks are counted in. */
struct hours_count {
	struct wss_host_room_guest *guest;
	uint64_t beyond_bytes; /* growth beyond the end of its windows */
};

static void guest_on_hour(time_t start, uint64_t max_bytes, void *opaque)
{
	const struct hours_count *count = opaque;

	if (start < 0 || !max_bytes)
		return;
	count->guest->hours++;
	count->guest->above_hours +=
		wss_u64_add(max_bytes, count->beyond_bytes) > count->guest->recommended_bytes.value;
}

static int guest_count_hours(struct wss_host_room_guest *guest, struct wss_history *history,
			     const struct wss_history_series *series, uint64_t beyond_bytes,
			     struct wss_error *err)
{
	time_t from = wss_clock_wall_seconds() - WSS_ADVICE_WEEK_SPAN_S;
	struct hours_count count = {guest, beyond_bytes};

	return wss_history_hours(history, series, from, guest_on_hour, &count, err);
}

static enum wss_host_room_why guest_judge(const struct wss_host_room_guest *guest,
					  const struct wss_host_room_facts *facts)
{
	if (facts->error)
		return WSS_HOST_ROOM_FAILED;
	if (facts->size->paused_bytes.known)
		return WSS_HOST_ROOM_PAUSED;
	if (facts->advice->status == WSS_ADVICE_OPTED_OUT)
		return WSS_HOST_ROOM_OPTED_OUT;
	if (facts->advice->status == WSS_ADVICE_TOO_EARLY)
		return WSS_HOST_ROOM_TOO_EARLY;
	if (facts->advice->status == WSS_ADVICE_NO_SIZE)
		return WSS_HOST_ROOM_NO_SIZE;
	if (facts->advice->status != WSS_ADVICE_OK || !guest->gain_bytes.known)
		return WSS_HOST_ROOM_UNKNOWN;
	if (facts->blocked)
		return WSS_HOST_ROOM_BLOCKED;
	if (facts->advice->sizing.filled_bytes.known)
		return WSS_HOST_ROOM_FULL;
	return guest->gain_bytes.value ? WSS_HOST_ROOM_SHRINK : WSS_HOST_ROOM_LITTLE;
}

static struct wss_host_room_guest *room_guest_new(struct wss_host_room *room,
						  const struct wss_host_room_facts *facts)
{
	struct wss_host_room_guest *guest;

	if (room->n == room->space) {
		room->space = room->space ? 2 * room->space : 64;
		room->guests = wss_xreallocarray(room->guests, room->space, sizeof(*room->guests));
	}
	guest = &room->guests[room->n++];
	*guest = (struct wss_host_room_guest){
		.name = wss_xstrdup(facts->name),
		.uuid = wss_xstrdup(facts->uuid),
		.error = wss_xstrdup(facts->error ? facts->error : facts->blocked),
	};
	return guest;
}

static void room_add_held(struct wss_host_room *room, const struct wss_host_room_guest *guest)
{
	struct wss_amount held =
		guest->held_bytes.known ? guest->held_bytes : guest->assigned_bytes;

	room->held_unknown |= !held.known;
	room->held_bytes = wss_amount_of(wss_u64_add(room->held_bytes.value, held.value));
}

/* Adds what a guest needs; growth beyond the end of its windows counts in each hour. */
static void room_add_need(struct wss_host_room *room, const struct wss_host_room_guest *guest,
			  const struct wss_host_room_facts *facts, uint64_t beyond_bytes)
{
	struct wss_amount paused = facts->size->paused_bytes;
	struct wss_room_need need = {.maximum_bytes = guest->assigned_bytes,
				     .flat_bytes = paused.known ? paused.value
								: guest->assigned_bytes.value};
	const struct wss_advice *advice = facts->advice;
	uint64_t week[WSS_PACK_HOURS];

	if (paused.known || !wss_advice_is_sized(advice)) {
		wss_room_add(&room->need, &need, NULL);
		return;
	}
	need.flat_bytes = guest->recommended_bytes.value;
	need.minimum_bytes = wss_amount_of(
		wss_u64_max(advice->rule.minimum_bytes, wss_advice_floor_bytes(advice)));
	for (int i = 0; i < WSS_PACK_HOURS; i++)
		week[i] = advice->week_bytes[i] ? wss_u64_add(advice->week_bytes[i], beyond_bytes)
						: 0;
	wss_room_add(&room->need, &need, week);
}

int wss_host_room_add(struct wss_host_room *room, struct wss_history *history,
		      const struct wss_host_room_facts *facts, struct wss_error *err)
{
	const struct wss_advice *advice = facts->advice;
	struct wss_host_room_guest *guest = room_guest_new(room, facts);
	uint64_t beyond_bytes = wss_advice_beyond_bytes(advice);
	int r = 0;

	guest->confidence = advice->sizing.confidence;
	guest->windows = advice->has_series ? advice->series.summary.samples : 0;
	guest->held_bytes = advice->held_bytes;
	guest->assigned_bytes =
		advice->assigned_bytes.known ? advice->assigned_bytes : facts->size->assigned_bytes;
	guest->recommended_bytes = advice->sizing.recommended_bytes;
	guest->gain_bytes = advice->sizing.reclaimable_bytes;
	guest->why = guest_judge(guest, facts);
	room->unsized += !wss_advice_is_sized(advice) && guest->why != WSS_HOST_ROOM_PAUSED;
	room_add_held(room, guest);
	room_add_need(room, guest, facts, beyond_bytes);
	if (advice->has_series)
		room->overhead_bytes =
			wss_u64_add(room->overhead_bytes, advice->series.qemu_bytes.value);
	if (wss_advice_is_sized(advice))
		r = guest_count_hours(guest, history, &advice->series, beyond_bytes, err);
	guest->risk = wss_room_risk(guest->above_hours, guest->hours);
	return r < 0 ? -1 : 0;
}

/* --- the host --- */

static int guests_compare(const void *a, const void *b)
{
	const struct wss_host_room_guest *left = a, *right = b;

	if (!left->rank != !right->rank)
		return left->rank ? -1 : 1;
	if (left->rank != right->rank)
		return left->rank < right->rank ? -1 : 1;
	return strcmp(left->name, right->name);
}

/* held: what guests and QEMU hold. */
static struct wss_amount room_free(const struct wss_host_room *room, uint64_t held)
{
	if (!room->memory_bytes.known || room->held_unknown)
		return (struct wss_amount){.known = false};
	return wss_amount_of(room->host.limit_bytes > held ? room->host.limit_bytes - held : 0);
}

static void room_rank(struct wss_host_room *room)
{
	wss_auto_free struct wss_room_shrink *list = wss_xcalloc(room->n, sizeof(*list));
	uint64_t held = wss_u64_add(room->held_bytes.value, room->overhead_bytes);
	size_t n = 0;

	for (size_t i = 0; i < room->n; i++)
		if (room->guests[i].why == WSS_HOST_ROOM_SHRINK)
			list[n++] = (struct wss_room_shrink){room->guests[i].gain_bytes.value,
							     room->guests[i].risk, i};
	wss_room_rank(list, n);
	room->free_bytes = room_free(room, held);
	for (size_t i = 0; i < n; i++) {
		struct wss_host_room_guest *guest = &room->guests[list[i].guest];

		held -= wss_u64_min(held, list[i].gain_bytes);
		guest->rank = i + 1;
		guest->free_bytes = room_free(room, held);
	}
	room->free_after_bytes = room_free(room, held);
	if (room->n)
		qsort(room->guests, room->n, sizeof(*room->guests), guests_compare);
}

void wss_host_room_finish(struct wss_host_room *room)
{
	uint64_t memory = room->memory_bytes.value;

	room->host = (struct wss_room_host){
		.memory_bytes = memory - wss_u64_min(memory, room->overhead_bytes),
		.limit_bytes = memory - room->reserve_bytes.value,
		.over_hours = (unsigned)(room->risk * WSS_PACK_HOURS),
	};
	room_rank(room);
	/* QEMU's own memory is the same in each hour. */
	room->host.limit_bytes -= wss_u64_min(room->host.limit_bytes, room->overhead_bytes);
	room->answer = wss_room_ask(&room->need, &room->host);
}

void wss_host_room_free(struct wss_host_room *room)
{
	for (size_t i = 0; i < room->n; i++) {
		free(room->guests[i].name);
		free(room->guests[i].uuid);
		free(room->guests[i].error);
	}
	free(room->guests);
	*room = (struct wss_host_room){.n = 0};
}
