/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch/advisor.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "host/host.h"

/* When a guest for whom memory was lacking is tried again. */
#define RETRY_NS WSS_NS_PER_S

/* What is read of one guest: the reader's until it has ended. */
struct reading {
	bool under_way;
	atomic_bool ended;
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_policy policy;
	struct wss_conn_size size;
	uint64_t watched_windows;
	bool blocked; /* its memory stays on the host */
	bool reports_free;
	uint64_t began_ns, cpu_ns; /* cpu_ns: that it took */
	struct wss_advice advice;
	int r;
	struct wss_error error;
};

struct wss_advisor {
	struct wss_advisor_options options;
	struct wss_history *history; /* NULL: none */
	struct wss_advised *list;    /* sorted by UUID */
	size_t n, room;
	unsigned pass;	  /* that is under way, or comes next */
	bool under_way;	  /* sum is initialized */
	size_t at;	  /* the watch's guest that was read last */
	uint64_t pass_ns; /* when the pass began, wss_clock_now_ns() */
	uint64_t next_ns; /* when the next guest may be read */
	uint64_t look_ns; /* when guests may be looked at that had too few windows */
	time_t since;	  /* of the windows that the pass counts */
	struct reading reading;
	struct wss_host_sum sum; /* the reader's, while it reads */
	bool failed;		 /* for some guest of the pass */
	bool has_host;
	struct wss_host_sum host; /* of the last pass, without its hours */
};

void wss_advisor_options_init(struct wss_advisor_options *options)
{
	*options = (struct wss_advisor_options){
		.advice = WSS_ADVICE_OPTIONS_INIT,
		.probability = WSS_HOST_SUM_PROBABILITY,
		.period_ns = WSS_ADVISOR_PERIOD_NS,
		.look_ns = WSS_ADVISOR_LOOK_NS,
		.pauses = WSS_ADVISOR_PAUSES,
		.host_bytes = wss_host_memory(),
	};
}

struct wss_advisor *wss_advisor_new(struct wss_history *history,
				    const struct wss_advisor_options *options)
{
	struct wss_advisor *advisor = calloc(1, sizeof(*advisor));

	if (!advisor)
		return NULL;
	advisor->options = *options;
	advisor->history = history;
	advisor->pass = 1;
	return advisor;
}

void wss_advisor_free(struct wss_advisor *advisor)
{
	if (!advisor)
		return;
	wss_advice_free(&advisor->reading.advice);
	wss_host_sum_free(&advisor->sum);
	free(advisor->list);
	free(advisor);
}

/* --- the list of guests --- */

