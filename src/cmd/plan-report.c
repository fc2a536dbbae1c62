/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cmd/plan.h"
#include "out/json.h"

/* --- what to do --- */

struct plan_row {
	const struct plan *plan;
	size_t guest;
	size_t step;			  /* from 0, in the plan's order */
	const struct wss_pack_step *move; /* NULL: it only shrinks */
};

static const struct plan_row *plan_row_of(const void *row)
{
	return row;
}

static const struct wss_estate_guest *row_guest(const void *row)
{
	return &plan_row_of(row)->plan->fleet.guests[plan_row_of(row)->guest];
}

static const struct plan_guest *row_planned(const void *row)
{
	return &plan_row_of(row)->plan->guests[plan_row_of(row)->guest];
}

static const struct wss_pack_guest *row_packed(const void *row)
{
	return &plan_row_of(row)->plan->pack_guests[plan_row_of(row)->guest];
}

static const struct wss_pack_step *row_move(const void *row)
{
	return plan_row_of(row)->move;
}

/* A guest shrinks with its last move. */
static struct wss_amount row_shrink(const void *row)
{
	return row_move(row) && row_move(row)->aside ? (struct wss_amount){.known = false}
						     : row_planned(row)->shrink_to_bytes;
}

static const char *host_name(const void *row, uint32_t host)
{
	return plan_row_of(row)->plan->hosts[host].name;
}

static struct wss_value plan_get_step(const void *row)
{
	return wss_value_number(plan_row_of(row)->step + 1, WSS_KIND_COUNT);
}

static struct wss_value plan_get_domain(const void *row)
{
	return wss_value_text(row_guest(row)->name);
}

static struct wss_value plan_get_uuid(const void *row)
{
	return wss_value_text(row_guest(row)->uuid);
}

static struct wss_value plan_get_action(const void *row)
{
	bool shrinks = row_shrink(row).known;

	if (!row_move(row))
		return wss_value_text("shrink");
	if (row_move(row)->aside)
		return wss_value_text("move aside");
	return wss_value_text(shrinks ? "shrink, move" : "move");
}

static struct wss_value plan_get_from(const void *row)
{
	return wss_value_text(host_name(row, row_move(row) ? row_move(row)->from : row_packed(row)->host));
}

static struct wss_value plan_get_to(const void *row)
{
	return wss_value_text(row_move(row) ? host_name(row, row_move(row)->to) : NULL);
}

static struct wss_value plan_get_copy(const void *row)
{
	return row_move(row) ? wss_value_number(row_packed(row)->copy_bytes, WSS_KIND_BYTES)
			     : wss_value_absent();
}

static struct wss_value plan_get_need(const void *row)
{
	return wss_value_number(row_planned(row)->peak_bytes, WSS_KIND_BYTES);
}

static struct wss_value plan_get_held(const void *row)
{
	return wss_value_amount(row_guest(row)->held_bytes, WSS_KIND_BYTES);
}

static struct wss_value plan_get_assigned(const void *row)
{
	return wss_value_amount(row_guest(row)->assigned_bytes, WSS_KIND_BYTES);
}

static struct wss_value plan_get_shrink(const void *row)
{
	return wss_value_amount(row_shrink(row), WSS_KIND_BYTES);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, plan_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, plan_get_uuid, "UUID of the guest", false},
	{"action", NULL, "ACTION", -12, plan_get_action,
	 "move; shrink; shrink, move: both, in this order; move aside: it moves on in a later step", false},
	{"from", NULL, "FROM", -10, plan_get_from, "Host that it is on by then", false},
	{"to", NULL, "TO", -10, plan_get_to, "Host that it moves to", false},
	{"copy_bytes", NULL, "COPY", 8, plan_get_copy,
	 "Memory that the move copies, less what changes meanwhile, in bytes", false},
	{"need_bytes", NULL, "NEED", 8, plan_get_need,
	 "Its need in its worst hour of the week, with its share of QEMU's own memory, in bytes", false},
	{"held_bytes", NULL, "HELD", 8, plan_get_held,
	 "Guest memory that is resident on its host, in bytes", false},
	{"assigned_bytes", NULL, "ASSIGNED", 8, plan_get_assigned,
	 "Maximum memory of the guest, in bytes", false},
	{"shrink_to_bytes", NULL, "SHRINK-TO", 9, plan_get_shrink,
	 "Size to give it so that its host stays within the limit: the recommended one, but not below its need "
	 "at the stated risk, without QEMU's own memory, in bytes", false},
	{"step", NULL, "STEP", 4, plan_get_step,
	 "Place in the order in which no host is over its limit at any moment", false},
};

