/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation: hosts that are bad, that is over their limits or with guests to be kept apart,
 * are repaired with few moves. If the move of one guest repairs a host, the cheapest such guest moves. If none
 * does, the guest that relieves the host most moves first, and so on. Then each guest that has
 * moved comes back for a moment, because others may repair the host without it, or a cheaper one in its place.
 *
 * Each host is repaired on trial first. Those that need the fewest moves then come first, so that a
 * limited number of moves repairs as many hosts as possible. Earlier hosts take room from later ones: a host that then
 * needs more moves than on trial goes back into the queue, one that cannot be repaired any more waits for the end.
 * Moves that are left then relieve these hosts as far as possible.
 */
#include "fleet/pack-private.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/stop.h"

/* With more moves off one host, none of them is tried again. */
#define RETRIED_MAX 16

/* A guest that may leave its host, and what that does to the host. */
struct leaver {
	uint32_t guest;
	bool repairs;	   /* alone */
	bool parts;	   /* leaves a guest from which it must be apart */
	double relief_mib; /* by which the host is less over its limit, summed over the hours */
	uint64_t copy_bytes;
};

/* A bad host in the queue, with what repairs it. */
struct bad_host {
	uint32_t host;
	bool repairable;
	size_t moves;
	uint64_t copy_bytes;
};

struct repairing {
	struct pack_state *state;
	struct leaver *leavers; /* of the current host, as the next one and n_moved */
	uint32_t *moved;
	size_t n_moved;
	bool *stuck; /* guests that fit on no other host */
	struct bad_host *bad;
	size_t n_bad;
};

/* --- which guests may leave a host --- */

/* Returns by how much a host is over its limits, summed over the hours; its sums are so in all of them. */
static double host_excess(const struct pack_state *state, uint32_t host)
{
	const struct pack_load *load = &state->loads[host];
	float limit = state->problem->hosts[host].limit_mib;
	double excess = WSS_PACK_HOURS * pack_sums_excess(state, host, NULL, NULL);

	if (load->mib[load->worst] <= limit)
		return excess;
	for (int i = 0; i < WSS_PACK_HOURS; i++)
		if (load->mib[i] > limit)
			excess += (double)(load->mib[i] - limit);
	return excess;
}

static int leavers_compare(const void *a, const void *b)
{
	const struct leaver *left = a, *right = b;

	if (left->repairs != right->repairs)
		return left->repairs ? -1 : 1;
	if (!left->repairs && left->parts != right->parts)
		return left->parts ? -1 : 1;
	if (!left->repairs && left->relief_mib > right->relief_mib)
		return -1;
	if (!left->repairs && left->relief_mib < right->relief_mib)
		return 1;
	if (left->copy_bytes != right->copy_bytes)
		return left->copy_bytes < right->copy_bytes ? -1 : 1;
	return left->guest < right->guest ? -1 : 1;
}

/* Finds what the absence of a guest does to its host. */
static struct leaver leaver_weigh(struct pack_state *state, uint32_t guest, uint32_t host,
				  double excess)
{
	struct leaver leaver = {.guest = guest,
				.parts = pack_conflicts(state, guest, host, PACK_NOWHERE),
				.copy_bytes = state->problem->guests[guest].copy_bytes};

	pack_take(state, guest);
	leaver.relief_mib = excess - host_excess(state, host);
	leaver.repairs = !pack_is_bad(state, host);
	pack_put(state, guest, host);
	return leaver;
}

/* Lists the guests whose moves help a bad host, the best first; returns their number. */
static size_t leavers_list(struct repairing *run, uint32_t host)
{
	struct pack_state *state = run->state;
	double excess = host_excess(state, host);
	size_t n = 0;
	uint32_t next;

	for (uint32_t i = state->first[host]; i != PACK_NOWHERE; i = next) {
		next = state->next[i];
		if (state->problem->guests[i].pinned || run->stuck[i])
			continue;
		run->leavers[n] = leaver_weigh(state, i, host, excess);
		n += run->leavers[n].parts || run->leavers[n].relief_mib > 0;
	}
	qsort(run->leavers, n, sizeof(*run->leavers), leavers_compare);
	return n;
}

