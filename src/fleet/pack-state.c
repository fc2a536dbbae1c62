/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/pack-private.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"

/* --- vectors of hours --- */

static unsigned load_count_over(const struct pack_load *load, float limit_mib)
{
	unsigned over = 0;

	for (int i = 0; i < WSS_PACK_HOURS; i++)
		over += load->mib[i] > limit_mib;
	return over;
}

static uint16_t worst_hour(const float *mib)
{
	uint16_t worst = 0;

	for (uint16_t i = 1; i < WSS_PACK_HOURS; i++)
		if (mib[i] > mib[worst])
			worst = i;
	return worst;
}

static void load_refresh(struct pack_state *state, uint32_t host)
{
	struct pack_load *load = &state->loads[host];

	load->worst = worst_hour(load->mib);
	load->over = load->mib[load->worst] > state->problem->hosts[host].limit_mib
			     ? load_count_over(load, state->problem->hosts[host].limit_mib)
			     : 0;
}

void pack_put(struct pack_state *state, uint32_t guest, uint32_t host)
{
	struct pack_load *load = &state->loads[host];
	const float *need = state->problem->guests[guest].need_mib;

	for (int i = 0; i < WSS_PACK_HOURS; i++)
		load->mib[i] += need[i];
	for (int i = 0; i < WSS_PACK_SUMS; i++)
		load->sum_bytes[i] += state->problem->guests[guest].sum_bytes[i];
	load->n++;
	state->host_of[guest] = host;
	state->previous[guest] = PACK_NOWHERE;
	state->next[guest] = state->first[host];
	if (state->first[host] != PACK_NOWHERE)
		state->previous[state->first[host]] = guest;
	state->first[host] = guest;
	load_refresh(state, host);
}

void pack_take(struct pack_state *state, uint32_t guest)
{
	uint32_t host = state->host_of[guest], next = state->next[guest];
	uint32_t previous = state->previous[guest];
	struct pack_load *load = &state->loads[host];
	const float *need = state->problem->guests[guest].need_mib;

	for (int i = 0; i < WSS_PACK_HOURS; i++)
		load->mib[i] -= need[i];
	for (int i = 0; i < WSS_PACK_SUMS; i++)
		load->sum_bytes[i] -= state->problem->guests[guest].sum_bytes[i];
	load->n--;
	if (previous != PACK_NOWHERE)
		state->next[previous] = next;
	else
		state->first[host] = next;
	if (next != PACK_NOWHERE)
		state->previous[next] = previous;
	state->host_of[guest] = PACK_NOWHERE;
	load_refresh(state, host);
}

/* --- what fits --- */

double pack_sums_excess(const struct pack_state *state, uint32_t host, const uint64_t *more,
			const uint64_t *less)
{
	double mib = 0;

	for (int i = 0; i < WSS_PACK_SUMS; i++) {
		uint64_t sum = state->loads[host].sum_bytes[i] + (more ? more[i] : 0) -
			       (less ? less[i] : 0);
		uint64_t most = state->problem->hosts[host].most_bytes[i];

		mib += sum > most ? (double)(sum - most) / WSS_MIB : 0;
	}
	return mib;
}

bool pack_conflicts(const struct pack_state *state, uint32_t guest, uint32_t host, uint32_t without)
{
	for (uint32_t i = state->groups_at[guest]; i < state->groups_at[guest + 1]; i++) {
		const struct wss_pack_apart *apart = &state->problem->aparts[state->groups[i]];

		for (size_t j = 0; j < apart->n; j++)
			if (apart->guests[j] != guest && apart->guests[j] != without &&
			    state->host_of[apart->guests[j]] == host)
				return true;
	}
	return false;
}

/* Whether the sums stay within the limit in all hours. */
static bool sums_within(const float *load, const float *need, float limit)
{
	const pack_four limits = {limit, limit, limit, limit};
	pack_mask over = {0};

	for (int i = 0; i < PACK_FOURS; i++)
		over |= (pack_mask)(pack_four_of(load, i) + pack_four_of(need, i) > limits);
	return !(over[0] | over[1] | over[2] | over[3]);
}

/* The same, where some hours may be over the limit but not over all memory. */
static bool sums_nearly_within(const float *load, const float *need,
			       const struct wss_pack_host *host, unsigned hours)
{
	unsigned over = 0;

	for (int i = 0; i < WSS_PACK_HOURS; i++) {
		float sum = load[i] + need[i];

		if (sum > host->memory_mib)
			return false;
		over += sum > host->limit_mib;
	}
	return over <= hours;
}

