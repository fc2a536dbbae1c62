/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "fleet/pack-private.h"

struct bounded_host {
	bool stays; /* it cannot be emptied */
	double mib; /* what it may hold in the hours that are looked at, together */
};

static int falling(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

static int hosts_falling(const void *a, const void *b)
{
	const struct bounded_host *left = a, *right = b;

	if (left->stays != right->stays)
		return left->stays ? -1 : 1;
	return falling(&left->mib, &right->mib);
}

/* hours: 0 fills in how large this sum of a host may be. */
static void bounded_hosts_fill(const struct wss_pack_problem *problem, unsigned hours,
			       enum wss_pack_sum sum, struct bounded_host *list)
{
	unsigned over = problem->over_hours < hours ? problem->over_hours : hours;

	for (size_t i = 0; i < problem->n_hosts; i++)
		list[i] = (struct bounded_host){
			problem->hosts[i].keep,
			hours ? (double)problem->hosts[i].limit_mib * (hours - over) +
					(double)problem->hosts[i].memory_mib * over
			      : (double)problem->hosts[i].most_bytes[sum] / WSS_MIB};
	for (size_t i = 0; i < problem->n_guests; i++)
		if (problem->guests[i].pinned && !problem->guests[i].off)
			list[problem->guests[i].host].stays = true;
	qsort(list, problem->n_hosts, sizeof(*list), hosts_falling);
}

/* How many hosts hold that much in the hours of the largest total need, or without hours in this sum. */
static size_t bound_of_hours(const struct wss_pack_problem *problem, unsigned hours,
			     enum wss_pack_sum sum, double need_mib, struct bounded_host *list)
{
	double holds = 0;
	size_t n = 0;

	bounded_hosts_fill(problem, hours, sum, list);
	while (n < problem->n_hosts && (list[n].stays || holds < need_mib))
		holds += list[n++].mib;
	return n;
}

size_t wss_pack_bound(const struct wss_pack_problem *problem)
{
	wss_auto_free struct bounded_host *list = wss_xcalloc(problem->n_hosts, sizeof(*list));
	double totals[WSS_PACK_HOURS] = {0}, sum = 0;
	size_t bound = 0;

	for (int i = 0; i < WSS_PACK_SUMS; i++) {
		size_t n;

		sum = 0;
		for (size_t j = 0; j < problem->n_guests; j++)
			sum += (double)problem->guests[j].sum_bytes[i] / WSS_MIB;
		n = bound_of_hours(problem, 0, (enum wss_pack_sum)i, sum, list);
		if (n > bound)
			bound = n;
	}
	sum = 0;
	for (size_t i = 0; i < problem->n_guests; i++)
		for (int j = 0; j < WSS_PACK_HOURS; j++)
			totals[j] += (double)problem->guests[i].need_mib[j];
	qsort(totals, WSS_PACK_HOURS, sizeof(totals[0]), falling);
	/*
	 * The worst hour alone, then the worst two together, and so on: with more hours, those
	 * that may be over the limit count less. Where none may be, the worst alone gives the
	 * most.
	 */
	for (unsigned hours = 1; hours <= WSS_PACK_HOURS; hours++) {
		size_t n;

		sum += totals[hours - 1];
		n = bound_of_hours(problem, hours, WSS_PACK_SIZE, sum, list);
		if (n > bound)
			bound = n;
		if (!problem->over_hours)
			break;
	}
	return bound;
}
