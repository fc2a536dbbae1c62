/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/squeeze-report.h"

#include "base/clock.h"
#include "base/units.h"

static const struct wss_squeeze_row *squeeze_row_of(const void *row)
{
	return row;
}

/* What showed an edge, or why there is none. */
static struct wss_value edge_reason(const struct wss_edge *edge)
{
	return wss_value_text(edge->sign ? edge->sign : edge->reason);
}

static struct wss_value squeeze_get_scanning_reason(const void *row)
{
	return edge_reason(&squeeze_row_of(row)->edges.scanning);
}

static struct wss_value squeeze_get_reason(const void *row)
{
	const char *refusal = squeeze_row_of(row)->refusal;

	return refusal ? wss_value_text(refusal) : edge_reason(&squeeze_row_of(row)->edges.paging);
}

static struct wss_value squeeze_get_reserve(const void *row)
{
	if (!squeeze_row_of(row)->has_memory)
		return wss_value_absent();
	return wss_value_amount(wss_amount_of(squeeze_row_of(row)->memory.reserve_bytes),
				WSS_KIND_BYTES);
}

static struct wss_value squeeze_get_margin(const void *row)
{
	struct wss_amount size = squeeze_row_of(row)->recommended_bytes;
	struct wss_amount edge = squeeze_row_of(row)->edges.paging.edge_bytes;

	if (!size.known || !edge.known || !edge.value)
		return wss_value_absent();
	return (struct wss_value){.kind = WSS_KIND_FACTOR,
				  .real = (double)size.value / (double)edge.value};
}

#define FIELD(member, kind) WSS_FIELD(struct wss_squeeze_row, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"action", NULL, "ACTION", -8, FIELD(action, TEXT),
	 "squeezed; in a dry run what would be done: squeeze, or refused"},
	{"from_bytes", NULL, "FROM", 8, FIELD(from_bytes, BYTES),
	 "Size of the guest before and after, as its balloon leaves it, in bytes"},
	{"floor_bytes", NULL, "FLOOR", 8, FIELD(floor_bytes, BYTES),
	 "Smallest size that is allowed, in bytes"},
	{"smallest_bytes", NULL, "SMALLEST", 8, FIELD(smallest_bytes, BYTES),
	 "Smallest size at which the guest was observed, in bytes"},
	{"steps", NULL, "STEPS", 5, FIELD(steps, COUNT),
	 "Number of smaller sizes at which it was observed; in a dry run the largest number"},
	{"observations", NULL, "OBS", 5, FIELD(observations, COUNT),
	 "Number of observations at all sizes"},
	{"longest_seconds", NULL, "LONGEST", 8, FIELD(longest_ns, DURATION),
	 "In a dry run: the time that it takes if no observation is repeated, down to the "
	 "floor, in seconds"},
	{"scanning_edge_bytes", NULL, "SCANS", 8, FIELD(edges.scanning.edge_bytes, BYTES),
	 "Size below which the guest's kernel begins to scan for memory to reclaim: the middle "
	 "of its bounds, in bytes"},
	{"scanning_low_bytes", NULL, "SCANS-LO", 8, FIELD(edges.scanning.low_bytes, BYTES),
	 "Largest size at which it scanned, in bytes"},
	{"scanning_high_bytes", NULL, "SCANS-HI", 8, FIELD(edges.scanning.high_bytes, BYTES),
	 "Smallest size at which it did not scan, in bytes"},
	{"scanning_reason", NULL, "SCANS WHY", -20, WSS_GET(squeeze_get_scanning_reason),
	 "What showed that it scans, or why that is not known"},
	{"paging_edge_bytes", NULL, "PAGES", 8, FIELD(edges.paging.edge_bytes, BYTES),
	 "Size below which the guest begins to page: the middle of its bounds, in bytes"},
	{"paging_low_bytes", NULL, "PAGES-LO", 8, FIELD(edges.paging.low_bytes, BYTES),
	 "Low bound: the largest size at which it paged or, if it is not known to have paged, "
	 "the memory that it could not give up, in bytes"},
	{"paging_high_bytes", NULL, "PAGES-HI", 8, FIELD(edges.paging.high_bytes, BYTES),
	 "High bound: the smallest size at which it did not page, in bytes"},
	{"reason", NULL, "WHY", -24, WSS_GET(squeeze_get_reason),
	 "What showed that it pages, or why there is no edge, or no squeeze"},
	{"end", NULL, "END", -20, FIELD(end, TEXT), "Why the squeeze ended"},
	{"reserve_bytes", NULL, "RESERVE", 8, WSS_GET(squeeze_get_reserve),
	 "Memory that the guest's kernel keeps from programs and page cache, in bytes"},
	{"recommended_bytes", NULL, "REC.", 8, FIELD(recommended_bytes, BYTES),
	 "Recommended size by the history, as recommend has it, in bytes"},
	{"recommended_reason", NULL, "REC. WHY", -20, FIELD(unrecommended, TEXT),
	 "Why there is no recommendation"},
	{"margin", NULL, "MARGIN", 6, WSS_GET(squeeze_get_margin),
	 "That size divided by the edge of paging"},
	{"hint", NULL, "HINT", -20, FIELD(hint, TEXT),
	 "Command, or advice, after which the guest is not refused"},
	{"error", NULL, "ERROR", -20, FIELD(error, TEXT), "Why the guest was not squeezed"},
	{"used_bytes", NULL, "USED", 8, FIELD(memory.used_bytes, BYTES),
	 "Memory that the guest's kernel and programs used at its full size, without page cache, in bytes"},
	{"cache_bytes", NULL, "CACHE", 8, FIELD(memory.cache_bytes, BYTES),
	 "Its page cache at its full size, in bytes"},
};