/*
 * Returns how many of the leavers may go before they are weighed again: half of the moves that the host
 * needs at least, because none relieves it more than the first one does.
 */
static size_t leavers_batch(const struct pack_state *state, uint32_t host,
			    const struct leaver *first)
{
	const struct pack_load *load = &state->loads[host];
	double worst =
		fmax(0, (double)(load->mib[load->worst] - state->problem->hosts[host].limit_mib));
	double excess = host_excess(state, host) - state->problem->over_hours * worst;

	if (first->repairs || first->parts || excess < 4 * first->relief_mib)
		return 1;
	return (size_t)(excess / first->relief_mib / 2);
}

/* --- a host --- */

static bool leaver_move(struct repairing *run, uint32_t guest, uint32_t host)
{
	pack_take(run->state, guest);
	if (pack_place(run->state, guest, host))
		return true;
	pack_put(run->state, guest, host);
	run->stuck[guest] = true;
	return false;
}

static void guest_return(struct pack_state *state, uint32_t guest, uint32_t host)
{
	pack_take(state, guest);
	pack_put(state, guest, host);
}

/* Moves guests off a host until it is not bad, nothing more helps, or it is `most` guests. */
static void host_relieve(struct repairing *run, uint32_t host, size_t most)
{
	bool any = true;

	run->n_moved = 0;
	for (uint32_t i = run->state->first[host]; i != PACK_NOWHERE; i = run->state->next[i])
		run->stuck[i] = false;
	while (any && run->n_moved < most && !wss_stop_requested() &&
	       pack_is_bad(run->state, host)) {
		size_t n = leavers_list(run, host),
		       left = n ? leavers_batch(run->state, host, run->leavers) : 0;

		any = false;
		for (size_t i = 0; i < n && left && run->n_moved < most; i++) {
			if (!leaver_move(run, run->leavers[i].guest, host))
				continue;
			run->moved[run->n_moved++] = run->leavers[i].guest;
			any = true;
			left--;
		}
	}
}

/* Moves the cheapest guest that repairs a host alone and costs less than this; PACK_NOWHERE: there is none. */
static uint32_t cheaper_move(struct repairing *run, uint32_t host, uint64_t copy_bytes)
{
	size_t n = leavers_list(run, host);

	for (size_t i = 0;
	     i < n && run->leavers[i].repairs && run->leavers[i].copy_bytes < copy_bytes; i++)
		if (leaver_move(run, run->leavers[i].guest, host))
			return run->leavers[i].guest;
	return PACK_NOWHERE;
}

/* Saves moves off a host that is repaired now, or replaces them by cheaper ones. */
static void host_refine(struct repairing *run, uint32_t host)
{
	struct pack_state *state = run->state;
	size_t kept = 0;

	if (run->n_moved > RETRIED_MAX)
		return;
	for (size_t i = 0; i < run->n_moved; i++) {
		uint32_t guest = run->moved[i], to = state->host_of[guest], other;

		guest_return(state, guest, host);
		if (!pack_is_bad(state, host))
			continue;
		other = cheaper_move(run, host, state->problem->guests[guest].copy_bytes);
		if (other == PACK_NOWHERE) {
			guest_return(state, guest, to);
			other = guest;
		}
		run->moved[kept++] = other;
	}
	run->n_moved = kept;
}

/* Tries to repair a host with at most that many moves, and says what that took. */
static struct bad_host host_repair(struct repairing *run, uint32_t host, size_t most)
{
	struct bad_host bad = {.host = host};

