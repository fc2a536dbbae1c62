/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/squeeze.h"

#include <stddef.h>
#include <stdio.h>

#include "base/number.h"
#include "base/units.h"

/* Sizes are set in KiB and reached in pages: a guest this close to its target has reached it. */
#define TOLERANCE WSS_MIB
/* Longest time to wait for the end of paging, in which a guest reads its page cache back. */
#define RETURNED_S 60

const char *wss_squeeze_objection(const struct wss_balloon_facts *facts)
{
	const char *objection = wss_balloon_objection(facts);

	if (!objection && !facts->statistics)
		objection = facts->asked ? "statistics have stopped" : wss_balloon_no_statistics;
	return objection;
}

const char *wss_squeeze_refusal(const struct wss_balloon_facts *facts)
{
	const char *refusal = wss_balloon_guest_refusal(facts);

	return refusal ? refusal : wss_squeeze_objection(facts);
}

bool wss_squeeze_no_step(uint64_t bytes, uint64_t floor_bytes, char ret_text[WSS_SQUEEZE_TEXT_MAX])
{
	char size[24], floor[24];

	if (bytes > floor_bytes && bytes - floor_bytes > TOLERANCE)
		return false;
	wss_size_format(bytes, size, sizeof(size));
	wss_size_format(floor_bytes, floor, sizeof(floor));
	snprintf(ret_text, WSS_SQUEEZE_TEXT_MAX, "no step from its size of %s to the floor of %s",
		 size, floor);
	return true;
}

uint64_t wss_squeeze_floor(const struct wss_policy *policy, uint64_t floor_bytes)
{
	return policy->minimum_bytes.known ? wss_u64_max(floor_bytes, policy->minimum_bytes.value)
					   : floor_bytes;
}

static struct wss_amount amount_max(struct wss_amount a, struct wss_amount b)
{
	return a.known && (!b.known || a.value > b.value) ? a : b;
}

void wss_squeeze_memory_note(struct wss_squeeze_memory *memory, const struct wss_balloon_view *view)
{
	memory->reserve_bytes = wss_u64_max(memory->reserve_bytes, wss_balloon_reserve(view));
	memory->used_bytes = amount_max(memory->used_bytes, wss_balloon_used(view));
	memory->cache_bytes = amount_max(memory->cache_bytes, view->cache_bytes);
}

void wss_squeeze_init(struct wss_squeeze *squeeze, const struct wss_squeeze_options *options,
		      uint64_t original_bytes, uint64_t timeout_s, bool autodeflate)
{
	*squeeze = (struct wss_squeeze){
		.options = *options,
		.original_bytes = original_bytes,
		.target_bytes = original_bytes,
		.best_bytes = original_bytes,
		.timeout_s = timeout_s,
		.autodeflate = autodeflate,
	};
}

bool wss_squeeze_is_stepping(const struct wss_squeeze *squeeze)
{
	return squeeze->state == WSS_SQUEEZE_STEPPING;
}

bool wss_squeeze_is_ready(const struct wss_squeeze *squeeze)
{
	return squeeze->state == WSS_SQUEEZE_READY;
}

uint64_t wss_squeeze_smallest(const struct wss_squeeze *squeeze)
{
	uint64_t least = squeeze->original_bytes;

	for (size_t i = 0; i < squeeze->n_points; i++)
		least = wss_u64_min(least, squeeze->points[i].size_bytes);
	return least;
}

void wss_squeeze_put_off(struct wss_squeeze *squeeze)
{
	if (squeeze->state == WSS_SQUEEZE_STEPPING)
		squeeze->state = WSS_SQUEEZE_READY;
	else
		squeeze->put_off = squeeze->state >= WSS_SQUEEZE_RETURNED;
}

static bool is_shrunk(const struct wss_squeeze *squeeze)
{
	return squeeze->target_bytes < squeeze->original_bytes &&
	       squeeze->state != WSS_SQUEEZE_RETURNED && squeeze->state != WSS_SQUEEZE_OVER;
}

static struct wss_balloon_decision decide_hold(const char *reason)
{
	return (struct wss_balloon_decision){WSS_BALLOON_HOLD, 0, reason};
}

