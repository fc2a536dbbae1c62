/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: the steps of the plan have room if all guests that may shrink have done so. Here they are carried
 * out with guests that have not: whenever a host has no room for the guest that comes, the one that gives most
 * shrinks, of those that are on the host by then and the one that comes. All shrinks are made before the first step, which only
 * leaves earlier steps more room.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "fleet/plan.h"

#define NO_GUEST UINT32_MAX

/* A guest that may shrink, and by how much. */
struct candidate {
	uint64_t bytes;
	uint32_t guest;
};

struct shrinking {
	struct wss_plan *plan;
	struct candidate *candidates; /* the largest first */
	size_t n;
	uint64_t (*sums)[WSS_PACK_SUMS]; /* of each host, at the current step */
	uint32_t *where;		 /* the host of each guest by then */
};

static int candidates_compare(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return left->guest < right->guest ? -1 : 1;
}

static void shrinking_fill(struct shrinking *run)
{
	const struct wss_plan *plan = run->plan;

	for (uint32_t i = 0; i < plan->fleet.n_guests; i++) {
		const struct wss_pack_guest *guest = &plan->pack_guests[i];

		run->where[i] = guest->host;
		for (int sum = 0; sum < WSS_PACK_SUMS; sum++)
			run->sums[guest->host][sum] += guest->sum_bytes[sum];
		if (plan->guests[i].least_bytes.known)
			run->candidates[run->n++] = (struct candidate){
				guest->sum_bytes[WSS_PACK_SIZE] - plan->guests[i].least_bytes.value,
				i};
	}
	qsort(run->candidates, run->n, sizeof(*run->candidates), candidates_compare);
}

/* Shrinks a guest; returns whether that makes this sum smaller. Otherwise the guest stays as it is. */
static bool guest_shrink(struct shrinking *run, uint32_t guest, enum wss_pack_sum sum)
{
	struct wss_plan *plan = run->plan;
	struct wss_plan_guest *planned = &plan->guests[guest];
	struct wss_pack_guest *pack = &plan->pack_guests[guest];
	uint64_t *sums = run->sums[run->where[guest]];
	struct wss_pack_guest before = *pack;

	planned->shrink_to_bytes = planned->least_bytes;
	wss_plan_guest_count(plan, guest);
	if (pack->sum_bytes[sum] == before.sum_bytes[sum]) {
		planned->shrink_to_bytes.known = false;
		*pack = before;
		return false;
	}
	for (int i = 0; i < WSS_PACK_SUMS; i++)
		sums[i] -= before.sum_bytes[i] - pack->sum_bytes[i];
	pack->copy_bytes = wss_u64_min(pack->copy_bytes, planned->shrink_to_bytes.value);
	plan->n_shrinks++;
	plan->shrink_bytes += before.sum_bytes[WSS_PACK_HELD] - pack->sum_bytes[WSS_PACK_HELD];
	return true;
}

/* Shrinks the guest that gives most of a host, or the one that comes to it; false: none makes the sum smaller. */
static bool host_shrink_one(struct shrinking *run, uint32_t host, uint32_t comes,
			    enum wss_pack_sum sum)
{
	for (size_t i = 0; i < run->n; i++) {
		uint32_t guest = run->candidates[i].guest;

		if ((run->where[guest] == host || guest == comes) &&
		    !run->plan->guests[guest].shrink_to_bytes.known &&
		    guest_shrink(run, guest, sum))
			return true;
	}
	return false;
}

/* Shrinks guests until a sum of a host is no larger than most, together with a guest that comes. */
static void host_fit(struct shrinking *run, uint32_t host, uint32_t comes, enum wss_pack_sum sum,
		     uint64_t most)
{
	const struct wss_pack_guest *guests = run->plan->pack_guests;

	while (run->sums[host][sum] + (comes == NO_GUEST ? 0 : guests[comes].sum_bytes[sum]) >
		       most &&
	       host_shrink_one(run, host, comes, sum))
		;
}

static void steps_fit(struct shrinking *run)
{
	const struct wss_plan *plan = run->plan;

	for (size_t i = 0; i < plan->solved.n_steps; i++) {
		const struct wss_pack_step *step = &plan->solved.steps[i];

		for (int sum = 0; sum < WSS_PACK_SUMS; sum++)
			host_fit(run, step->to, step->guest, (enum wss_pack_sum)sum,
				 plan->pack_hosts[step->to].most_bytes[sum]);
		for (int sum = 0; sum < WSS_PACK_SUMS; sum++) {
			run->sums[step->from][sum] -= plan->pack_guests[step->guest].sum_bytes[sum];
			run->sums[step->to][sum] += plan->pack_guests[step->guest].sum_bytes[sum];
		}
		run->where[step->guest] = step->to;
	}
}

void wss_plan_shrinks_find(struct wss_plan *plan)
{
	wss_auto_free struct candidate *candidates =
		wss_xcalloc(plan->fleet.n_guests, sizeof(*candidates));
	wss_auto_free uint64_t(*sums)[WSS_PACK_SUMS] =
		wss_xcalloc(plan->fleet.n_hosts, sizeof(*sums));
	wss_auto_free uint32_t *where = wss_xcalloc(plan->fleet.n_guests, sizeof(*where));
	struct shrinking run = {plan, candidates, 0, sums, where};

	shrinking_fill(&run);
	steps_fit(&run);
	for (uint32_t host = 0; host < plan->fleet.n_hosts; host++) {
		host_fit(&run, host, NO_GUEST, WSS_PACK_SIZE, plan->hosts[host].size_limit_bytes);
		/* In the end resident memory, too, stays within the limit for needs. */
		host_fit(&run, host, NO_GUEST, WSS_PACK_HELD, plan->hosts[host].limit_bytes);
	}
	plan->solved.copy_bytes = 0;
	for (size_t i = 0; i < plan->solved.n_steps; i++)
		plan->solved.copy_bytes +=
			plan->pack_guests[plan->solved.steps[i].guest].copy_bytes;
}
