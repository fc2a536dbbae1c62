/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fleet/plan-report.h"

#include <stdlib.h>

#include "show/json.h"

/* --- what to do --- */

struct plan_row {
	const struct wss_plan *plan;
	size_t guest;
	size_t step;			  /* from 0, in the plan's order */
	const struct wss_pack_step *move; /* NULL: it shrinks */
};

static const struct plan_row *plan_row_of(const void *row)
{
	return row;
}

static const void *guest_of(const void *row)
{
	return &plan_row_of(row)->plan->fleet.guests[plan_row_of(row)->guest];
}

static const void *planned_of(const void *row)
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

static const char *host_name(const void *row, uint32_t host)
{
	return plan_row_of(row)->plan->hosts[host].name;
}

static struct wss_value plan_get_step(const void *row)
{
	return wss_value_number(plan_row_of(row)->step + 1, WSS_KIND_COUNT);
}

static struct wss_value plan_get_action(const void *row)
{
	if (!row_move(row))
		return wss_value_text("shrink");
	return wss_value_text(row_move(row)->aside ? "move aside" : "move");
}

static struct wss_value plan_get_from(const void *row)
{
	return wss_value_text(
		host_name(row, row_move(row) ? row_move(row)->from : row_packed(row)->host));
}

static struct wss_value plan_get_to(const void *row)
{
	return wss_value_text(row_move(row) ? host_name(row, row_move(row)->to) : NULL);
}

static const void *moving_of(const void *row)
{
	return row_move(row) ? row_packed(row) : NULL;
}

static const void *shrinking_of(const void *row)
{
	return row_move(row) ? NULL : planned_of(row);
}

#define GUEST(member, kind) WSS_FIELD_OF(guest_of, struct wss_cluster_guest, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, GUEST(name, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, GUEST(uuid, TEXT), "UUID of the guest"},
	{"action", NULL, "ACTION", -12, WSS_GET(plan_get_action),
	 "shrink; move; move aside: it moves on in a later step"},
	{"from", NULL, "FROM", -10, WSS_GET(plan_get_from), "Host that it is on by then"},
	{"to", NULL, "TO", -10, WSS_GET(plan_get_to), "Host that it moves to"},
	{"copy_bytes", NULL, "COPY", 8,
	 WSS_FIELD_OF(moving_of, struct wss_pack_guest, copy_bytes, BYTES),
	 "Memory that the move copies once the guest has shrunk, less what changes meanwhile, in bytes"},
	{"need_bytes", NULL, "NEED", 8,
	 WSS_FIELD_OF(planned_of, struct wss_plan_guest, peak_bytes, BYTES),
	 "Its need in its worst hour of the week, with its share of QEMU's own memory, in bytes"},
	{"held_bytes", NULL, "HELD", 8, GUEST(held_bytes, BYTES),
	 "Guest memory that is resident on its host, in bytes"},
	{"assigned_bytes", NULL, "ASSIGNED", 8, GUEST(assigned_bytes, BYTES),
	 "Maximum memory of the guest, in bytes"},
	{"shrink_to_bytes", NULL, "SHRINK-TO", 9,
	 WSS_FIELD_OF(shrinking_of, struct wss_plan_guest, shrink_to_bytes, BYTES),
	 "Size to give it so that its host stays within the limit: the recommended one, but not below its need "
	 "at the stated risk, without QEMU's own memory, in bytes"},
	{"step", NULL, "STEP", 4, WSS_GET(plan_get_step),
	 "Place in the order in which no host is over its limit at any moment"},
};

const struct wss_report_layout wss_plan_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "changes",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,action,from,to,copy_bytes,need_bytes,shrink_to_bytes",
	.wide = "step,domain,uuid,action,from,to,copy_bytes,need_bytes,held_bytes,assigned_bytes,shrink_to_bytes",
};

/* --- hosts, in JSON --- */

static const struct wss_plan_host *host_of_row(const void *row)
{
	return row;
}

/* Its memory and the limits in it; NULL: unknown. */
static const void *host_memory_of(const void *row)
{
	return host_of_row(row)->memory_bytes ? row : NULL;
}

/* What its guests have together; NULL: unknown, as one of them is in no sum. Guests of which nothing is known stay. */
static const void *host_sizes_of(const void *row)
{
	return host_of_row(row)->n_unknown ? NULL : row;
}