static struct wss_balloon_decision decide_done(struct wss_squeeze *squeeze, const char *end)
{
	if (!squeeze->end)
		squeeze->end = end;
	squeeze->state = WSS_SQUEEZE_OVER;
	return (struct wss_balloon_decision){WSS_BALLOON_DONE, squeeze->original_bytes,
					     squeeze->end};
}

/* Gives everything back; the guest is then observed once more. */
static struct wss_balloon_decision decide_return(struct wss_squeeze *squeeze, uint64_t now_s,
						 const char *end)
{
	const struct wss_squeeze_options *options = &squeeze->options;

	if (!is_shrunk(squeeze))
		return decide_done(squeeze, end);
	squeeze->end = end;
	squeeze->state = WSS_SQUEEZE_RETURNED;
	squeeze->begun = false;
	squeeze->settled_s = now_s + options->settle_s;
	squeeze->until_s =
		now_s + wss_u64_max(RETURNED_S, 4 * (options->settle_s + options->interval_s));
	return (struct wss_balloon_decision){WSS_BALLOON_RETURN, squeeze->original_bytes, end};
}

/* Adds an observation that needs no interval. */
static void add_certain(struct wss_squeeze *squeeze, const struct wss_edge_point *point)
{
	if (squeeze->n_points < WSS_SQUEEZE_POINTS_MAX)
		squeeze->points[squeeze->n_points++] = *point;
}

static uint64_t said_s_of(const struct wss_balloon_view *view)
{
	return view->now_s - wss_u64_min(view->statistics_age_s, view->now_s);
}

static void reading_update(struct wss_squeeze_reading *reading, const struct wss_balloon_view *view)
{
	reading->said_s = said_s_of(view);
	reading->major_faults = view->major_faults;
	reading->swapped_bytes = view->swapped_bytes;
	if (view->read_bytes.known) {
		reading->read_bytes = view->read_bytes;
		reading->read_s = view->now_s;
	}
}

/* A counter that has fallen is that of other disks, or of a guest that was rebooted. */
static struct wss_amount rate_of(struct wss_amount from, struct wss_amount to, uint64_t seconds)
{
	if (!from.known || !to.known || to.value < from.value || !seconds)
		return (struct wss_amount){0};
	return wss_amount_of((to.value - from.value) / seconds);
}

static void observation_begin(struct wss_squeeze *squeeze, const struct wss_balloon_view *view)
{
	squeeze->begun = true;
	squeeze->newest = (struct wss_squeeze_reading){.said_s = 0};
	squeeze->pressure_permille = (struct wss_amount){0};
	reading_update(&squeeze->newest, view);
	squeeze->begin = squeeze->newest;
}

/* Follows an observation to the next look; returns whether it is complete. */
static bool observation_follow(struct wss_squeeze *squeeze, const struct wss_balloon_view *view)
{
	struct wss_squeeze_reading *begin = &squeeze->begin;

	reading_update(&squeeze->newest, view);
	if (!begin->read_bytes.known && squeeze->newest.read_bytes.known) {
		begin->read_bytes = squeeze->newest.read_bytes;
		begin->read_s = squeeze->newest.read_s;
	}
	if (view->pressure_permille.known)
		squeeze->pressure_permille = wss_amount_of(wss_u64_max(
			squeeze->pressure_permille.value, view->pressure_permille.value));
	return squeeze->newest.said_s >= begin->said_s + squeeze->options.interval_s;
}

static void observation_end(struct wss_squeeze *squeeze, const struct wss_balloon_view *view)
{
	const struct wss_squeeze_reading *begin = &squeeze->begin, *end = &squeeze->newest;
	uint64_t seconds = end->said_s - begin->said_s;
	bool returned = squeeze->state == WSS_SQUEEZE_RETURNED;
	struct wss_edge_point *point = &squeeze->points[squeeze->n_points++];

	*point = (struct wss_edge_point){
		.size_bytes = returned ? squeeze->original_bytes : squeeze->target_bytes,
		.returned = returned,
		.major_faults_per_s = rate_of(begin->major_faults, end->major_faults, seconds),
		.swapped_bytes_per_s = rate_of(begin->swapped_bytes, end->swapped_bytes, seconds),
		.read_bytes_per_s =
			rate_of(begin->read_bytes, end->read_bytes, end->read_s - begin->read_s),
		.pressure_permille = squeeze->pressure_permille,
		.usable_bytes = view->usable_bytes,
		.free_bytes = view->free_bytes,
	};
	if (point->size_bytes == squeeze->original_bytes)
		wss_squeeze_memory_note(&squeeze->memory, view);
	squeeze->begun = false;
}