/* Returns the place of a guest in the list, or the one that it would have. */
static size_t advised_place(const struct wss_advisor *advisor, const char *uuid)
{
	size_t from = 0, to = advisor->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(advisor->list[middle].uuid, uuid) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static struct wss_advised *advised_find(const struct wss_advisor *advisor, const char *uuid)
{
	size_t i = advised_place(advisor, uuid);

	return i < advisor->n && !strcmp(advisor->list[i].uuid, uuid) ? &advisor->list[i] : NULL;
}

/* NULL: out of memory. */
static struct wss_advised *advised_get(struct wss_advisor *advisor, const char *uuid)
{
	struct wss_advised *advised = advised_find(advisor, uuid);
	size_t place = advised_place(advisor, uuid);

	if (advised)
		return advised;
	if (advisor->n == advisor->room) {
		size_t room = advisor->room ? 2 * advisor->room : 16;
		struct wss_advised *list = reallocarray(advisor->list, room, sizeof(*list));

		if (!list)
			return NULL;
		advisor->list = list;
		advisor->room = room;
	}
	advised = &advisor->list[place];
	memmove(advised + 1, advised, (advisor->n++ - place) * sizeof(*advised));
	*advised = (struct wss_advised){.status = WSS_ADVICE_UNKNOWN};
	memcpy(advised->uuid, uuid, strnlen(uuid, sizeof(advised->uuid) - 1));
	return advised;
}

/* Forgets the guests that the pass has not met. */
static void advised_forget_others(struct wss_advisor *advisor)
{
	size_t kept = 0;

	for (size_t i = 0; i < advisor->n; i++)
		if (advisor->list[i].pass == advisor->pass)
			advisor->list[kept++] = advisor->list[i];
	advisor->n = kept;
}

/* --- a pass --- */

static int pass_begin(struct wss_advisor *advisor, struct wss_error *err)
{
	time_t now = wss_clock_wall_seconds();

	advisor->pass_ns = wss_clock_now_ns();
	advisor->since = wss_advice_since(&advisor->options.advice, now);
	advisor->failed = false;
	if (wss_host_sum_init(&advisor->sum, advisor->since, now, err) < 0)
		return -1;
	advisor->under_way = true;
	return 0;
}

/* Returns the next guest of the pass; NULL: it has met all of them. */
static const struct wss_watched *pass_next_guest(struct wss_advisor *advisor,
						 const struct wss_watch *watch)
{
	size_t n = wss_watch_count(watch);

	/* The guests before the last one have been met, unless the watch has moved them meanwhile. */
	for (size_t i = 0; i < n; i++) {
		size_t at = (advisor->at + i) % n;
		const struct wss_watched *guest = wss_watch_guest(watch, at);
		const struct wss_advised *advised = advised_find(advisor, guest->uuid);

		if (advised && advised->pass == advisor->pass)
			continue;
		advisor->at = at;
		return guest;
	}
	return NULL;
}

static void advised_add_why(struct wss_advised *advised, const struct wss_advice *advice,
			    bool (*text)(const struct wss_advice *advice,
					 char ret_text[WSS_ADVICE_TEXT_MAX]))
{
	if (advised->n_why < WSS_ADVISED_WHY_MAX && text(advice, advised->why[advised->n_why]))
		advised->n_why++;
}

/* blocked: its memory stays on the host. */
static void advised_keep(struct wss_advised *advised, struct wss_advice *advice, bool blocked)
{
	const struct wss_sizing *sizing = &advice->sizing;

	advised->status = advice->status;
	advised->confidence = sizing->confidence;
	advised->windows = advice->has_series ? advice->series.summary.samples : 0;
	advised->first = advice->has_series ? advice->series.summary.first : 0;
	advised->method[0] = '\0';
	if (advice->has_series) {
		memcpy(advised->method, advice->series.method, sizeof(advised->method));
		advised->granularity_bytes = advice->series.granularity_bytes;
		advised->window_ns = advice->series.window_ns;
	}
	advised->p50_bytes = sizing->p50_bytes;
	advised->p95_bytes = sizing->p95_bytes;
	advised->p99_bytes = sizing->p99_bytes;
	advised->peak_bytes = sizing->peak_bytes;
	advised->recommended_bytes = sizing->recommended_bytes;
	advised->beyond_bytes = sizing->reclaimable_bytes;
	advised->n_why = 0;
	if (blocked)
		wss_advice_block(advice);
	if (advice->status == WSS_ADVICE_UNKNOWN)
		snprintf(advised->why[advised->n_why++], WSS_ADVICE_TEXT_MAX,
			 "its history has no windows yet that show what it reads");
	if (!advice->has_series)
		return;
	advised_add_why(advised, advice, wss_advice_step_text);
	advised_add_why(advised, advice, wss_advice_below_text);
	advised_add_why(advised, advice, wss_advice_fills_text);
	advised_add_why(advised, advice, wss_advice_kind_text);
	advised_add_why(advised, advice, wss_advice_learned_text);
	advised_add_why(advised, advice, wss_advice_growth_text);
	advised_add_why(advised, advice, wss_advice_left_out_text);
}

/* In whatever thread: touches nothing but the reading, the history and the sum. */
static void advisor_read(void *opaque)
{
	struct wss_advisor *advisor = opaque;
	struct reading *reading = &advisor->reading;
	const struct wss_advisor_options *options = &advisor->options;
	const struct wss_advice_guest asked = {.uuid = reading->uuid,
					       .active = true,
					       .reports_free = reading->reports_free,
					       .policy = &reading->policy};
	struct wss_error unused = WSS_ERROR_INIT;
	uint64_t cpu_ns = wss_clock_thread_ns();
	int r;

	r = wss_advice_read(advisor->history, &asked, advisor->since, &options->advice,
			    &reading->advice, &reading->error);
	if (wss_host_sum_add(&advisor->sum, advisor->history, &reading->advice, &reading->size,
			     r < 0 ? &unused : &reading->error) < 0)
		r = -1;
	if (options->read_more && options->read_more(reading->uuid, options->opaque,
						     r < 0 ? &unused : &reading->error) < 0)
		r = -1;
	reading->r = r;
	reading->cpu_ns = wss_clock_thread_ns() - cpu_ns;
	reading->ended = true;
}

static void reading_prepare(struct reading *reading, const struct wss_watched *guest)
{
	*reading = (struct reading){
		.under_way = true,
		.policy = guest->policy,
		.size.assigned_bytes = guest->maximum_bytes,
		.watched_windows = guest->windows,
		.blocked = guest->blocked[0],
		.reports_free = guest->reports_free,
		.began_ns = wss_clock_now_ns(),
		.advice = {.status = WSS_ADVICE_FAILED},
	};
	memcpy(reading->uuid, guest->uuid, sizeof(reading->uuid));
	/* It holds no more than its maximum. */
	if (guest->state == WSS_WATCHED_PAUSED)
		reading->size.paused_bytes =
			guest->balloon_bytes.known ? guest->balloon_bytes : guest->maximum_bytes;
}

static int pass_start_reading(struct wss_advisor *advisor, const struct wss_watched *guest,
			      struct wss_error *err)
{
	struct reading *reading = &advisor->reading;
	struct wss_advised *advised = advised_get(advisor, guest->uuid);

	if (!advised) {
		advisor->failed = true;
		advisor->next_ns = wss_clock_now_ns() + RETRY_NS;
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	reading_prepare(reading, guest);
	if (!advisor->options.start) {
		advisor_read(advisor);
	} else if (!advisor->options.start(advisor_read, advisor, advisor->options.opaque)) {
		reading->under_way = false;
		return 0;
	}
	advised->pass = advisor->pass;
	return 0;
}

/* Takes what was read. */
static int pass_take_reading(struct wss_advisor *advisor, struct wss_error *err)
{
	struct reading *reading = &advisor->reading;
	struct wss_advised *advised = advised_find(advisor, reading->uuid);

	if (advised) {
		advised_keep(advised, &reading->advice, reading->blocked);
		advised->read_ns = wss_clock_now_ns();
		advised->watched_windows = reading->watched_windows;
		advised->has_memory = reading->size.assigned_bytes.known;
	}
	wss_advice_free(&reading->advice);
	reading->advice = (struct wss_advice){.status = WSS_ADVICE_FAILED};
	reading->under_way = false;
	advisor->failed |= reading->r < 0;
	advisor->next_ns = wss_u64_add(reading->began_ns,
				       wss_u64_mul(reading->cpu_ns, advisor->options.pauses));
	if (reading->r < 0 && err)
		*err = reading->error;
	return reading->r;
}

/* No guest needs nothing. Of guests whose memory is not known either the need is unknown. */
static int pass_end(struct wss_advisor *advisor, struct wss_error *err)
{
	struct wss_host_sum *sum = &advisor->sum;
	int r = wss_host_sum_finish(sum, advisor->options.probability, advisor->options.host_bytes,
				    err);

	if (r == 0 && !sum->guests) {
		sum->needed_bytes = sum->assigned_bytes = sum->overhead_bytes = wss_amount_of(0);
		sum->fits_bytes = sum->host_bytes;
	}
	wss_host_sum_free(sum);
	advisor->has_host = r == 0;
	advisor->host = *sum;
	advised_forget_others(advisor);
	*sum = (struct wss_host_sum){.since = 0};
	advisor->under_way = false;
	advisor->pass++;
	advisor->next_ns = wss_u64_add(advisor->pass_ns, advisor->options.period_ns);
	return r < 0 ? -1 : !advisor->failed;
}

/* Whether the last pass lacked the guest's memory, or enough of its windows for a size, and has them now. */
static bool guest_has_come_of_age(const struct wss_advisor *advisor,
				  const struct wss_watched *guest)
{
	const struct wss_advised *advised = advised_find(advisor, guest->uuid);

	if (advised && !advised->has_memory && guest->maximum_bytes.known)
		return true;
	return guest->windows >= WSS_ADVISOR_WINDOWS &&
	       (!advised || (advised->confidence == WSS_CONFIDENCE_NONE &&
			     advised->watched_windows < WSS_ADVISOR_WINDOWS));
}

static bool pass_is_due_early(struct wss_advisor *advisor, const struct wss_watch *watch,
			      uint64_t now_ns)
{
	if (advisor->under_way || now_ns < advisor->look_ns)
		return false;
	advisor->look_ns = wss_u64_add(now_ns, advisor->options.look_ns);
	for (size_t i = 0; i < wss_watch_count(watch); i++)
		if (guest_has_come_of_age(advisor, wss_watch_guest(watch, i)))
			return true;
	return false;
}

int wss_advisor_step(struct wss_advisor *advisor, const struct wss_watch *watch,
		     struct wss_error *err)
{
	uint64_t now_ns = wss_clock_now_ns();
	struct reading *reading = &advisor->reading;
	const struct wss_watched *guest;

	if (reading->under_way)
		return reading->ended ? pass_take_reading(advisor, err) : 0;
	if (!advisor->history || !wss_watch_listed(watch) ||
	    (now_ns < advisor->next_ns && !pass_is_due_early(advisor, watch, now_ns)))
		return 0;
	if (!advisor->under_way && pass_begin(advisor, err) < 0) {
		advisor->next_ns = wss_u64_add(wss_clock_now_ns(), advisor->options.period_ns);
		return -1;
	}
	guest = pass_next_guest(advisor, watch);
	if (!guest)
		return pass_end(advisor, err);
	if (pass_start_reading(advisor, guest, err) < 0)
		return -1;
	return reading->under_way && reading->ended ? pass_take_reading(advisor, err) : 0;
}

const struct wss_advised *wss_advisor_find(const struct wss_advisor *advisor, const char *uuid)
{
	return advisor ? advised_find(advisor, uuid) : NULL;
}

struct wss_amount wss_advised_reclaimable(const struct wss_advised *advised,
					  const struct wss_watched *guest)
{
	struct wss_amount bytes = advised->beyond_bytes;

	bytes.known &= guest->examined;
	if (!bytes.known || guest->blocked[0])
		bytes.value = 0;
	return bytes;
}

const struct wss_host_sum *wss_advisor_host(const struct wss_advisor *advisor)
{
	return advisor && advisor->has_host ? &advisor->host : NULL;
}
