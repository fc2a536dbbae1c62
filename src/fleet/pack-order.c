/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: every guest starts where it runs. Moves whose destination has room are made, those
 * off hosts over their limits first, until none is left or all that are left wait for each other. Then
 * a guest is moved aside to a third host, one whose absence lets another move proceed if there is one, and
 * the moves go on. A guest moves aside once at most, so that this ends. What still waits then stays
 * where it is, which is safe, because every state on the way obeys the limits that the first one does.
 */
#include "fleet/pack-private.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/stop.h"

struct ordering {
	struct pack_state *state;
	const uint32_t *goal; /* the host that each guest is to be on */
	uint32_t *waiting;    /* guests that are not there, in order of preference */
	size_t n;
	bool *was_aside; /* of each guest */
	struct wss_pack_step *steps;
	size_t n_steps, max_steps;
};

static void step_make(struct ordering *run, uint32_t guest, uint32_t to)
{
	run->steps[run->n_steps++] = (struct wss_pack_step){
		.guest = guest, .from = run->state->host_of[guest], .to = to};
	pack_take(run->state, guest);
	pack_put(run->state, guest, to);
}

/* Whether a host has room for a guest, and is not bad itself, as it may be before it is repaired. */
static bool may_enter(const struct ordering *run, uint32_t guest, uint32_t host)
{
	return pack_fits(run->state, guest, host) && !pack_is_bad(run->state, host);
}

/* Makes all moves that have room now, in their order; whether there was any. */
static bool moves_make(struct ordering *run)
{
	size_t left = 0, before = run->n;

	for (size_t i = 0; i < before; i++) {
		uint32_t guest = run->waiting[i];

		if (run->n_steps < run->max_steps && may_enter(run, guest, run->goal[guest]))
			step_make(run, guest, run->goal[guest]);
		else
			run->waiting[left++] = guest;
	}
	run->n = left;
	return left < before;
}

/* Whether a move could proceed to this host as it is. */
static bool lets_one_in(const struct ordering *run, uint32_t host)
{
	for (size_t i = 0; i < run->n; i++)
		if (run->goal[run->waiting[i]] == host &&
		    run->state->host_of[run->waiting[i]] != PACK_NOWHERE &&
		    may_enter(run, run->waiting[i], host))
			return true;
	return false;
}

/* Returns the host in use with most room in its worst hour that a guest fits on; PACK_NOWHERE: none. */
static uint32_t host_aside(const struct ordering *run, uint32_t guest, uint32_t except)
{
	const struct wss_pack_problem *problem = run->state->problem;
	uint32_t best = PACK_NOWHERE;
	float most = 0;

	for (uint32_t host = 0; host < problem->n_hosts; host++) {
		const struct pack_load *load = &run->state->loads[host];
		float room = problem->hosts[host].limit_mib - load->mib[load->worst];

		if (host == except || problem->hosts[host].closed ||
		    (!load->n && !problem->hosts[host].keep) || !may_enter(run, guest, host))
			continue;
		if (best == PACK_NOWHERE || room > most) {
			best = host;
			most = room;
		}
	}
	return best;
}

/*
 * Moves a waiting guest aside; helpful: only one whose absence lets another move proceed. That move
 * has to follow, and the guest's own after it, or it would be for nothing.
 */
static bool aside_make(struct ordering *run, bool helpful)
{
	if (run->n_steps + 3 > run->max_steps)
		return false;
	for (size_t i = 0; i < run->n; i++) {
		uint32_t guest = run->waiting[i], from = run->state->host_of[guest], to;
		bool helps;

		if (run->was_aside[guest])
			continue;
		pack_take(run->state, guest);
		helps = !helpful || lets_one_in(run, from);
		to = helps ? host_aside(run, guest, from) : PACK_NOWHERE;
		pack_put(run->state, guest, from);
		if (to == PACK_NOWHERE)
			continue;
		run->was_aside[guest] = true;
		step_make(run, guest, to);
		return true;
	}
	return false;
}

