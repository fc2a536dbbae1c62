/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: guests first leave hosts that are over their limits (pack-repair.c). Then
 * hosts are put into an order of emptying, the cheapest last, and a binary search finds how many
 * of the first are enough: each try closes all others, and packs their guests (pack-place.c)
 * beside those that stay where they are, and exchanges guests where that is not enough
 * (pack-squeeze.c). So guests of emptied hosts move, and others only to make room for them.
 */
#include "fleet/pack-private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/stop.h"

/* Exchanges that one try may consider, for half a second. */
#define WORK_OF_TRY 5000000

/* --- the order of emptying --- */

struct emptied_host {
	uint32_t host;
	bool stays;
	double cost; /* of emptying it: the larger, the sooner it is kept */
	uint64_t copy_bytes;
};

static int emptied_compare(const void *a, const void *b)
{
	const struct emptied_host *left = a, *right = b;

	if (left->stays != right->stays)
		return left->stays ? -1 : 1;
	if (fabs(left->cost - right->cost) > 0)
		return left->cost > right->cost ? -1 : 1;
	if (left->copy_bytes != right->copy_bytes)
		return left->copy_bytes > right->copy_bytes ? -1 : 1;
	return left->host < right->host ? -1 : 1;
}

/*
 * Lists the hosts in use, in the order in which to keep them. Large hosts come first, so that
 * few are needed, unless moves are scarce: then those with many guests do.
 */
static size_t emptied_list(const struct pack_state *state, struct emptied_host *list)
{
	const struct wss_pack_problem *problem = state->problem;
	size_t n = 0;

	for (uint32_t i = 0; i < problem->n_hosts; i++) {
		struct emptied_host *host = &list[n];

		if (!state->loads[i].n && !problem->hosts[i].keep)
			continue;
		*host = (struct emptied_host){
			.host = i, .stays = problem->hosts[i].keep || pack_is_bad(state, i)};
		host->cost = problem->max_moves != SIZE_MAX
				     ? (double)state->loads[i].n
				     : floor(8 * log2((double)problem->hosts[i].limit_mib + 1));
		for (uint32_t j = state->first[i]; j != PACK_NOWHERE; j = state->next[j]) {
			host->copy_bytes += problem->guests[j].copy_bytes;
			host->stays |= problem->guests[j].pinned;
		}
		n++;
	}
	qsort(list, n, sizeof(*list), emptied_compare);
	return n;
}

/* --- tries --- */

struct emptying {
	struct pack_state *state;
	struct emptied_host *list;
	size_t n;
	uint32_t *repaired; /* where guests are before any try */
	uint32_t *best;	    /* the best try so far */
	uint32_t *pool;
};

static void state_restore(struct pack_state *state, const uint32_t *host_of)
{
	for (uint32_t i = 0; i < state->problem->n_guests; i++) {
		if (state->host_of[i] == host_of[i])
			continue;
		if (state->host_of[i] != PACK_NOWHERE)
			pack_take(state, i);
		pack_put(state, i, host_of[i]);
	}
}

/* Tries to do with the first hosts of the list; on success that is the best try. */
static bool emptying_try(struct emptying *run, size_t keep)
{
	struct pack_state *state = run->state;
	size_t n_pool = 0;
	bool good;

	state_restore(state, run->repaired);
	state->work = WORK_OF_TRY;
	for (size_t i = keep; i < run->n; i++) {
		uint32_t host = run->list[i].host, next;

		state->loads[host].open = false;
		for (uint32_t j = state->first[host]; j != PACK_NOWHERE; j = next) {
			next = state->next[j];
			pack_take(state, j);
			run->pool[n_pool++] = j;
		}
	}
	n_pool = pack_place_all(state, run->pool, n_pool);
	good = (!n_pool || pack_squeeze(state, run->pool, n_pool)) &&
	       pack_count_moves(state) <= state->problem->max_moves;
	for (size_t i = keep; i < run->n; i++)
		state->loads[run->list[i].host].open =
			!state->problem->hosts[run->list[i].host].closed;
	if (good)
		memcpy(run->best, state->host_of, state->problem->n_guests * sizeof(*run->best));
	return good;
}

/* Hosts that are empty already stay so. */
static void close_unused(struct pack_state *state)
{
	for (size_t i = 0; i < state->problem->n_hosts; i++)
		if (!state->loads[i].n && !state->problem->hosts[i].keep)
			state->loads[i].open = false;
}

static void emptying_search(struct emptying *run, size_t bound)
{
	size_t low = bound, high = run->n;

	while (low < run->n && run->list[low].stays)
		low++;
	while (low < high && !wss_stop_requested()) {
		/* A success is likelier close to the bound. */
		size_t middle = low + (high - low) / 3;

		if (emptying_try(run, middle))
			high = middle;
		else
			low = middle + 1;
	}
	state_restore(run->state, run->best);
}

static void pack_empty(struct pack_state *state, size_t bound)
{
	size_t n = state->problem->n_guests;
	wss_auto_free struct emptied_host *list =
		wss_xcalloc(state->problem->n_hosts, sizeof(*list));
	wss_auto_free uint32_t *repaired = wss_xcalloc(n, sizeof(*repaired));
	wss_auto_free uint32_t *best = wss_xcalloc(n, sizeof(*best));
	wss_auto_free uint32_t *pool = wss_xcalloc(n, sizeof(*pool));
	struct emptying run = {state, list, 0, repaired, best, pool};

	memcpy(repaired, state->host_of, n * sizeof(*repaired));
	memcpy(best, state->host_of, n * sizeof(*best));
	run.n = emptied_list(state, list);
	close_unused(state);
	emptying_search(&run, bound);
}

/* --- the plan --- */

static void plan_fill(struct pack_state *state, struct wss_pack_plan *plan)
{
	const struct wss_pack_problem *problem = state->problem;

	plan->hosts_after = pack_count_used(state);
	plan->bad_after = 0;
	for (uint32_t i = 0; i < problem->n_hosts; i++)
		plan->bad_after += pack_is_bad(state, i);
	plan->moves = pack_count_moves(state);
	plan->copy_bytes = 0;
	for (size_t i = 0; i < problem->n_guests; i++)
		if (state->host_of[i] != problem->guests[i].host)
			plan->copy_bytes += problem->guests[i].copy_bytes;
	plan->host_of = wss_steal_ptr(state->host_of);
}

size_t wss_pack_count_bad(const struct wss_pack_problem *problem)
{
	struct pack_state state;
	size_t n = 0;

	pack_state_init(&state, problem);
	for (uint32_t i = 0; i < problem->n_hosts; i++)
		n += pack_is_bad(&state, i);
	pack_state_release(&state);
	return n;
}

int wss_pack_solve(const struct wss_pack_problem *problem, struct wss_pack_plan *ret_plan,
		   struct wss_error *err)
{
	struct wss_pack_plan plan = {.bound = wss_pack_bound(problem)};
	struct pack_state state;
	int r = 0;

	pack_state_init(&state, problem);
	plan.hosts_before = pack_count_used(&state);
	plan.bad_before = pack_repair(&state);
	if (problem->goal == WSS_PACK_EMPTY)
		pack_empty(&state, plan.bound);
	if (wss_stop_requested())
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	if (r == 0) {
		plan_fill(&state, &plan);
		*ret_plan = plan;
	}
	pack_state_release(&state);
	return r;
}
