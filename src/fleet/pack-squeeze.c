/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: guests that fit nowhere are put where they exceed the limit least. Then
 * guests move and change places between two hosts at a time, as long as that reduces the
 * squares of what the hosts have above their limits, until nothing is above any more. Hosts
 * whose hours complement each other find each other this way, which best fit alone does not
 * see.
 */
#include "base/stop.h"
#include "fleet/pack-private.h"

/* Smallest gain that counts, MiB squared: sums of squares in float are not exact. */
#define GAIN_MIN 1.0f

/* Returns the sum of squares above the limits, of the load with and without these guests, or PACK_NOWHERE. */
static float excess(const struct pack_state *state, uint32_t host, uint32_t comes, uint32_t leaves)
{
	const struct wss_pack_guest *guests = state->problem->guests;
	const float *more = comes == PACK_NOWHERE ? NULL : guests[comes].need_mib;
	const float *less = leaves == PACK_NOWHERE ? NULL : guests[leaves].need_mib;
	float sums = (float)pack_sums_excess(state, host, more ? guests[comes].sum_bytes : NULL,
					     less ? guests[leaves].sum_bytes : NULL);
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
	return sum[0] + sum[1] + sum[2] + sum[3] + sums * sums;
}

/* Puts a guest where it adds least; false: it has to be kept apart from guests on every host.
 */
static bool put_anyhow(struct pack_state *state, uint32_t guest)
{
	uint32_t best = PACK_NOWHERE;
	float least = 0;

	for (uint32_t host = 0; host < state->problem->n_hosts; host++) {
		float adds;

		if (!state->loads[host].open || pack_conflicts(state, guest, host, PACK_NOWHERE))
			continue;
		adds = excess(state, host, guest, PACK_NOWHERE) -
		       excess(state, host, PACK_NOWHERE, PACK_NOWHERE);
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

static void exchange_consider(struct pack_state *state, uint32_t from, uint32_t to, uint32_t out,
			      uint32_t in, struct exchange *best)
{
	float after;

	if (state->work)
		state->work--;
	after = excess(state, from, in, out);
	if (after >= best->after)
		return;
	after += excess(state, to, out, in);
	if (after >= best->after || (out != PACK_NOWHERE && pack_conflicts(state, out, to, in)) ||
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
	float before = excess(state, from, PACK_NOWHERE, PACK_NOWHERE) +
		       excess(state, to, PACK_NOWHERE, PACK_NOWHERE);
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

	for (uint32_t i = 1; i < n && state->work && pack_is_over(state, host); i++) {
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
			if (!state->loads[i].open || !pack_is_over(state, i))
				continue;
			helped |= host_squeeze(state, i);
			over |= pack_is_over(state, i);
		}
		/* An exchange may have put one above its limit that was looked at before. */
		for (uint32_t i = 0; i < state->problem->n_hosts && !over; i++)
			over = state->loads[i].open && pack_is_over(state, i);
	}
	return !over;
}