	host_relieve(run, host, most);
	bad.repairable = !pack_is_bad(run->state, host);
	if (bad.repairable)
		host_refine(run, host);
	bad.moves = run->n_moved;
	for (size_t i = 0; i < run->n_moved; i++)
		bad.copy_bytes += run->state->problem->guests[run->moved[i]].copy_bytes;
	return bad;
}

static void host_restore(struct repairing *run, uint32_t host)
{
	for (size_t i = 0; i < run->n_moved; i++)
		guest_return(run->state, run->moved[i], host);
}

/* --- the queue --- */

static int bad_hosts_compare(const void *a, const void *b)
{
	const struct bad_host *left = a, *right = b;

	if (left->repairable != right->repairable)
		return left->repairable ? -1 : 1;
	if (left->moves != right->moves)
		return left->moves < right->moves ? -1 : 1;
	if (left->copy_bytes != right->copy_bytes)
		return left->copy_bytes < right->copy_bytes ? -1 : 1;
	return left->host < right->host ? -1 : left->host > right->host;
}

/* Lists all bad hosts, closes them, and repairs each on trial. */
static void bad_hosts_list(struct repairing *run)
{
	struct pack_state *state = run->state;

	for (uint32_t i = 0; i < state->problem->n_hosts; i++)
		if (pack_is_bad(state, i)) {
			state->loads[i].open = false;
			run->bad[run->n_bad++].host = i;
		}
	for (size_t i = 0; i < run->n_bad; i++) {
		run->bad[i] = host_repair(run, run->bad[i].host, SIZE_MAX);
		host_restore(run, run->bad[i].host);
	}
	qsort(run->bad, run->n_bad, sizeof(*run->bad), bad_hosts_compare);
}

/* Puts a bad host behind those that come before it now; `at` is its place. */
static void bad_host_requeue(struct repairing *run, size_t at, struct bad_host bad)
{
	for (; at + 1 < run->n_bad && bad_hosts_compare(&run->bad[at + 1], &bad) < 0; at++)
		run->bad[at] = run->bad[at + 1];
	run->bad[at] = bad;
}

/* Repairs what can be repaired, with at most that many moves; returns how many are left. */
static size_t bad_hosts_repair(struct repairing *run, size_t left)
{
	struct pack_state *state = run->state;
	size_t i = 0;

	while (i < run->n_bad && run->bad[i].repairable && !wss_stop_requested()) {
		uint32_t host = run->bad[i].host;
		struct bad_host now = host_repair(run, host, left);

		if (now.repairable && now.moves <= run->bad[i].moves) {
			state->loads[host].open = !state->problem->hosts[host].closed;
			left -= now.moves;
			i++;
			continue;
		}
		host_restore(run, host);
		bad_host_requeue(run, i, now);
	}
	return left;
}

/* Relieves those that are still bad with the moves that are left. */
static void bad_hosts_relieve(struct repairing *run, size_t left)
{
	struct pack_state *state = run->state;

	for (size_t i = 0; i < run->n_bad && left; i++) {
		uint32_t host = run->bad[i].host;

		if (run->bad[i].repairable)
			continue;
		left -= host_repair(run, host, left).moves;
		state->loads[host].open =
			!state->problem->hosts[host].closed && !pack_is_bad(state, host);
	}
}

size_t pack_repair(struct pack_state *state)
{
	const struct wss_pack_problem *problem = state->problem;
	wss_auto_free struct leaver *leavers = wss_xcalloc(problem->n_guests, sizeof(*leavers));
	wss_auto_free uint32_t *moved = wss_xcalloc(problem->n_guests, sizeof(*moved));
	wss_auto_free bool *stuck = wss_xcalloc(problem->n_guests, sizeof(*stuck));
	wss_auto_free struct bad_host *bad = wss_xcalloc(problem->n_hosts, sizeof(*bad));
	struct repairing run = {state, leavers, moved, 0, stuck, bad, 0};

	bad_hosts_list(&run);
	bad_hosts_relieve(&run, bad_hosts_repair(&run, problem->max_moves));
	return run.n_bad;
}
