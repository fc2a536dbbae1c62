/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "base/units.h"
#include "cmd/plan.h"
#include "wss/room.h"

#define OPTED_OUT "opted out"

/* --- what a guest needs --- */

static bool guest_is_opted_out(const struct wss_estate_guest *guest)
{
	return !strcmp(guest->status, OPTED_OUT);
}

/* Whether its figures rest on enough windows, and it runs; those of list have no status. */
static bool guest_is_sized(const struct wss_estate_guest *guest)
{
	if (!strcmp(guest->state, "paused"))
		return false;
	return !guest->status[0] || !strcmp(guest->status, "ok");
}

static struct wss_amount amount_either(struct wss_amount a, struct wss_amount b)
{
	return a.known ? a : b;
}

static struct wss_amount week_largest(const struct wss_estate_guest *guest)
{
	struct wss_amount largest = {.known = false};

	for (int i = 0; i < WSS_ESTATE_HOURS; i++)
		if (guest->week_bytes[i].known &&
		    (!largest.known || guest->week_bytes[i].value > largest.value))
			largest = guest->week_bytes[i];
	return largest;
}

/* What it needs in hours that are not known, from the best figure to the safest. */
static struct wss_amount guest_flat_need(const struct wss_estate_guest *guest)
{
	if (!guest_is_sized(guest))
		return amount_either(guest->assigned_bytes, guest->held_bytes);
	return amount_either(amount_either(guest->recommended_bytes, guest->peak_bytes),
			     amount_either(guest->assigned_bytes, week_largest(guest)));
}

/* What it needs in an hour: never less than the policy's minimum, nor more than the guest has. */
static uint64_t guest_need_at(const struct wss_estate_guest *guest, struct wss_amount flat,
			      int hour)
{
	const struct wss_room_need need = {flat.value, guest->minimum_bytes, guest->assigned_bytes};
	const struct wss_amount unknown = {.known = false};

	return wss_room_need_in(&need, guest_is_sized(guest) ? guest->week_bytes[hour] : unknown);
}

static int bytes_compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left > *right ? -1 : *left < *right;
}

/* Returns what a guest needs in the worst hour but those in which it may need more. */
static uint64_t guest_steady_need(const struct wss_estate_guest *guest, struct wss_amount flat, unsigned over_hours)
{
	uint64_t needs[WSS_ESTATE_HOURS];

	for (int hour = 0; hour < WSS_ESTATE_HOURS; hour++)
		needs[hour] = guest_need_at(guest, flat, hour);
	qsort(needs, WSS_ESTATE_HOURS, sizeof(needs[0]), bytes_compare);
	return needs[over_hours];
}

static unsigned plan_over_hours(const struct plan_options *options)
{
	return (unsigned)(options->risk * WSS_PACK_HOURS);
}

static uint64_t mib_up(uint64_t bytes)
{
	return bytes / WSS_MIB + (bytes % WSS_MIB != 0);
}

/* A guest that does not run has no QEMU. */
static bool guest_prepare_off(struct plan *plan, size_t i)
{
	struct wss_estate_guest *guest = &plan->fleet.guests[i];

	if (strcmp(guest->state, "shut off") != 0)
		return false;
	guest->assigned_bytes = guest->held_bytes = wss_amount_of(0);
	guest->recommended_bytes.known = false;
	plan->guests[i].off = plan->pack_guests[i].off = plan->pack_guests[i].pinned = true;
	plan->pack_guests[i].host = guest->host;
	plan->n_off++;
	return true;
}

/* Every guest also counts with its share of its host's QEMUs. */
static int guest_prepare(struct plan *plan, size_t i, struct wss_error *err)
{
	const struct wss_estate_guest *guest = &plan->fleet.guests[i];
	const struct wss_estate_host *host = &plan->fleet.hosts[guest->host];
	struct wss_pack_guest *pack = &plan->pack_guests[i];
	struct wss_amount flat = guest_flat_need(guest), copy;
	uint64_t overhead =
		host->overhead_bytes.known ? host->overhead_bytes.value / host->n_guests : 0;

	if (guest_prepare_off(plan, i))
		return 0;
	pack->host = guest->host;
	copy = amount_either(guest->held_bytes, amount_either(guest->assigned_bytes, flat));
	pack->copy_bytes = copy.value;
	if (!flat.known) {
		plan->guests[i].unknown = pack->pinned = true;
		plan->hosts[guest->host].closed = true;
		plan->n_unknown++;
		return 0;
	}
	plan->guests[i].doubtful = guest->is_elsewhere || guest->is_ambiguous || host->is_ambiguous;
	pack->pinned = guest_is_opted_out(guest) || plan->guests[i].doubtful;
	plan->guests[i].steady_bytes = guest_steady_need(guest, flat, plan_over_hours(plan->options));
	for (int hour = 0; hour < WSS_ESTATE_HOURS; hour++) {
		uint64_t need = wss_u64_add(guest_need_at(guest, flat, hour), overhead);

		if (mib_up(need) > (uint64_t)WSS_PACK_MIB_MAX)
			return wss_error_set(err, WSS_ERR_FAILED,
					     "guest %s on host %s: needs %llu bytes, more "
					     "than the 8 TiB that a plan "
					     "can handle",
					     guest->name, host->name,
					     (unsigned long long)need);
		plan->guests[i].peak_bytes = wss_u64_max(plan->guests[i].peak_bytes, need);
		pack->need_mib[hour] = (float)mib_up(need);
	}
	return 0;
}

