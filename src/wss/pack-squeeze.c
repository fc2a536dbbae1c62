/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: guests that fit nowhere are put where they exceed the limit least. Then
 * guests move and change places between two hosts at a time, as long as that reduces the
 * squares of what the hosts have above their limits, until nothing is above any more. Hosts
 * whose hours complement each other find each other this way, which best fit alone does not
 * see.
 */
#include "base/stop.h"
#include "wss/pack-private.h"

/* Smallest gain that counts, MiB squared: sums of squares in float are not exact. */
#define GAIN_MIN 1.0f

/* Returns the sum of squares above the limit, of the load with and without these needs (NULL:
 * none). */
static float excess(const struct pack_state *state, uint32_t host, const float *more,
		    const float *less)
{
	const float limit = state->problem->hosts[host].limit_mib;
	const pack_four limits = {limit, limit, limit, limit};
	const float *load = state->loads[host].mib;
	pack_four sum = {0};

	for (int i = 0; i < PACK_FOURS; i++) {
		pack_four above = pack_four_of(load, i) - limits;

		if (more)
			above += pack_four_of(more, i);
		if (less)
			above -= pack_four_of(less, i);
		above = (pack_four)((pack_mask)above & (above > 0));
		sum += above * above;
	}
	return sum[0] + sum[1] + sum[2] + sum[3];
}

static const float *need_of(const struct pack_state *state, uint32_t guest)
{
	return guest == PACK_NOWHERE ? NULL : state->problem->guests[guest].need_mib;
}

static bool host_is_over(const struct pack_state *state, uint32_t host)
{
	return state->loads[host].over > state->problem->over_hours ||
	       state->loads[host].mib[state->loads[host].worst] >
		       state->problem->hosts[host].memory_mib;
}

/* Puts a guest where it adds least; false: it has to be kept apart from guests on every host.
 */
static bool put_anyhow(struct pack_state *state, uint32_t guest)
{
	uint32_t best = PACK_NOWHERE;
	float least = 0;

	for (uint32_t host = 0; host < state->problem->n_hosts; host++) {
		float adds;

		if (!state->loads[host].open ||
		    pack_conflicts(state, guest, host, PACK_NOWHERE))
			continue;
		adds = excess(state, host, need_of(state, guest), NULL) -
		       excess(state, host, NULL, NULL);
		if (best == PACK_NOWHERE || adds < least) {
			best = host;
			least = adds;
		}
	}
	if (best == PACK_NOWHERE)
		return false;
	pack_put(state, guest, best);
	return true;
}

/* An exchange of guests between two hosts; PACK_NOWHERE: one of them gets none. */
struct exchange {
	uint32_t out, in;
	float after; /* excess of both hosts */
};

static void exchange_consider(struct pack_state *state, uint32_t from, uint32_t to,
			      uint32_t out, uint32_t in, struct exchange *best)
{
	const float *leaves = need_of(state, out), *comes = need_of(state, in);
	float after;

	if (state->work)
		state->work--;
	after = excess(state, from, comes, leaves);
	if (after >= best->after)
		return;
	after += excess(state, to, leaves, comes);
	if (after >= best->after ||
	    (out != PACK_NOWHERE && pack_conflicts(state, out, to, in)) ||
	    (in != PACK_NOWHERE && pack_conflicts(state, in, from, out)))
		return;
	*best = (struct exchange){out, in, after};
}

static void exchange_do(struct pack_state *state, uint32_t from, uint32_t to,
			const struct exchange *exchange)
{
	if (exchange->out != PACK_NOWHERE)
		pack_take(state, exchange->out);
	if (exchange->in != PACK_NOWHERE) {
		pack_take(state, exchange->in);
		pack_put(state, exchange->in, from);
	}
	if (exchange->out != PACK_NOWHERE)
		pack_put(state, exchange->out, to);
}

/* Does the best exchange between a host that is over its limit and another one; false: none
 * helps. */
static bool hosts_exchange(struct pack_state *state, uint32_t from, uint32_t to)
{
	const struct wss_pack_guest *guests = state->problem->guests;
	float before = excess(state, from, NULL, NULL) + excess(state, to, NULL, NULL);
	struct exchange best = {PACK_NOWHERE, PACK_NOWHERE, before - GAIN_MIN};

	for (uint32_t out = state->first[from]; out != PACK_NOWHERE; out = state->next[out]) {
		if (guests[out].pinned)
			continue;
		exchange_consider(state, from, to, out, PACK_NOWHERE, &best);
		for (uint32_t in = state->first[to]; in != PACK_NOWHERE; in = state->next[in])
			if (!guests[in].pinned)
				exchange_consider(state, from, to, out, in, &best);
	}
	if (best.out == PACK_NOWHERE)
		return false;
	exchange_do(state, from, to, &best);
	return true;
}

/* Exchanges guests of a host with all others; whether that helped. */
static bool host_squeeze(struct pack_state *state, uint32_t host)
{
	uint32_t n = (uint32_t)state->problem->n_hosts;
	bool helped = false;

	for (uint32_t i = 1; i < n && state->work && host_is_over(state, host); i++) {
		uint32_t other = (host + i) % n;

		if (state->loads[other].open)
			helped |= hosts_exchange(state, host, other);
	}
	return helped;
}

bool pack_squeeze(struct pack_state *state, const uint32_t *guests, size_t n)
{
	bool over = true, helped = true;

	for (size_t i = 0; i < n; i++)
		if (wss_stop_requested() || !put_anyhow(state, guests[i]))
			return false;
	while (over && helped && state->work && !wss_stop_requested()) {
		over = helped = false;
		for (uint32_t i = 0; i < state->problem->n_hosts; i++) {
			if (!state->loads[i].open || !host_is_over(state, i))
				continue;
			helped |= host_squeeze(state, i);
			over |= host_is_over(state, i);
		}
		/* An exchange may have put one above its limit that was looked at before. */
		for (uint32_t i = 0; i < state->problem->n_hosts && !over; i++)
			over = state->loads[i].open && host_is_over(state, i);
	}
	return !over;
}