/* A guest's place among the moves: off hosts over their limits first, then the cheapest. */
struct preference {
	uint32_t guest;
	bool repairs;
	uint64_t copy_bytes;
};

static int preferences_compare(const void *a, const void *b)
{
	const struct preference *left = a, *right = b;

	if (left->repairs != right->repairs)
		return left->repairs ? -1 : 1;
	if (left->copy_bytes != right->copy_bytes)
		return left->copy_bytes < right->copy_bytes ? -1 : 1;
	return left->guest < right->guest ? -1 : left->guest > right->guest;
}

static void waiting_fill(struct ordering *run)
{
	const struct wss_pack_problem *problem = run->state->problem;
	wss_auto_free struct preference *list = wss_xcalloc(problem->n_guests, sizeof(*list));

	for (uint32_t i = 0; i < problem->n_guests; i++)
		if (run->goal[i] != problem->guests[i].host)
			list[run->n++] = (struct preference){
				i, pack_is_bad(run->state, problem->guests[i].host),
				problem->guests[i].copy_bytes};
	qsort(list, run->n, sizeof(*list), preferences_compare);
	for (size_t i = 0; i < run->n; i++)
		run->waiting[i] = list[i].guest;
}

/* A guest moves aside if a later step has it again. */
static void steps_mark(struct ordering *run, uint32_t n_guests)
{
	for (uint32_t i = 0; i < n_guests; i++)
		run->was_aside[i] = false;
	for (size_t i = run->n_steps; i-- > 0;) {
		run->steps[i].aside = run->was_aside[run->steps[i].guest];
		run->was_aside[run->steps[i].guest] = true;
	}
}

/* Takes the state that the steps lead to into the plan. */
static void plan_update(struct ordering *run, struct wss_pack_plan *plan)
{
	struct pack_state *state = run->state;

	plan->hosts_after = pack_count_used(state);
	plan->bad_after = 0;
	for (uint32_t i = 0; i < state->problem->n_hosts; i++)
		if (pack_is_bad(state, i)) {
			plan->bad_after++;
			plan->bad_why[pack_why_bad(state, i, run->waiting, run->n)]++;
		}
	plan->moves = run->n_steps;
	plan->copy_bytes = 0;
	for (size_t i = 0; i < run->n_steps; i++)
		plan->copy_bytes += state->problem->guests[run->steps[i].guest].copy_bytes;
	free(plan->host_of);
	plan->host_of = wss_steal_ptr(state->host_of);
	plan->steps = wss_steal_ptr(run->steps);
	plan->n_steps = run->n_steps;
	plan->left_out = wss_steal_ptr(run->waiting);
	plan->n_left_out = run->n;
}

int wss_pack_order(const struct wss_pack_problem *problem, struct wss_pack_plan *plan,
		   struct wss_error *err)
{
	wss_auto_free bool *was_aside = wss_xcalloc(problem->n_guests, sizeof(*was_aside));
	struct pack_state state = {.problem = NULL};
	/* Each guest has two steps at most. */
	struct ordering run = {.state = &state,
			       .goal = plan->host_of,
			       .waiting = wss_xcalloc(problem->n_guests, sizeof(*run.waiting)),
			       .was_aside = was_aside,
			       .steps = wss_xcalloc(2 * problem->n_guests, sizeof(*run.steps)),
			       .max_steps = problem->max_moves};
	int r = 0;

	pack_state_init(&state, problem);
	waiting_fill(&run);
	while (run.n && !wss_stop_requested() &&
	       (moves_make(&run) || aside_make(&run, true) || aside_make(&run, false)))
		;
	if (wss_stop_requested())
		r = wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	if (r == 0) {
		steps_mark(&run, (uint32_t)problem->n_guests);
		plan_update(&run, plan);
	}
	pack_state_release(&state);
	free(run.waiting);
	free(run.steps);
	return r;
}