/* --- hosts --- */

/* Nothing moves to a host of which too little is known, nor off it. */
static void host_leave_alone(struct plan *plan, size_t i)
{
	plan->hosts[i].closed = true;
	for (size_t j = 0; j < plan->fleet.n_guests; j++)
		if (plan->fleet.guests[j].host == i)
			plan->pack_guests[j].pinned = true;
}

static bool plan_knows_memory(const struct plan *plan)
{
	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		if (plan->fleet.hosts[i].memory_bytes.value)
			return true;
	return plan->options->host_memory_bytes.known;
}

static int host_prepare(struct plan *plan, size_t i, struct wss_error *err)
{
	const struct plan_options *options = plan->options;
	struct wss_estate_host *from = &plan->fleet.hosts[i];
	struct plan_host *host = &plan->hosts[i];
	struct wss_amount memory =
		amount_either(from->memory_bytes, options->host_memory_bytes);
	float most = WSS_PACK_MIB_MAX;

	memory.known &= memory.value != 0;
	if (!memory.known && !plan_knows_memory(plan))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "host %s: its memory is unknown: give the output of recommend "
				     "without DOMAIN, --host-memory, or \"memory %s SIZE\" in the "
				     "constraints",
				     from->name, from->name);
	host->name = from->name;
	if (from->is_ambiguous || !memory.known)
		host_leave_alone(plan, i);
	host->memory_bytes = memory.known ? memory.value : 0;
	memory.value = memory.known ? memory.value : WSS_BYTES_MAX;
	host->limit_bytes = wss_u64_from_double((double)memory.value * options->limit);
	plan->pack_hosts[i] = (struct wss_pack_host){
		.limit_mib = (float)wss_u64_min(host->limit_bytes / WSS_MIB, (uint64_t)most),
		.memory_mib = (float)wss_u64_min(memory.value / WSS_MIB, (uint64_t)most),
		.keep = host->keep,
		.closed = host->closed,
	};
	return 0;
}

static int plan_allocate(struct plan *plan, struct wss_error *err)
{
	size_t guests = plan->fleet.n_guests + 1, hosts = plan->fleet.n_hosts + 1;

	plan->guests = calloc(guests, sizeof(*plan->guests));
	plan->hosts = calloc(hosts, sizeof(*plan->hosts));
	plan->pack_guests = calloc(guests, sizeof(*plan->pack_guests));
	plan->pack_hosts = calloc(hosts, sizeof(*plan->pack_hosts));
	if (!plan->guests || !plan->hosts || !plan->pack_guests || !plan->pack_hosts)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return 0;
}

