/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/pressure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "history/missrate.h"

#define HOUR 3600

/* Returns by how much a counter has grown; 0 if that is unknown, or if it began again. */
static uint64_t counter_growth(struct wss_amount before, struct wss_amount now)
{
	return before.known && now.known && now.value > before.value ? now.value - before.value : 0;
}

/* Whether so many faults took WSS_PRESSURE_SHARE of the time. */
static bool faults_are_many(uint64_t faults, double seconds)
{
	return wss_missrate_loss((double)faults / seconds, WSS_MISSRATE_FAULT_NS) >=
	       WSS_PRESSURE_SHARE;
}

static unsigned kinds_find(const struct wss_pressure_counts *before,
			   const struct wss_pressure_counts *now, double seconds)
{
	unsigned kinds = 0;

	if (counter_growth(before->oom_kills, now->oom_kills))
		kinds |= WSS_PRESSURE_OOM;
	if (counter_growth(before->swap_in_bytes, now->swap_in_bytes) >= WSS_PRESSURE_SWAP_IN_BYTES)
		kinds |= WSS_PRESSURE_SWAP_IN;
	if (faults_are_many(counter_growth(before->major_faults, now->major_faults), seconds))
		kinds |= WSS_PRESSURE_FAULTS;
	if (faults_are_many(counter_growth(before->refaults, now->refaults), seconds))
		kinds |= WSS_PRESSURE_REFAULTS;
	if ((double)counter_growth(before->stall_us, now->stall_us) >=
	    WSS_PRESSURE_SHARE * seconds * 1e6)
		kinds |= WSS_PRESSURE_STALL;
	return kinds;
}

static bool counts_overlap(const struct wss_pressure_counts *a, const struct wss_pressure_counts *b)
{
	return (a->swap_in_bytes.known && b->swap_in_bytes.known) ||
	       (a->major_faults.known && b->major_faults.known) ||
	       (a->oom_kills.known && b->oom_kills.known) ||
	       (a->stall_us.known && b->stall_us.known) || (a->refaults.known && b->refaults.known);
}

static int event_add(struct wss_pressure *pressure, time_t time, unsigned kinds, uint64_t had_bytes)
{
	struct wss_pressure_event *events = pressure->events;
	size_t at = pressure->n;

	while (at > 0 && events[at - 1].time / HOUR > time / HOUR)
		at--;
	if (at > 0 && events[at - 1].time / HOUR == time / HOUR) {
		struct wss_pressure_event *same = &events[at - 1];

		same->time = same->time > time ? same->time : time;
		same->kinds |= kinds;
		same->had_bytes = wss_u64_max(same->had_bytes, had_bytes);
		return 0;
	}
	if (pressure->n == pressure->room) {
		size_t room = pressure->room ? 2 * pressure->room : 16;

		events = reallocarray(events, room, sizeof(*events));
		if (!events)
			return -1;
		pressure->events = events;
		pressure->room = room;
	}
	memmove(&events[at + 1], &events[at], (pressure->n++ - at) * sizeof(*events));
	events[at] = (struct wss_pressure_event){time, kinds, had_bytes};
	return 0;
}

int wss_pressure_add(struct wss_pressure *pressure, time_t time,
		     const struct wss_pressure_counts *counts, uint64_t had_bytes)
{
	unsigned kinds = 0;

	if (pressure->has_last && time == pressure->last_time)
		return 0;
	/* After the clock was set back, nothing says how long ago the counters had their last values. */
	if (pressure->has_last && time > pressure->last_time) {
		pressure->watched = pressure->watched || counts_overlap(&pressure->last, counts);
		kinds = kinds_find(&pressure->last, counts, (double)(time - pressure->last_time));
	}
	pressure->has_last = true;
	pressure->last_time = time;
	pressure->last = *counts;
	return kinds ? event_add(pressure, time, kinds, had_bytes) : 0;
}

void wss_pressure_free(struct wss_pressure *pressure)
{
	free(pressure->events);
	*pressure = (struct wss_pressure){.n = 0};
}

/* Returns what an event adds to the size, as a share of it. */
static double event_bump(const struct wss_pressure_event *event, double size, time_t now)
{
	double had = (double)event->had_bytes, most = size * (1 + WSS_PRESSURE_ROOM), bump;

	if (had > most && !(event->kinds & WSS_PRESSURE_OOM))
		return 0;
	bump = fmin(had, most) * (1 + WSS_PRESSURE_MORE) / size - 1;
	bump *= exp2(-(double)(now - event->time) / WSS_PRESSURE_HALF_LIFE_S);
	return bump > WSS_PRESSURE_LEAST ? bump : 0;
}

struct wss_amount wss_pressure_floor(const struct wss_pressure *pressure, uint64_t size_bytes,
				     time_t now, struct wss_pressure_event *ret_event)
{
	double size = (double)wss_u64_max(size_bytes, 1), most = 0;

	for (size_t i = 0; i < pressure->n; i++) {
		const struct wss_pressure_event *event = &pressure->events[i];
		double bump = event->time <= now ? event_bump(event, size, now) : 0;

		if (bump <= most)
			continue;
		most = bump;
		if (ret_event)
			*ret_event = *event;
	}
	return most > 0 ? wss_amount_of(wss_u64_from_double(size * (1 + most)))
			: (struct wss_amount){0};
}

void wss_pressure_format(unsigned kinds, char ret_text[WSS_PRESSURE_TEXT_MAX])
{
	static const char *const names[] = {"swap-in", "major faults", "OOM kill", "stalls",
					    "refaults"};
	size_t used = 0;

	ret_text[0] = '\0';
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (kinds & (1U << i))
			used += (size_t)snprintf(ret_text + used, WSS_PRESSURE_TEXT_MAX - used,
						 "%s%s", used ? ", " : "", names[i]);
}