const struct wss_report_layout wss_squeeze_layout = {
	.schema = "virt-wss/squeeze/1",
	.array_key = "squeezes",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,from_bytes,scanning_edge_bytes,paging_low_bytes,paging_high_bytes,"
		 "recommended_bytes,reason",
	.wide = "domain,action,from_bytes,smallest_bytes,steps,scanning_edge_bytes,"
		"paging_low_bytes,paging_edge_bytes,paging_high_bytes,reserve_bytes,"
		"recommended_bytes,margin,reason",
};

const struct wss_report_layout wss_squeeze_plan_layout = {
	.schema = "virt-wss/squeeze/1",
	.array_key = "squeezes",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,from_bytes,floor_bytes,steps,longest_seconds,recommended_bytes,reason",
	.wide = "domain,action,from_bytes,floor_bytes,steps,longest_seconds,used_bytes,cache_bytes,"
		"reserve_bytes,recommended_bytes,recommended_reason,reason",
};

void wss_squeeze_row_end(struct wss_squeeze_row *row, const struct wss_squeeze *squeeze)
{
	size_t steps = 0;

	for (size_t i = 1; i < squeeze->n_points; i++)
		steps += squeeze->points[i].size_bytes < squeeze->points[i - 1].size_bytes;
	row->action = "squeezed";
	row->from_bytes = wss_amount_of(squeeze->original_bytes);
	row->floor_bytes = wss_amount_of(squeeze->options.floor_bytes);
	row->smallest_bytes = wss_amount_of(wss_squeeze_smallest(squeeze));
	row->steps = wss_amount_of(steps);
	row->observations = wss_amount_of(squeeze->n_points);
	row->has_memory = true;
	row->memory = squeeze->memory;
	row->end = squeeze->end;
	wss_edges_find(squeeze->points, squeeze->n_points, &row->edges);
}

/* Returns the largest number of steps from a size to the floor. */
static uint64_t squeeze_steps(const struct wss_squeeze_options *options, uint64_t bytes,
			      uint64_t floor_bytes)
{
	uint64_t steps = 0;

	while (bytes > floor_bytes + WSS_MIB && steps < WSS_SQUEEZE_POINTS_MAX) {
		uint64_t step = bytes / 100 * options->step_percent;

		bytes -= step < bytes - floor_bytes ? step : bytes - floor_bytes;
		steps++;
	}
	return steps;
}

void wss_squeeze_row_preview(struct wss_squeeze_row *row, const struct wss_look *look,
			     const struct wss_policy *policy,
			     const struct wss_squeeze_options *options,
			     char ret_no_step[WSS_SQUEEZE_TEXT_MAX])
{
	const struct wss_balloon_view *view = &look->view;

	row->from_bytes = view->actual_bytes;
	row->floor_bytes = wss_amount_of(wss_squeeze_floor(policy, options->floor_bytes));
	row->refusal = wss_squeeze_refusal(&look->facts);
	if (!row->refusal &&
	    wss_squeeze_no_step(view->actual_bytes.value, row->floor_bytes.value, ret_no_step))
		row->refusal = ret_no_step;
	row->action = row->refusal ? "refused" : "squeeze";
	if (row->refusal)
		return;
	row->has_memory = true;
	wss_squeeze_memory_note(&row->memory, view);
	row->steps = wss_amount_of(
		squeeze_steps(options, view->actual_bytes.value, row->floor_bytes.value));
	row->longest_ns = wss_amount_of((row->steps.value + WSS_EDGE_BASE_POINTS) *
					(options->settle_s + options->interval_s) * WSS_NS_PER_S);
}