/*
 * Observes the guest at its present size. Returns true if there is a new observation. One that
 * took much longer than it should, for example because the guest was paused, is made again.
 */
static bool observe(struct wss_squeeze *squeeze, const struct wss_balloon_view *view)
{
	if (!view->usable_bytes.known || said_s_of(view) < squeeze->settled_s)
		return false;
	if (squeeze->begun && !observation_follow(squeeze, view))
		return false;
	if (squeeze->begun && squeeze->newest.said_s - squeeze->begin.said_s <=
				      2 * squeeze->options.interval_s + RETURNED_S / 2) {
		observation_end(squeeze, view);
		observation_begin(squeeze, view);
		return true;
	}
	observation_begin(squeeze, view);
	return false;
}

static struct wss_balloon_decision decide_step(struct wss_squeeze *squeeze,
					       const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value, guard = wss_edge_guard(actual);
	uint64_t step = actual / 100 * squeeze->options.step_percent;

	/* How much the guest can give up is not known without new statistics. */
	if (!view->usable_bytes.known)
		return decide_hold("its statistics are too old for a step");
	step = wss_u64_min(step,
			   view->usable_bytes.value > guard ? view->usable_bytes.value - guard : 0);
	if (actual <= squeeze->options.floor_bytes + TOLERANCE)
		return decide_return(squeeze, view->now_s, "it has reached the floor");
	step = wss_u64_min(step, actual - squeeze->options.floor_bytes);
	if (squeeze->n_points + 2 * WSS_EDGE_LEVEL_POINTS > WSS_SQUEEZE_POINTS_MAX)
		return decide_return(squeeze, view->now_s, "there were too many steps");
	if (step <= TOLERANCE) {
		/* It used memory since it was judged: look again. */
		squeeze->state = WSS_SQUEEZE_OBSERVING;
		squeeze->begun = false;
		return decide_hold("it has little left to give up");
	}
	if (!view->may_step)
		return decide_hold("no step is possible at the moment");
	squeeze->state = WSS_SQUEEZE_STEPPING;
	squeeze->target_bytes = actual - step;
	squeeze->best_bytes = actual;
	squeeze->progress_s = view->now_s;
	return (struct wss_balloon_decision){WSS_BALLOON_SHRINK, squeeze->target_bytes,
					     "step of a squeeze"};
}

static struct wss_balloon_decision decide_observing(struct wss_squeeze *squeeze,
						    const struct wss_balloon_view *view)
{
	if (!observe(squeeze, view))
		return decide_hold("it is observed");
	switch (wss_edge_judge(squeeze->points, squeeze->n_points)) {
	case WSS_EDGE_UNSURE:
		break;
	case WSS_EDGE_CLEAR:
		squeeze->state = WSS_SQUEEZE_READY;
		return decide_step(squeeze, view);
	case WSS_EDGE_PAGES:
		return decide_return(squeeze, view->now_s, "it pages");
	case WSS_EDGE_DISTURBED:
		return decide_return(squeeze, view->now_s, "the host is short of memory");
	}
	return decide_hold("it is observed again");
}

static struct wss_balloon_decision decide_stepping(struct wss_squeeze *squeeze,
						   const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value;

	if (actual + TOLERANCE < squeeze->best_bytes) {
		squeeze->best_bytes = actual;
		squeeze->progress_s = view->now_s;
	}
	if (actual > squeeze->target_bytes + TOLERANCE) {
		if (view->now_s - squeeze->progress_s < squeeze->timeout_s)
			return decide_hold("a step is in progress");
		add_certain(squeeze, &(struct wss_edge_point){
					     .size_bytes = actual,
					     .refused_bytes = wss_amount_of(squeeze->target_bytes),
				     });
		return decide_return(squeeze, view->now_s, "it does not release more memory");
	}
	squeeze->best_bytes = wss_u64_min(actual, squeeze->best_bytes);
	squeeze->settled_s = view->now_s + squeeze->options.settle_s;
	squeeze->begun = false;
	squeeze->state = WSS_SQUEEZE_OBSERVING;
	return decide_hold("it has reached the next size");
}