int plan_prepare(struct plan *plan, struct wss_error *err)
{
	const struct plan_options *options = plan->options;

	if (plan_allocate(plan, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->fleet.n_guests; i++)
		if (guest_prepare(plan, i, err) < 0)
			return -1;
	if (options->constraints && plan_constraints_read(plan, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		if (host_prepare(plan, i, err) < 0)
			return -1;
	plan->problem = (struct wss_pack_problem){
		.guests = plan->pack_guests,
		.n_guests = plan->fleet.n_guests,
		.hosts = plan->pack_hosts,
		.n_hosts = plan->fleet.n_hosts,
		.aparts = plan->aparts,
		.n_aparts = plan->n_aparts,
		.over_hours = plan_over_hours(options),
		.max_moves =
			options->max_moves > SIZE_MAX ? SIZE_MAX : (size_t)options->max_moves,
		.goal = options->goal,
	};
	return 0;
}

/* --- the plan --- */

/* Sums up each host's guests, before or after. */
static int loads_fill(struct plan *plan, bool after, struct wss_error *err)
{
	size_t n = plan->fleet.n_hosts;
	wss_auto_free uint64_t *sums = calloc((n + 1) * WSS_PACK_HOURS, sizeof(*sums));

	if (!sums)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < plan->fleet.n_guests; i++) {
		const struct wss_pack_guest *guest = &plan->pack_guests[i];
		size_t host = after ? plan->solved.host_of[i] : guest->host;

		for (int hour = 0; hour < WSS_PACK_HOURS; hour++)
			sums[host * WSS_PACK_HOURS + (size_t)hour] +=
				(uint64_t)guest->need_mib[hour];
		(after ? &plan->hosts[host].after : &plan->hosts[host].before)->guests++;
	}
	for (size_t host = 0; host < n; host++) {
		struct plan_load *load =
			after ? &plan->hosts[host].after : &plan->hosts[host].before;

		for (uint64_t hour = 0; hour < WSS_PACK_HOURS; hour++) {
			uint64_t bytes = sums[host * WSS_PACK_HOURS + hour] * WSS_MIB;

			load->over_hours +=
				bytes / WSS_MIB > (uint64_t)plan->pack_hosts[host].limit_mib;
			if (bytes <= load->peak_bytes)
				continue;
			load->peak_bytes = bytes;
			load->hour = hour;
		}
	}
	return 0;
}

/* A guest that could hand memory back. */
struct giver {
	uint64_t bytes;
	size_t guest;
	uint32_t host;
};

static int givers_compare(const void *a, const void *b)
{
	const struct giver *left = a, *right = b;

	if (left->host != right->host)
		return left->host < right->host ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return left->guest < right->guest ? -1 : 1;
}

static uint64_t guest_held(const struct plan *plan, size_t i)
{
	const struct wss_estate_guest *guest = &plan->fleet.guests[i];

	return amount_either(guest->held_bytes,
			     amount_either(guest->assigned_bytes,
					   wss_amount_of(plan->guests[i].peak_bytes)))
		.value;
}

/* The size to give a guest that shrinks: the recommended one, unless it is planned to need more. */
static uint64_t guest_shrunk(const struct plan *plan, size_t i)
{
	return wss_u64_max(plan->fleet.guests[i].recommended_bytes.value, plan->guests[i].steady_bytes);
}

/* Fills the list with all guests that hold more than that; returns their number. */
static size_t givers_list(struct plan *plan, struct giver *list)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->fleet.n_guests; i++) {
		const struct wss_estate_guest *guest = &plan->fleet.guests[i];
		uint64_t held = guest_held(plan, i), size = guest_shrunk(plan, i);

		if (guest->recommended_bytes.known && guest_is_sized(guest) && held > size)
			list[n++] = (struct giver){held - size, i, plan->solved.host_of[i]};
	}
	qsort(list, n, sizeof(*list), givers_compare);
	return n;
}

/* Where the guests of a host hold more than its limit, those with the most to give have to
 * shrink. */
static int shrinks_find(struct plan *plan, struct wss_error *err)
{
	wss_auto_free struct giver *list = calloc(plan->fleet.n_guests + 1, sizeof(*list));
	wss_auto_free uint64_t *held = calloc(plan->fleet.n_hosts + 1, sizeof(*held));
	size_t n;

	if (!list || !held)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < plan->fleet.n_guests; i++)
		held[plan->solved.host_of[i]] =
			wss_u64_add(held[plan->solved.host_of[i]], guest_held(plan, i));
	n = givers_list(plan, list);
	for (size_t i = 0; i < n; i++) {
		if (held[list[i].host] <= plan->hosts[list[i].host].limit_bytes)
			continue;
		held[list[i].host] -= list[i].bytes;
		plan->guests[list[i].guest].shrink_to_bytes =
			wss_amount_of(guest_shrunk(plan, list[i].guest));
		plan->n_shrinks++;
		plan->shrink_bytes = wss_u64_add(plan->shrink_bytes, list[i].bytes);
	}
	return 0;
}

int plan_solve(struct plan *plan, struct wss_error *err)
{
	if (wss_pack_solve(&plan->problem, &plan->solved, err) < 0 ||
	    wss_pack_order(&plan->problem, &plan->solved, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->solved.n_steps; i++)
		plan->n_aside += plan->solved.steps[i].aside;
	if (loads_fill(plan, false, err) < 0 || loads_fill(plan, true, err) < 0)
		return -1;
	return shrinks_find(plan, err);
}

void plan_release(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_aparts; i++)
		free(plan->aparts[i].guests);
	free(plan->aparts);
	free(plan->guests);
	free(plan->hosts);
	free(plan->pack_guests);
	free(plan->pack_hosts);
	free(plan->solved.host_of);
	free(plan->solved.steps);
	free(plan->solved.left_out);
	wss_estate_release(&plan->fleet);
}