bool pack_fits(const struct pack_state *state, uint32_t guest, uint32_t host)
{
	const struct wss_pack_problem *problem = state->problem;
	const struct wss_pack_host *of_host = &problem->hosts[host];
	const struct pack_load *load = &state->loads[host];
	const float *need = problem->guests[guest].need_mib;
	float most = problem->over_hours ? of_host->memory_mib : of_host->limit_mib;
	uint16_t a = state->worst[guest], b = load->worst;

	if (pack_sums_excess(state, host, problem->guests[guest].sum_bytes, NULL) > 0)
		return false;
	/* These two hours refuse most. */
	if (load->mib[a] + need[a] > most || load->mib[b] + need[b] > most)
		return false;
	if (problem->over_hours ? !sums_nearly_within(load->mib, need, of_host, problem->over_hours)
				: !sums_within(load->mib, need, most))
		return false;
	return !pack_conflicts(state, guest, host, PACK_NOWHERE);
}

bool pack_is_over(const struct pack_state *state, uint32_t host)
{
	const struct pack_load *load = &state->loads[host];

	return load->over > state->problem->over_hours ||
	       load->mib[load->worst] > state->problem->hosts[host].memory_mib ||
	       pack_sums_excess(state, host, NULL, NULL) > 0;
}

bool pack_is_bad(const struct pack_state *state, uint32_t host)
{
	if (pack_is_over(state, host))
		return true;
	for (uint32_t i = state->first[host]; i != PACK_NOWHERE; i = state->next[i])
		if (pack_conflicts(state, i, host, PACK_NOWHERE))
			return true;
	return false;
}

size_t pack_count_used(const struct pack_state *state)
{
	size_t used = 0;

	for (size_t i = 0; i < state->problem->n_hosts; i++)
		used += state->loads[i].n || state->problem->hosts[i].keep;
	return used;
}

size_t pack_count_moves(const struct pack_state *state)
{
	size_t moves = 0;

	for (size_t i = 0; i < state->problem->n_guests; i++)
		moves += state->host_of[i] != state->problem->guests[i].host;
	return moves;
}

/* --- the state --- */

static void guest_groups_init(struct pack_state *state)
{
	const struct wss_pack_problem *problem = state->problem;
	size_t total = 0;

	for (size_t i = 0; i < problem->n_aparts; i++)
		for (size_t j = 0; j < problem->aparts[i].n; j++, total++)
			state->groups_at[problem->aparts[i].guests[j] + 1]++;
	for (size_t i = 0; i < problem->n_guests; i++)
		state->groups_at[i + 1] += state->groups_at[i];
	state->groups = wss_xcalloc(total, sizeof(*state->groups));
	/* Each start moves to the end of its part, which is where the next part starts. */
	for (size_t i = 0; i < problem->n_aparts; i++)
		for (size_t j = 0; j < problem->aparts[i].n; j++)
			state->groups[state->groups_at[problem->aparts[i].guests[j]]++] =
				(uint32_t)i;
	memmove(state->groups_at + 1, state->groups_at,
		problem->n_guests * sizeof(*state->groups_at));
	state->groups_at[0] = 0;
}

static void guest_figures_init(struct pack_state *state)
{
	for (size_t i = 0; i < state->problem->n_guests; i++) {
		const float *need = state->problem->guests[i].need_mib;
		double sum = 0;

		for (int j = 0; j < WSS_PACK_HOURS; j++)
			sum += (double)need[j];
		state->mean_mib[i] = (float)(sum / WSS_PACK_HOURS);
		state->worst[i] = worst_hour(need);
	}
}

void pack_state_init(struct pack_state *state, const struct wss_pack_problem *problem)
{
	size_t n = problem->n_guests;

	*state = (struct pack_state){
		.problem = problem,
		.host_of = wss_xcalloc(n, sizeof(*state->host_of)),
		.loads = wss_xcalloc(problem->n_hosts, sizeof(*state->loads)),
		.next = wss_xcalloc(n, sizeof(*state->next)),
		.previous = wss_xcalloc(n, sizeof(*state->previous)),
		.first = wss_xcalloc(problem->n_hosts, sizeof(*state->first)),
		.worst = wss_xcalloc(n, sizeof(*state->worst)),
		.mean_mib = wss_xcalloc(n, sizeof(*state->mean_mib)),
		.groups_at = wss_xcalloc(n + 1, sizeof(*state->groups_at)),
	};
	guest_groups_init(state);
	guest_figures_init(state);
	for (size_t i = 0; i < problem->n_hosts; i++) {
		state->first[i] = PACK_NOWHERE;
		state->loads[i].open = !problem->hosts[i].closed;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (problem->guests[i].off)
			state->host_of[i] = problem->guests[i].host;
		else
			pack_put(state, i, problem->guests[i].host);
	}
}

void pack_state_release(struct pack_state *state)
{
	free(state->host_of);
	free(state->loads);
	free(state->next);
	free(state->previous);
	free(state->first);
	free(state->worst);
	free(state->mean_mib);
	free(state->groups_at);
	free(state->groups);
	*state = (struct pack_state){.problem = NULL};
}