#define HOST_FIELD(member, kind) WSS_FIELD(struct wss_plan_host, member, kind)
#define HOST_MEMORY(member) WSS_FIELD_OF(host_memory_of, struct wss_plan_host, member, BYTES)
#define HOST_SIZES(member) WSS_FIELD_OF(host_sizes_of, struct wss_plan_host, member, BYTES)

static const struct wss_column host_columns[] = {
	{"host", NULL, "HOST", -12, HOST_FIELD(name, TEXT), "Name of the host"},
	{"memory_bytes", NULL, "MEMORY", 8, HOST_MEMORY(memory_bytes),
	 "Memory of the host, in bytes"},
	{"limit_bytes", NULL, "LIMIT", 8, HOST_MEMORY(limit_bytes),
	 "Limit for what its guests need together, in bytes"},
	{"guests_before", NULL, "GUESTS", 6, HOST_FIELD(before.guests, COUNT),
	 "Its guests now, a count"},
	{"guests_after", NULL, "AFTER", 6, HOST_FIELD(after.guests, COUNT),
	 "Its guests with the plan, a count"},
	{"need_before_bytes", NULL, "NEED", 8, HOST_FIELD(before.peak_bytes, BYTES),
	 "Need of its guests together in their worst hour now, in bytes"},
	{"need_after_bytes", NULL, "NEED-AFTER", 10, HOST_FIELD(after.peak_bytes, BYTES),
	 "The same with the plan, in bytes"},
	{"hour_before", NULL, "HOUR", 4, HOST_FIELD(before.hour, COUNT),
	 "That hour of the week, 0 is Monday 00:00 UTC, a count"},
	{"hour_after", NULL, "HOUR-AFTER", 10, HOST_FIELD(after.hour, COUNT),
	 "The same with the plan, a count"},
	{"size_limit_bytes", NULL, "MAY-TAKE", 8, HOST_MEMORY(size_limit_bytes),
	 "Limit for the memory that its guests have together, its own times the overcommit ratio, in bytes"},
	{"size_before_bytes", NULL, "SIZES", 8, HOST_SIZES(before.size_bytes),
	 "Sum of the memory that its guests have now, with QEMU's own, in bytes"},
	{"size_after_bytes", NULL, "SIZES-AFTER", 11, HOST_SIZES(after.size_bytes),
	 "The same with the plan, in bytes"},
	{"unknown_guests", NULL, "UNKNOWN", 7, HOST_FIELD(n_unknown, COUNT),
	 "Guests of which no figure is known, which are in no sum, a count"},
};

static const struct wss_report_layout host_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "hosts",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
	.shown =
		"host,memory_bytes,size_before_bytes,size_after_bytes,need_before_bytes,need_after_bytes,guests_after",
	.wide = "host,memory_bytes,size_limit_bytes,size_before_bytes,size_after_bytes,limit_bytes,need_before_bytes,"
		"need_after_bytes,hour_before,hour_after,guests_before,guests_after,unknown_guests",
};

static void total_add_hosts(const void *row, struct wss_json *json)
{
	const struct wss_plan *plan = row;
	struct wss_json list = wss_json_list(json->stream, json, "hosts");

	for (size_t i = 0; i < plan->fleet.n_hosts; i++)
		wss_json_row(json->stream, &list, NULL, &host_layout, &plan->hosts[i]);
	wss_json_list_end(&list);
}

/* --- the total --- */

static const struct wss_plan *plan_of(const void *row)
{
	return row;
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
	return wss_value_share((double)(solved->hosts_after - solved->bound) /
			       (double)solved->bound);
}

static const void *options_of(const void *row)
{
	return plan_of(row)->options;
}

#define OPTION(member, kind) WSS_FIELD_OF(options_of, struct wss_plan_options, member, kind)
#define PLAN_FIELD(member, kind) WSS_FIELD(struct wss_plan, member, kind)

