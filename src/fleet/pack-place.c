/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds places for guests: best fit over all hours, largest guests first. */
#include "fleet/pack-private.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "base/units.h"

/*
 * Returns the squares of the room that the guest leaves on the host, as shares of its limits: those of all
 * hours, and that of its size for as many.
 */
static float room_left(const struct pack_state *state, uint32_t guest, uint32_t host)
{
	const float limit = state->problem->hosts[host].limit_mib;
	const pack_four limits = {limit, limit, limit, limit};
	const float *need = state->problem->guests[guest].need_mib;
	const float *load = state->loads[host].mib;
	double most = (double)state->problem->hosts[host].most_bytes[WSS_PACK_SIZE];
	double size = (double)state->loads[host].sum_bytes[WSS_PACK_SIZE] +
		      (double)state->problem->guests[guest].sum_bytes[WSS_PACK_SIZE];
	float spare = most > 0 ? (float)(1 - size / most) : 0;
	pack_four sum = {0};

	for (int i = 0; i < PACK_FOURS; i++) {
		pack_four room = limits - pack_four_of(load, i) - pack_four_of(need, i);

		sum += room * room;
	}
	return (sum[0] + sum[1] + sum[2] + sum[3]) / limit / limit + WSS_PACK_HOURS * spare * spare;
}

bool pack_place(struct pack_state *state, uint32_t guest, uint32_t except)
{
	uint32_t best = PACK_NOWHERE;
	float least = 0;

	for (uint32_t host = 0; host < state->problem->n_hosts; host++) {
		float room;

		if (!state->loads[host].open || host == except || !pack_fits(state, guest, host))
			continue;
		room = room_left(state, guest, host);
		if (best == PACK_NOWHERE || room < least) {
			best = host;
			least = room;
		}
	}
	if (best == PACK_NOWHERE)
		return false;
	pack_put(state, guest, best);
	return true;
}

/* --- all of them --- */

struct sized {
	float size;
	uint32_t guest;
};

static int sized_compare(const void *a, const void *b)
{
	const struct sized *left = a, *right = b;

	if (left->size != right->size)
		return left->size < right->size ? 1 : -1;
	return left->guest < right->guest ? -1 : 1;
}

/* Sorts the guests by size. */
static void guests_sort(const struct pack_state *state, uint32_t *guests, size_t n)
{
	struct sized *list = wss_xcalloc(n, sizeof(*list));

	for (size_t i = 0; i < n; i++) {
		const struct wss_pack_guest *guest = &state->problem->guests[guests[i]];

		list[i] = (struct sized){state->mean_mib[guests[i]] +
						 guest->need_mib[state->worst[guests[i]]] +
						 (float)(guest->sum_bytes[WSS_PACK_SIZE] / WSS_MIB),
					 guests[i]};
	}
	qsort(list, n, sizeof(*list), sized_compare);
	for (size_t i = 0; i < n; i++)
		guests[i] = list[i].guest;
	free(list);
}

size_t pack_place_all(struct pack_state *state, uint32_t *guests, size_t n)
{
	size_t left = 0;

	guests_sort(state, guests, n);
	for (size_t i = 0; i < n; i++)
		if (wss_stop_requested() || !pack_place(state, guests[i], PACK_NOWHERE))
			guests[left++] = guests[i];
	return left;
}
