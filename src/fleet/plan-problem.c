/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/number.h"
#include "base/units.h"
#include "fleet/plan.h"
#include "fleet/room.h"

#define OPTED_OUT "opted out"

/* --- what a guest needs --- */

/* Whether its figures rest on enough windows, and it runs; those of list have no status. */
static bool guest_is_sized(const struct wss_cluster_guest *guest)
{
	if (!strcmp(guest->state, "paused"))
		return false;
	return !guest->status[0] || !strcmp(guest->status, "ok");
}

static struct wss_amount amount_either(struct wss_amount a, struct wss_amount b)
{
	return a.known ? a : b;
}

static struct wss_amount week_largest(const struct wss_cluster_guest *guest)
{
	struct wss_amount largest = {.known = false};

	for (int i = 0; i < WSS_CLUSTER_HOURS; i++)
		if (guest->week_bytes[i].known &&
		    (!largest.known || guest->week_bytes[i].value > largest.value))
			largest = guest->week_bytes[i];
	return largest;
}

/* What it needs in hours that are not known, from the best figure to the safest. */
static struct wss_amount guest_flat_need(const struct wss_cluster_guest *guest)
{
	if (!guest_is_sized(guest))
		return amount_either(guest->assigned_bytes, guest->held_bytes);
	return amount_either(amount_either(guest->recommended_bytes, guest->peak_bytes),
			     amount_either(guest->assigned_bytes, week_largest(guest)));
}