const struct wss_report_layout plan_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "changes",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,action,from,to,copy_bytes,need_bytes,shrink_to_bytes",
	.wide = "step,domain,uuid,action,from,to,copy_bytes,need_bytes,held_bytes,assigned_bytes,shrink_to_bytes",
};

/* --- hosts, in JSON --- */

static const struct plan_host *host_of_row(const void *row)
{
	return row;
}

#define HOST_VALUE(name, value, kind)                                                         \
	static struct wss_value host_get_##name(const void *row)                              \
	{                                                                                     \
		return wss_value_number(host_of_row(row)->value, kind);                       \
	}

/* Unknown if the host's memory is. */
#define HOST_SIZE(name, value)                                                                \
	static struct wss_value host_get_##name(const void *row)                              \
	{                                                                                     \
		return host_of_row(row)->memory_bytes                                         \
			       ? wss_value_number(host_of_row(row)->value, WSS_KIND_BYTES)    \
			       : wss_value_absent();                                          \
	}

HOST_SIZE(memory, memory_bytes)
HOST_SIZE(limit, limit_bytes)
HOST_VALUE(guests_before, before.guests, WSS_KIND_COUNT)
HOST_VALUE(guests_after, after.guests, WSS_KIND_COUNT)
HOST_VALUE(need_before, before.peak_bytes, WSS_KIND_BYTES)
HOST_VALUE(need_after, after.peak_bytes, WSS_KIND_BYTES)
HOST_VALUE(hour_before, before.hour, WSS_KIND_COUNT)
HOST_VALUE(hour_after, after.hour, WSS_KIND_COUNT)

static struct wss_value host_get_name(const void *row)
{
	return wss_value_text(host_of_row(row)->name);
}

static const struct wss_column host_columns[] = {
	{"host", NULL, "HOST", -12, host_get_name, "Name of the host", false},
	{"memory_bytes", NULL, "MEMORY", 8, host_get_memory, "Memory of the host, in bytes", false},
	{"limit_bytes", NULL, "LIMIT", 8, host_get_limit, "What its guests may need, in bytes", false},
	{"guests_before", NULL, "GUESTS", 6, host_get_guests_before, "Its guests now, a count", false},
	{"guests_after", NULL, "AFTER", 6, host_get_guests_after, "Its guests with the plan, a count",
	 false},
	{"need_before_bytes", NULL, "NEED", 8, host_get_need_before,
	 "Need of its guests together in their worst hour now, in bytes", false},
	{"need_after_bytes", NULL, "NEED-AFTER", 10, host_get_need_after,
	 "The same with the plan, in bytes", false},
	{"hour_before", NULL, "HOUR", 4, host_get_hour_before,
	 "That hour of the week, 0 is Monday 00:00 UTC, a count", false},
	{"hour_after", NULL, "HOUR-AFTER", 10, host_get_hour_after, "The same with the plan, a count",
	 false},
};

static const struct wss_report_layout host_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "hosts",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
};

static void total_add_hosts(const void *row, struct wss_json *json)
{
	const struct plan *plan = row;
	struct wss_json list = wss_json_list(json->stream, json, "hosts");

	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		wss_json_row(json->stream, &list, NULL, &host_layout, &plan->hosts[i]);
	wss_json_list_end(&list);
}

/* --- the total --- */

static const struct plan *plan_of(const void *row)
{
	return row;
}

#define TOTAL(name, value, kind)                                                              \
	static struct wss_value total_get_##name(const void *row)                             \
	{                                                                                     \
		return wss_value_number(plan_of(row)->value, kind);                           \
	}

TOTAL(guests, fleet.n_guests, WSS_KIND_COUNT)
TOTAL(unknown, n_unknown, WSS_KIND_COUNT)
TOTAL(hosts, fleet.n_hosts, WSS_KIND_COUNT)
TOTAL(before, solved.hosts_before, WSS_KIND_COUNT)
TOTAL(after, solved.hosts_after, WSS_KIND_COUNT)
TOTAL(bound, solved.bound, WSS_KIND_COUNT)
TOTAL(over_before, solved.bad_before, WSS_KIND_COUNT)
TOTAL(over_after, solved.bad_after, WSS_KIND_COUNT)
TOTAL(moves, solved.moves, WSS_KIND_COUNT)
TOTAL(copy, solved.copy_bytes, WSS_KIND_BYTES)
TOTAL(aside, n_aside, WSS_KIND_COUNT)
TOTAL(left_out, solved.n_left_out, WSS_KIND_COUNT)
TOTAL(shrinks, n_shrinks, WSS_KIND_COUNT)
TOTAL(shrink, shrink_bytes, WSS_KIND_BYTES)
TOTAL(over_hours, problem.over_hours, WSS_KIND_COUNT)

static struct wss_value value_share(double share)
{
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = share };
}

