/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/squeeze.h"

#include "base/number.h"

static const struct squeeze_row *row_of(const void *row)
{
	return row;
}

#define TEXT(name, member)                                                                    \
	static struct wss_value squeeze_get_##name(const void *row)                           \
	{                                                                                     \
		return wss_value_text(row_of(row)->member);                                   \
	}

#define AMOUNT(name, member, kind)                                                            \
	static struct wss_value squeeze_get_##name(const void *row)                           \
	{                                                                                     \
		return wss_value_amount(row_of(row)->member, kind);                           \
	}

TEXT(domain, domain)
TEXT(uuid, uuid)
TEXT(action, action)
AMOUNT(from, from_bytes, WSS_KIND_BYTES)
AMOUNT(floor, floor_bytes, WSS_KIND_BYTES)
AMOUNT(smallest, smallest_bytes, WSS_KIND_BYTES)
AMOUNT(steps, steps, WSS_KIND_COUNT)
AMOUNT(observations, observations, WSS_KIND_COUNT)
AMOUNT(longest, longest_ns, WSS_KIND_DURATION)
AMOUNT(scanning, edges.scanning.edge_bytes, WSS_KIND_BYTES)
AMOUNT(scanning_low, edges.scanning.low_bytes, WSS_KIND_BYTES)
AMOUNT(scanning_high, edges.scanning.high_bytes, WSS_KIND_BYTES)
AMOUNT(paging, edges.paging.edge_bytes, WSS_KIND_BYTES)
AMOUNT(paging_low, edges.paging.low_bytes, WSS_KIND_BYTES)
AMOUNT(paging_high, edges.paging.high_bytes, WSS_KIND_BYTES)
AMOUNT(used, memory.used_bytes, WSS_KIND_BYTES)
AMOUNT(cache, memory.cache_bytes, WSS_KIND_BYTES)
AMOUNT(recommended, recommended_bytes, WSS_KIND_BYTES)
AMOUNT(recommended_size, recommended_size_bytes, WSS_KIND_BYTES)
TEXT(unrecommended, unrecommended)
TEXT(end, end)
TEXT(error, error)

/* What showed an edge, or why there is none. */
static struct wss_value edge_reason(const struct wss_edge *edge)
{
	return wss_value_text(edge->sign ? edge->sign : edge->reason);
}

static struct wss_value squeeze_get_scanning_reason(const void *row)
{
	return edge_reason(&row_of(row)->edges.scanning);
}

static struct wss_value squeeze_get_reason(const void *row)
{
	const char *refusal = row_of(row)->refusal;

	return refusal ? wss_value_text(refusal) : edge_reason(&row_of(row)->edges.paging);
}

static struct wss_value squeeze_get_reserve(const void *row)
{
	if (!row_of(row)->has_memory)
		return wss_value_absent();
	return wss_value_amount(wss_amount_of(row_of(row)->memory.reserve_bytes), WSS_KIND_BYTES);
}

static struct wss_value squeeze_get_margin(const void *row)
{
	struct wss_amount size = row_of(row)->recommended_size_bytes;
	struct wss_amount edge = row_of(row)->edges.paging.edge_bytes;

	if (!size.known || !edge.known || !edge.value)
		return wss_value_absent();
	return (struct wss_value){.kind = WSS_KIND_FACTOR,
				  .real = (double)size.value / (double)edge.value};
}

