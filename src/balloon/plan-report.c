/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/plan-report.h"

#include <stdio.h>

static struct wss_value balloon_get_reason(const void *row)
{
	const char *reason = ((const struct wss_balloon_row *)row)->reason;

	return wss_value_text(*reason ? reason : NULL);
}

#define FIELD(member, kind) WSS_FIELD(struct wss_balloon_row, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"action", NULL, "ACTION", -7, FIELD(action, TEXT),
	 "Action that the controller would take: shrink, none or refused"},
	{"from_bytes", NULL, "FROM", 8, FIELD(from_bytes, BYTES),
	 "Size of the guest now, as its balloon leaves it, in bytes"},
	{"to_bytes", NULL, "TO", 8, FIELD(to_bytes, BYTES),
	 "Size of the guest at the end, in bytes"},
	{"host_gain_bytes", NULL, "GAIN", 8, FIELD(gain_bytes, BYTES),
	 "Memory that the host would reclaim: resident memory beyond the new size, in bytes"},
	{"held_bytes", NULL, "HELD", 8, FIELD(held_bytes, BYTES),
	 "Guest memory that is resident on the host now, in bytes"},
	{"reason", NULL, "DETAILS", -27, WSS_GET(balloon_get_reason),
	 "Reason for the action, and what limits a shrink"},
	{"hint", NULL, "HINT", -20, FIELD(hint, TEXT),
	 "Command, or advice, after which the guest is not refused"},
	{"error", NULL, "ERROR", -20, FIELD(error, TEXT), "Why the guest could not be examined"},
};

const struct wss_report_layout wss_balloon_layout = {
	.schema = "virt-wss/balloon/1",
	.array_key = "balloons",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,action,from_bytes,to_bytes,host_gain_bytes,reason",
	.wide = "domain,action,from_bytes,to_bytes,host_gain_bytes,held_bytes,reason",
};

void wss_balloon_row_plan(struct wss_balloon_row *row, const struct wss_look *look,
			  const struct wss_balloon_plan *plan)
{
	row->action = wss_balloon_plan_action_name(plan->action);
	snprintf(row->reason, sizeof(row->reason), "%s", plan->reason);
	row->from_bytes = look->view.actual_bytes;
	row->to_bytes = plan->to_bytes;
	row->gain_bytes = plan->gain_bytes;
	row->held_bytes = look->view.rss_bytes;
}