/* What it needs in an hour: never less than the policy's minimum, nor more than the guest has. */
static uint64_t guest_need_at(const struct wss_cluster_guest *guest, struct wss_amount flat,
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
static uint64_t guest_steady_need(const struct wss_cluster_guest *guest, struct wss_amount flat,
				  unsigned over_hours)
{
	uint64_t needs[WSS_CLUSTER_HOURS];

	for (int hour = 0; hour < WSS_CLUSTER_HOURS; hour++)
		needs[hour] = guest_need_at(guest, flat, hour);
	qsort(needs, WSS_CLUSTER_HOURS, sizeof(needs[0]), bytes_compare);
	return needs[over_hours];
}

static unsigned plan_over_hours(const struct wss_plan_options *options)
{
	return (unsigned)(options->risk * WSS_PACK_HOURS);
}

static uint64_t mib_up(uint64_t bytes)
{
	return bytes / WSS_MIB + (bytes % WSS_MIB != 0);
}

/* A guest that does not run has no QEMU. */
static bool guest_prepare_off(struct wss_plan *plan, size_t i)
{
	struct wss_cluster_guest *guest = &plan->fleet.guests[i];

	if (strcmp(guest->state, "shut off") != 0)
		return false;
	guest->assigned_bytes = guest->held_bytes = wss_amount_of(0);
	guest->recommended_bytes.known = false;
	plan->guests[i].off = plan->pack_guests[i].off = plan->pack_guests[i].pinned = true;
	plan->pack_guests[i].host = guest->host;
	plan->n_off++;
	return true;
}

/* Whether a smaller balloon is known to return nothing; of an API, whether it is not known to return anything. */
static bool guest_is_blocked(const struct wss_cluster_guest *guest)
{
	uint64_t returns =
		wss_u64_min(guest->held_bytes.known ? guest->held_bytes.value : UINT64_MAX,
			    guest->assigned_bytes.known ? guest->assigned_bytes.value : UINT64_MAX);

	if (guest->n_series)
		return !guest->reclaimable_bytes.known || !guest->reclaimable_bytes.value;
	return guest->is_blocked ||
	       (guest->reclaimable_bytes.known && !guest->reclaimable_bytes.value &&
		returns > guest->recommended_bytes.value);
}

static uint64_t guest_overhead(const struct wss_plan *plan, size_t i)
{
	const struct wss_cluster_host *host = &plan->fleet.hosts[plan->fleet.guests[i].host];

	return host->overhead_bytes.known ? host->overhead_bytes.value / host->n_guests : 0;
}

/* The memory that a guest may take: what it has, or else what it is known to need. */
static uint64_t guest_size(const struct wss_plan *plan, size_t i)
{
	const struct wss_cluster_guest *guest = &plan->fleet.guests[i];

	if (!guest->assigned_bytes.known && !guest->held_bytes.known)
		return guest_flat_need(guest).value;
	return wss_u64_max(guest->assigned_bytes.known ? guest->assigned_bytes.value : 0,
			   guest->held_bytes.known ? guest->held_bytes.value : 0);
}

static void guest_count_as(struct wss_plan *plan, size_t i, struct wss_amount shrunk)
{
	const struct wss_cluster_guest *guest = &plan->fleet.guests[i];
	uint64_t *sums = plan->pack_guests[i].sum_bytes, overhead = guest_overhead(plan, i);
	uint64_t most = shrunk.known ? shrunk.value : UINT64_MAX, size = guest_size(plan, i);

	if (plan->guests[i].unknown || plan->guests[i].off)
		return;
	sums[WSS_PACK_SIZE] = wss_u64_add(wss_u64_min(size, most), overhead);
	sums[WSS_PACK_HELD] = wss_u64_add(
		wss_u64_min(guest->held_bytes.known ? guest->held_bytes.value : size, most),
		overhead);
}

void wss_plan_guest_count(struct wss_plan *plan, size_t i)
{
	guest_count_as(plan, i, plan->guests[i].shrink_to_bytes);
}

/* A guest whose part cannot be known, and is in no sum: it stays, and its host gets no other. */
static void guest_leave_alone(struct wss_plan *plan, size_t i)
{
	struct wss_pack_guest *pack = &plan->pack_guests[i];

	plan->guests[i].unknown = pack->pinned = true;
	plan->hosts[pack->host].closed = true;
	plan->hosts[pack->host].n_unknown++;
	plan->n_unknown++;
}

/* One that is larger than the sums can hold. */
static void guest_leave_large(struct wss_plan *plan, size_t i)
{
	struct wss_pack_guest *pack = &plan->pack_guests[i];

	*pack = (struct wss_pack_guest){.host = pack->host, .copy_bytes = pack->copy_bytes};
	plan->n_unsized -= plan->guests[i].unsized;
	plan->guests[i] = (struct wss_plan_guest){.too_large = true};
	guest_leave_alone(plan, i);
}

static void guest_prepare_size(struct wss_plan *plan, size_t i, struct wss_amount flat)
{
	const struct wss_cluster_guest *guest = &plan->fleet.guests[i];
	struct wss_plan_guest *planned = &plan->guests[i];
	uint64_t least =
		wss_u64_max(guest->recommended_bytes.value,
			    guest_steady_need(guest, flat, plan_over_hours(plan->options)));

	planned->unsized = !guest->recommended_bytes.known || !guest_is_sized(guest);
	plan->n_unsized += planned->unsized;
	if (!planned->unsized && !planned->doubtful && !guest_is_blocked(guest) &&
	    least < guest_size(plan, i))
		planned->least_bytes = wss_amount_of(least);
	wss_plan_guest_count(plan, i);
}

/* Every guest also counts with its share of its host's QEMUs. */
static void guest_prepare(struct wss_plan *plan, size_t i)
{
	const struct wss_cluster_guest *guest = &plan->fleet.guests[i];
	const struct wss_cluster_host *host = &plan->fleet.hosts[guest->host];
	struct wss_pack_guest *pack = &plan->pack_guests[i];
	struct wss_amount flat = guest_flat_need(guest), copy;
	uint64_t overhead = guest_overhead(plan, i);

	if (guest_prepare_off(plan, i))
		return;
	pack->host = guest->host;
	copy = amount_either(guest->held_bytes, amount_either(guest->assigned_bytes, flat));
	pack->copy_bytes = copy.value;
	if (!flat.known) {
		guest_leave_alone(plan, i);
		return;
	}
	plan->guests[i].doubtful = guest->is_elsewhere || guest->is_ambiguous ||
				   host->is_ambiguous || host->is_incomplete || host->is_stale ||
				   host->is_partial;
	pack->pinned = !strcmp(guest->status, OPTED_OUT) || plan->guests[i].doubtful;
	guest_prepare_size(plan, i, flat);
	if (pack->sum_bytes[WSS_PACK_SIZE] > WSS_PACK_BYTES_MAX) {
		guest_leave_large(plan, i);
		return;
	}
	for (int hour = 0; hour < WSS_CLUSTER_HOURS; hour++) {
		uint64_t need = wss_u64_add(guest_need_at(guest, flat, hour), overhead);

		if (mib_up(need) > (uint64_t)WSS_PACK_MIB_MAX) {
			guest_leave_large(plan, i);
			return;
		}
		/* Shown as it is decided by, so that what a host's guests need adds up. */
		need = mib_up(need) * WSS_MIB;
		plan->guests[i].peak_bytes = wss_u64_max(plan->guests[i].peak_bytes, need);
		pack->need_mib[hour] = (float)(need / WSS_MIB);
	}
}

/* --- hosts --- */

/* Nothing moves to a host of which too little is known, nor off it. */
static void host_leave_alone(struct wss_plan *plan, size_t i)
{
	plan->hosts[i].closed = true;
	for (size_t j = 0; j < plan->fleet.n_guests; j++)
		if (plan->fleet.guests[j].host == i)
			plan->pack_guests[j].pinned = true;
}

bool wss_plan_host_is_foreign(const struct wss_plan *plan, size_t i)
{
	const struct wss_cluster_host *hosts = plan->fleet.hosts;
	const char *own = hosts[i].inventory;

	if (!*own || !strcmp(own, "libvirt"))
		return false;
	for (size_t j = 0; j < plan->fleet.n_hosts; j++)
		if (strcmp(hosts[j].inventory, own) != 0)
			return true;
	return false;
}

static bool plan_knows_memory(const struct wss_plan *plan)
{
	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		if (plan->fleet.hosts[i].memory_bytes.value)
			return true;
	return plan->options->host_memory_bytes.known;
}

static int host_prepare(struct wss_plan *plan, size_t i, struct wss_error *err)
{
	const struct wss_plan_options *options = plan->options;
	struct wss_cluster_host *from = &plan->fleet.hosts[i];
	struct wss_plan_host *host = &plan->hosts[i];
	struct wss_amount memory = amount_either(from->memory_bytes, options->host_memory_bytes);
	float most = WSS_PACK_MIB_MAX;

	memory.known &= memory.value != 0;
	if (!memory.known && !plan_knows_memory(plan))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "host %s: its memory is unknown: give the output of recommend "
				     "without DOMAIN, %s, or \"memory %s SIZE\" in the "
				     "constraints",
				     from->name, options->host_memory_setting, from->name);
	host->name = from->name;
	if (from->is_ambiguous || from->is_incomplete || from->is_stale || from->is_partial ||
	    !memory.known || wss_plan_host_is_foreign(plan, i))
		host_leave_alone(plan, i);
	host->memory_bytes = memory.known ? memory.value : 0;
	memory.value = memory.known ? memory.value : WSS_BYTES_MAX;
	host->limit_bytes = wss_u64_from_double((double)memory.value * options->limit);
	host->size_limit_bytes =
		host->memory_bytes ? wss_u64_from_double((double)memory.value * options->overcommit)
				   : UINT64_MAX;
	plan->pack_hosts[i] = (struct wss_pack_host){
		.limit_mib = (float)wss_u64_min(host->limit_bytes / WSS_MIB, (uint64_t)most),
		.memory_mib = (float)wss_u64_min(memory.value / WSS_MIB, (uint64_t)most),
		.keep = host->keep,
		.closed = host->closed,
		.most_bytes = {host->size_limit_bytes,
			       host->memory_bytes ? memory.value : UINT64_MAX},
	};
	return 0;
}

