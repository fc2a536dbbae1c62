/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Says why hosts stay over their limits. */
#include "fleet/pack-private.h"

/* Whether a guest needs memory in an hour in which its host is over the limit, or is part of a sum that is too
 * large, or must be apart from another. */
static bool guest_burdens(const struct pack_state *state, uint32_t guest, uint32_t host)
{
	const float *need = state->problem->guests[guest].need_mib;
	float limit = state->problem->hosts[host].limit_mib;

	for (int i = 0; i < WSS_PACK_HOURS; i++)
		if (state->loads[host].mib[i] > limit && need[i] > 0)
			return true;
	for (int i = 0; i < WSS_PACK_SUMS; i++)
		if (state->loads[host].sum_bytes[i] > state->problem->hosts[host].most_bytes[i] &&
		    state->problem->guests[guest].sum_bytes[i])
			return true;
	return pack_conflicts(state, guest, host, PACK_NOWHERE);
}

static bool host_takes_guests(const struct pack_state *state, uint32_t host)
{
	return !state->problem->hosts[host].closed && !pack_is_bad(state, host);
}

static bool other_takes_guests(const struct pack_state *state, uint32_t except)
{
	for (uint32_t host = 0; host < state->problem->n_hosts; host++)
		if (host != except && host_takes_guests(state, host))
			return true;
	return false;
}

static bool guest_fits_elsewhere(const struct pack_state *state, uint32_t guest, uint32_t except)
{
	for (uint32_t host = 0; host < state->problem->n_hosts; host++)
		if (host != except && pack_fits(state, guest, host) &&
		    host_takes_guests(state, host))
			return true;
	return false;
}

enum wss_pack_stay pack_why_bad(const struct pack_state *state, uint32_t host,
				const uint32_t *left_out, size_t n_left_out)
{
	bool may_leave = false, fits = false;

	for (uint32_t i = state->first[host]; i != PACK_NOWHERE && !fits; i = state->next[i]) {
		if (state->problem->guests[i].pinned || !guest_burdens(state, i, host))
			continue;
		may_leave = true;
		fits = guest_fits_elsewhere(state, i, host);
	}
	if (!may_leave)
		return WSS_PACK_STAY_PINNED;
	if (!other_takes_guests(state, host))
		return WSS_PACK_STAY_NO_HOST;
	for (size_t i = 0; i < n_left_out; i++)
		if (state->host_of[left_out[i]] == host)
			return WSS_PACK_STAY_LEFT_OUT;
	return fits && state->problem->max_moves != SIZE_MAX ? WSS_PACK_STAY_MAX_MOVES
							     : WSS_PACK_STAY_NO_ROOM;
}