static struct wss_value total_get_limit(const void *row)
{
	return value_share(plan_of(row)->options->limit);
}

static struct wss_value total_get_risk(const void *row)
{
	return value_share(plan_of(row)->options->risk);
}

static struct wss_value total_get_goal(const void *row)
{
	return wss_value_text(plan_of(row)->problem.goal == WSS_PACK_SAFE ? "safe" : "empty");
}

static struct wss_value total_get_above(const void *row)
{
	const struct wss_pack_plan *solved = &plan_of(row)->solved;

	if (!solved->bound || solved->hosts_after < solved->bound)
		return wss_value_absent();
	return value_share((double)(solved->hosts_after - solved->bound) / (double)solved->bound);
}

static const struct wss_column total_columns[] = {
	{"goal", NULL, "GOAL", -5, total_get_goal, "Goal of the plan: empty or safe", false},
	{"limit", NULL, "LIMIT", 6, total_get_limit,
	 "Share of a host's memory that its guests may need, 1 = 100%", false},
	{"risk", NULL, "RISK", 6, total_get_risk,
	 "Share of the hours in which they may need more, 1 = 100%", false},
	{"over_hours", NULL, "OVER-HOURS", 10, total_get_over_hours,
	 "Whole hours of the week in that share, a count", false},
	{"guests", NULL, "GUESTS", 6, total_get_guests, "Guests of the fleet, a count", false},
	{"unknown_guests", NULL, "UNKNOWN", 7, total_get_unknown,
	 "Guests of which no figure is known, which stay where they are, a count", false},
	{"hosts", NULL, "HOSTS", 5, total_get_hosts, "Hosts of the fleet, a count", false},
	{"hosts_before", NULL, "USED", 5, total_get_before, "Hosts in use now, a count", false},
	{"hosts_after", NULL, "AFTER", 5, total_get_after, "Hosts in use with the plan, a count", false},
	{"hosts_bound", NULL, "BOUND", 5, total_get_bound,
	 "Hosts that any plan needs, by the guests' need together, a count", false},
	{"above_bound", NULL, "ABOVE", 6, total_get_above,
	 "How far the plan is above that bound, as a share, 1 = 100%", false},
	{"over_before", NULL, "OVER", 5, total_get_over_before,
	 "Hosts that break a limit or have guests that must be apart now, a count", false},
	{"over_after", NULL, "OVER-AFTER", 10, total_get_over_after, "The same with the plan, a count",
	 false},
	{"moves", NULL, "MOVES", 6, total_get_moves, "Moves, those aside included, a count", false},
	{"copy_bytes", NULL, "COPY", 8, total_get_copy, "Memory that all moves copy, in bytes", false},
	{"shrinks", NULL, "SHRINKS", 7, total_get_shrinks, "Guests that shrink, a count", false},
	{"shrink_bytes", NULL, "FREED", 8, total_get_shrink, "Memory that this frees, in bytes", false},
	{"aside_moves", NULL, "ASIDE", 5, total_get_aside,
	 "Moves aside to a third host, which let others proceed, a count", false},
	{"left_out_moves", NULL, "LEFT-OUT", 8, total_get_left_out,
	 "Moves that are not in the plan because they wait for each other, a count", false},
};

static const struct wss_report_layout total_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "plan",
	.columns = total_columns,
	.n_columns = sizeof(total_columns) / sizeof(total_columns[0]),
	.extra = total_add_hosts,
	.shown = "guests,hosts_before,hosts_after,hosts_bound,above_bound,over_before,over_after,moves,"
		 "copy_bytes,shrinks",
	.wide = "goal,limit,risk,guests,unknown_guests,hosts,hosts_before,hosts_after,hosts_bound,above_bound,"
		"over_before,over_after,moves,aside_moves,left_out_moves,copy_bytes,shrinks,shrink_bytes",
};

const struct wss_report_layout *const plan_layouts[] = { &plan_layout, &total_layout, NULL };

void plan_report(const struct plan *plan, struct wss_report *report)
{
	struct plan_row row = { .plan = plan };
	size_t shrinks = 0;

	wss_report_set_batch(report);
	wss_report_hold(report);
	for (row.guest = 0; row.guest < plan->fleet.n_guests; row.guest++) {
		if (plan->solved.host_of[row.guest] != plan->pack_guests[row.guest].host ||
		    !row_planned(&row)->shrink_to_bytes.known)
			continue;
		row.step = shrinks++;
		wss_report_row(report, &row);
	}
	for (size_t i = 0; i < plan->solved.n_steps; i++) {
		row.move = &plan->solved.steps[i];
		row.guest = row.move->guest;
		row.step = shrinks + i;
		wss_report_row(report, &row);
	}
	wss_report_total(report, "plan", &total_layout, plan);
}