static const struct wss_column total_columns[] = {
	{"goal", NULL, "GOAL", -5, WSS_GET(total_get_goal), "Goal of the plan: empty or safe"},
	{"limit", NULL, "LIMIT", 6, OPTION(limit, SHARE),
	 "Share of a host's memory that its guests may need, 1 = 100%"},
	{"risk", NULL, "RISK", 6, OPTION(risk, SHARE),
	 "Share of the hours in which they may need more, 1 = 100%"},
	{"over_hours", NULL, "OVER-HOURS", 10, PLAN_FIELD(problem.over_hours, COUNT),
	 "Whole hours of the week in that share, a count"},
	{"guests", NULL, "GUESTS", 6, PLAN_FIELD(fleet.n_guests, COUNT),
	 "Guests of the fleet, a count"},
	{"unknown_guests", NULL, "UNKNOWN", 7, PLAN_FIELD(n_unknown, COUNT),
	 "Guests of which no figure is known, which stay where they are, a count"},
	{"hosts", NULL, "HOSTS", 5, PLAN_FIELD(fleet.n_hosts, COUNT),
	 "Hosts of the fleet, a count"},
	{"hosts_before", NULL, "USED", 5, PLAN_FIELD(solved.hosts_before, COUNT),
	 "Hosts in use now, a count"},
	{"hosts_after", NULL, "AFTER", 5, PLAN_FIELD(solved.hosts_after, COUNT),
	 "Hosts in use with the plan, a count"},
	{"hosts_bound", NULL, "BOUND", 5, PLAN_FIELD(solved.bound, COUNT),
	 "Hosts that any plan needs, by the guests' need together, a count"},
	{"above_bound", NULL, "ABOVE", 6, WSS_GET(total_get_above),
	 "How far the plan is above that bound, as a share, 1 = 100%"},
	{"over_before", NULL, "OVER", 5, PLAN_FIELD(solved.bad_before, COUNT),
	 "Hosts that break a limit or have guests that must be apart now, a count"},
	{"over_after", NULL, "OVER-AFTER", 10, PLAN_FIELD(solved.bad_after, COUNT),
	 "The same with the plan, a count"},
	{"moves", NULL, "MOVES", 6, PLAN_FIELD(solved.moves, COUNT),
	 "Moves, those aside included, a count"},
	{"copy_bytes", NULL, "COPY", 8, PLAN_FIELD(solved.copy_bytes, BYTES),
	 "Memory that all moves copy, in bytes"},
	{"shrinks", NULL, "SHRINKS", 7, PLAN_FIELD(n_shrinks, COUNT),
	 "Guests that shrink, a count"},
	{"shrink_bytes", NULL, "FREED", 8, PLAN_FIELD(shrink_bytes, BYTES),
	 "Memory that this frees, in bytes"},
	{"aside_moves", NULL, "ASIDE", 5, PLAN_FIELD(n_aside, COUNT),
	 "Moves aside to a third host, which let others proceed, a count"},
	{"left_out_moves", NULL, "LEFT-OUT", 8, PLAN_FIELD(solved.n_left_out, COUNT),
	 "Moves that are not in the plan because they wait for each other, a count"},
	{"overcommit", NULL, "OVERCOMMIT", 10, OPTION(overcommit, FACTOR),
	 "How many times a host's memory its guests may take"},
	{"unsized_guests", NULL, "UNSIZED", 7, PLAN_FIELD(n_unsized, COUNT),
	 "Guests without a recommended size, which count with the memory that they have, a count"},
};

static const struct wss_report_layout total_layout = {
	.schema = "virt-wss/plan/1",
	.array_key = "plan",
	.columns = total_columns,
	.n_columns = sizeof(total_columns) / sizeof(total_columns[0]),
	.extra = total_add_hosts,
	.shown =
		"guests,hosts_before,hosts_after,hosts_bound,above_bound,over_before,over_after,moves,"
		"copy_bytes,shrinks",
	.wide = "goal,limit,risk,overcommit,guests,unknown_guests,unsized_guests,hosts,hosts_before,hosts_after,hosts_bound,above_bound,"
		"over_before,over_after,moves,aside_moves,left_out_moves,copy_bytes,shrinks,shrink_bytes",
};

const struct wss_report_layout *const wss_plan_layouts[] = {&wss_plan_layout, &host_layout,
							    &total_layout, NULL};

void wss_plan_report(const struct wss_plan *plan, struct wss_report *report)
{
	struct plan_row row = {.plan = plan};
	size_t shrinks = 0;

	wss_report_set_batch(report);
	wss_report_hold(report);
	for (row.guest = 0; row.guest < plan->fleet.n_guests; row.guest++) {
		if (!plan->guests[row.guest].shrink_to_bytes.known)
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
	wss_report_table(report, &host_layout, plan->hosts, plan->fleet.n_hosts,
			 sizeof(*plan->hosts));
	wss_report_total(report, "plan", &total_layout, plan);
}