static struct wss_balloon_decision decide_returned(struct wss_squeeze *squeeze,
						   const struct wss_balloon_view *view)
{
	struct wss_edges edges;

	if (view->now_s >= squeeze->until_s || squeeze->n_points == WSS_SQUEEZE_POINTS_MAX)
		return decide_done(squeeze, NULL);
	if (view->actual_bytes.value + TOLERANCE < squeeze->original_bytes ||
	    !observe(squeeze, view))
		return decide_hold("it has its memory back");
	wss_edges_find(squeeze->points, squeeze->n_points, &edges);
	return edges.paging.edge_bytes.known ? decide_done(squeeze, NULL)
					     : decide_hold("it still pages");
}

static struct wss_balloon_decision decide_moved(struct wss_squeeze *squeeze)
{
	squeeze->state = WSS_SQUEEZE_OVER;
	return (struct wss_balloon_decision){WSS_BALLOON_RESTORE, squeeze->original_bytes,
					     "somebody else moved its balloon"};
}

/*
 * Returns a decision on whatever ends the squeeze at any time; its reason is NULL if nothing
 * does.
 */
static struct wss_balloon_decision alarm_of(struct wss_squeeze *squeeze,
					    const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value;
	bool shrunk = is_shrunk(squeeze);

	if (shrunk && actual > squeeze->best_bytes + TOLERANCE) {
		/* Not even autodeflate gives back more than is needed. */
		if (!squeeze->autodeflate || actual + TOLERANCE >= squeeze->original_bytes)
			return decide_moved(squeeze);
		add_certain(squeeze, &(struct wss_edge_point){.size_bytes = squeeze->target_bytes,
							      .grew = true});
		return decide_return(squeeze, view->now_s, "it took memory back by itself");
	}
	/* The memory that it could give up is nearly gone, although the step left enough. */
	if (shrunk && view->usable_bytes.known &&
	    view->usable_bytes.value <= wss_edge_guard(actual) / 2) {
		add_certain(squeeze, &(struct wss_edge_point){.size_bytes = actual,
							      .usable_bytes = view->usable_bytes});
		return decide_return(squeeze, view->now_s, "it has nearly nothing left to give up");
	}
	if (!shrunk && squeeze->state < WSS_SQUEEZE_RETURNED &&
	    (actual > squeeze->original_bytes + TOLERANCE ||
	     actual + TOLERANCE < squeeze->original_bytes))
		return decide_moved(squeeze);
	return decide_hold(NULL);
}

static struct wss_balloon_decision decide_next(struct wss_squeeze *squeeze,
					       const struct wss_balloon_view *view)
{
	struct wss_balloon_decision decision;

	if (!view->actual_bytes.known)
		return decide_hold("the size of its balloon is unknown");
	if (!squeeze->settled_s)
		squeeze->settled_s = said_s_of(view);
	decision = alarm_of(squeeze, view);
	if (decision.reason)
		return decision;
	switch (squeeze->state) {
	case WSS_SQUEEZE_OBSERVING:
		return decide_observing(squeeze, view);
	case WSS_SQUEEZE_READY:
		return decide_step(squeeze, view);
	case WSS_SQUEEZE_STEPPING:
		return decide_stepping(squeeze, view);
	case WSS_SQUEEZE_RETURNED:
		return decide_returned(squeeze, view);
	case WSS_SQUEEZE_OVER:
		break;
	}
	return decide_hold("it is over");
}

struct wss_balloon_decision wss_squeeze_next(struct wss_squeeze *squeeze,
					     const struct wss_balloon_view *view)
{
	struct wss_balloon_decision decision;

	if (squeeze->put_off) {
		squeeze->put_off = false;
		return squeeze->last;
	}
	decision = decide_next(squeeze, view);
	if (decision.action != WSS_BALLOON_HOLD)
		squeeze->last = decision;
	return decision;
}