int wss_plan_prepare(struct wss_plan *plan, struct wss_error *err)
{
	const struct wss_plan_options *options = plan->options;
	size_t guests = plan->fleet.n_guests, hosts = plan->fleet.n_hosts;

	plan->guests = wss_xcalloc(guests, sizeof(*plan->guests));
	plan->hosts = wss_xcalloc(hosts, sizeof(*plan->hosts));
	plan->pack_guests = wss_xcalloc(guests, sizeof(*plan->pack_guests));
	plan->pack_hosts = wss_xcalloc(hosts, sizeof(*plan->pack_hosts));
	for (size_t i = 0; i < plan->fleet.n_guests; i++)
		guest_prepare(plan, i);
	if (options->constraints && wss_plan_constraints_read(plan, err) < 0)
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
		.max_moves = options->max_moves > SIZE_MAX ? SIZE_MAX : (size_t)options->max_moves,
		.goal = options->goal,
	};
	return 0;
}

/* --- the plan --- */

/* Sums up each host's guests, before or after. */
static void loads_fill(struct wss_plan *plan, bool after)
{
	size_t n = plan->fleet.n_hosts;
	wss_auto_free uint64_t *sums = wss_xcalloc(n * WSS_PACK_HOURS, sizeof(*sums));

	for (size_t i = 0; i < plan->fleet.n_guests; i++) {
		const struct wss_pack_guest *guest = &plan->pack_guests[i];
		size_t host = after ? plan->solved.host_of[i] : guest->host;

		for (int hour = 0; hour < WSS_PACK_HOURS; hour++)
			sums[host * WSS_PACK_HOURS + (size_t)hour] +=
				(uint64_t)guest->need_mib[hour];
		(after ? &plan->hosts[host].after : &plan->hosts[host].before)->guests++;
		(after ? &plan->hosts[host].after : &plan->hosts[host].before)->size_bytes +=
			guest->sum_bytes[WSS_PACK_SIZE];
	}
	for (size_t host = 0; host < n; host++) {
		struct wss_plan_load *load =
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
}

int wss_plan_solve(struct wss_plan *plan, struct wss_error *err)
{
	size_t bad_before = wss_pack_count_bad(&plan->problem);

	loads_fill(plan, false);
	/* As if all guests that may shrink had done so; then only those that must do. */
	for (size_t i = 0; i < plan->fleet.n_guests; i++)
		guest_count_as(plan, i, plan->guests[i].least_bytes);
	if (wss_pack_solve(&plan->problem, &plan->solved, err) < 0 ||
	    wss_pack_order(&plan->problem, &plan->solved, err) < 0)
		return -1;
	for (size_t i = 0; i < plan->fleet.n_guests; i++)
		wss_plan_guest_count(plan, i);
	plan->solved.bad_before = bad_before;
	for (size_t i = 0; i < plan->solved.n_steps; i++)
		plan->n_aside += plan->solved.steps[i].aside;
	wss_plan_shrinks_find(plan);
	loads_fill(plan, true);
	return 0;
}

void wss_plan_release(struct wss_plan *plan)
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
	wss_cluster_release(&plan->fleet);
}