static struct wss_value squeeze_get_hint(const void *row)
{
	return wss_value_text(row_of(row)->hint);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, squeeze_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, squeeze_get_uuid, "UUID of the guest", false},
	{"action", NULL, "ACTION", -8, squeeze_get_action,
	 "squeezed; with --dry-run what would be done: squeeze, or refused", false},
	{"from_bytes", NULL, "FROM", 8, squeeze_get_from,
	 "Size of the guest before and after, as its balloon leaves it, in bytes", false},
	{"floor_bytes", NULL, "FLOOR", 8, squeeze_get_floor,
	 "Smallest size that is allowed, in bytes", false},
	{"smallest_bytes", NULL, "SMALLEST", 8, squeeze_get_smallest,
	 "Smallest size at which the guest was observed, in bytes", false},
	{"steps", NULL, "STEPS", 5, squeeze_get_steps,
	 "Number of smaller sizes at which it was observed; with --dry-run the largest number",
	 false},
	{"observations", NULL, "OBS", 5, squeeze_get_observations,
	 "Number of observations at all sizes", false},
	{"longest_seconds", NULL, "LONGEST", 8, squeeze_get_longest,
	 "With --dry-run: the time that it takes if no observation is repeated, down to the "
	 "floor, in seconds",
	 false},
	{"scanning_edge_bytes", NULL, "SCANS", 8, squeeze_get_scanning,
	 "Size below which the guest's kernel begins to scan for memory to reclaim: the middle "
	 "of its bounds, in bytes",
	 false},
	{"scanning_low_bytes", NULL, "SCANS-LO", 8, squeeze_get_scanning_low,
	 "Largest size at which it scanned, in bytes", false},
	{"scanning_high_bytes", NULL, "SCANS-HI", 8, squeeze_get_scanning_high,
	 "Smallest size at which it did not scan, in bytes", false},
	{"scanning_reason", NULL, "SCANS WHY", -20, squeeze_get_scanning_reason,
	 "What showed that it scans, or why that is not known", false},
	{"paging_edge_bytes", NULL, "PAGES", 8, squeeze_get_paging,
	 "Size below which the guest begins to page: the middle of its bounds, in bytes",
	 false},
	{"paging_low_bytes", NULL, "PAGES-LO", 8, squeeze_get_paging_low,
	 "Low bound: the largest size at which it paged or, if it is not known to have paged, "
	 "the memory that it could not give up, in bytes",
	 false},
	{"paging_high_bytes", NULL, "PAGES-HI", 8, squeeze_get_paging_high,
	 "High bound: the smallest size at which it did not page, in bytes", false},
	{"reason", NULL, "WHY", -24, squeeze_get_reason,
	 "What showed that it pages, or why there is no edge, or no squeeze", false},
	{"end", NULL, "END", -20, squeeze_get_end, "Why the squeeze ended", false},
	{"reserve_bytes", NULL, "RESERVE", 8, squeeze_get_reserve,
	 "Memory that the guest's kernel keeps from programs and page cache, in bytes", false},
	{"recommended_bytes", NULL, "REC.", 8, squeeze_get_recommended,
	 "Recommended memory by the history, as recommend has it, in bytes", false},
	{"recommended_size_bytes", NULL, "REC.SIZE", 8, squeeze_get_recommended_size,
	 "Size of the whole guest that follows the recommendation: with the reserve, and with memory that "
	 "the guest uses but does not touch; comparable with the edges, in bytes",
	 false},
	{"recommended_reason", NULL, "REC. WHY", -20, squeeze_get_unrecommended,
	 "Why there is no recommendation", false},
	{"margin", NULL, "MARGIN", 6, squeeze_get_margin,
	 "That size divided by the edge of paging", false},
	{"hint", NULL, "HINT", -20, squeeze_get_hint, "Command, or advice, after which the guest is not refused", false},
	{"error", NULL, "ERROR", -20, squeeze_get_error, "Why the guest was not squeezed",
	 false},
	{"used_bytes", NULL, "USED", 8, squeeze_get_used,
	 "Memory that the guest's kernel and programs used at its full size, without page cache, in bytes", false},
	{"cache_bytes", NULL, "CACHE", 8, squeeze_get_cache,
	 "Its page cache at its full size, in bytes", false},
};

const struct wss_report_layout squeeze_layout = {
	.schema = "virt-wss/squeeze/1",
	.array_key = "squeezes",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,from_bytes,scanning_edge_bytes,paging_low_bytes,paging_high_bytes,"
		 "recommended_size_bytes,reason",
	.wide = "domain,action,from_bytes,smallest_bytes,steps,scanning_edge_bytes,"
		"paging_low_bytes,paging_edge_bytes,paging_high_bytes,reserve_bytes,"
		"recommended_bytes,recommended_size_bytes,margin,reason",
};
