/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history/history-report.h"

/* Windows of larger pages only give upper bounds, and so do their percentiles. */
#define PAGE_BYTES 4096

static const struct wss_history_span *span_of(const void *row)
{
	return row;
}

static struct wss_value span_get_span(const void *row)
{
	return wss_value_number((uint64_t)span_of(row)->seconds, WSS_KIND_AGE);
}

static struct wss_value span_get_observes(const void *row)
{
	return wss_value_text(wss_observes_name(span_of(row)->observes));
}

/* If all samples were degraded, the largest lower bound is the only known figure. */
static struct wss_value size_value(const void *row, uint64_t bytes)
{
	const struct wss_history_span *span = row;
	bool coarse = !span->granularity_bytes.known || span->granularity_bytes.value > PAGE_BYTES;

	if (!span->summary.samples)
		return wss_value_absent();
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 coarse ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT);
}

static struct wss_value span_get_min(const void *row)
{
	return size_value(row, span_of(row)->summary.min_bytes);
}

static struct wss_value percentile_value(const void *row, double p)
{
	return size_value(row, wss_summary_percentile(&span_of(row)->summary, p));
}

static struct wss_value span_get_p50(const void *row)
{
	return percentile_value(row, 0.50);
}

static struct wss_value span_get_p95(const void *row)
{
	return percentile_value(row, 0.95);
}

static struct wss_value span_get_max(const void *row)
{
	return size_value(row, span_of(row)->summary.max_bytes);
}

static const void *cold_of(const void *row)
{
	return span_of(row)->cold;
}

static struct wss_value span_get_cold_low(const void *row)
{
	const struct wss_cold_report *cold = cold_of(row);

	return cold && cold->ages[WSS_COLD_24H].whole
		       ? wss_value_amount(wss_cold_low(cold, WSS_COLD_24H), WSS_KIND_BYTES)
		       : wss_value_absent();
}

static struct wss_value span_get_cold_high(const void *row)
{
	const struct wss_cold_report *cold = cold_of(row);

	return cold ? wss_value_amount(wss_cold_high(cold, WSS_COLD_24H), WSS_KIND_BYTES)
		    : wss_value_absent();
}

static struct wss_value span_get_cold_watched(const void *row)
{
	const struct wss_cold_report *cold = span_of(row)->cold;

	return cold ? wss_value_number(cold->as_of_ns - cold->since_ns, WSS_KIND_DURATION)
		    : wss_value_absent();
}

#define FIELD(member, kind) WSS_FIELD(struct wss_history_span, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"time", NULL, "TIME", -20, FIELD(start, TEXT), "Start of the hour or day, UTC"},
	{"span_seconds", NULL, "SPAN", 6, WSS_GET(span_get_span),
	 "Length of the hour or day, in seconds"},
	{"method", NULL, "METHOD", -6, FIELD(method, TEXT), "Name of the method that measured it"},
	{"observes", NULL, "OBSERVES", -9, WSS_GET(span_get_observes),
	 "Kind of use observed: accesses, writes or residency"},
	{"granularity_bytes", NULL, "GRAN", 5, FIELD(granularity_bytes, BYTES),
	 "Granularity: the largest page-table entry seen, in bytes"},
	{"requested_window_seconds", NULL, "REQUESTED", 9, FIELD(requested_window_ns, DURATION),
	 "Requested length of the windows, in seconds"},
	{"min_bytes", NULL, "MIN", 11, WSS_GET(span_get_min), "Smallest working set, in bytes"},
	{"p50_bytes", NULL, "P50", 11, WSS_GET(span_get_p50),
	 "Median of the working sets, in bytes"},
	{"p95_bytes", NULL, "P95", 11, WSS_GET(span_get_p95),
	 "95th percentile of the working sets, in bytes"},
	{"max_bytes", NULL, "MAX", 11, WSS_GET(span_get_max), "Largest working set, in bytes"},
	{"samples", NULL, "N", 5, FIELD(summary.samples, COUNT),
	 "Samples of good quality, a count"},
	{"degraded", NULL, "DEGRADED", 8, FIELD(summary.degraded, COUNT),
	 "Degraded samples, a count; only the largest figure includes them"},
	{"cold_24h_low_bytes", NULL, "LOW-24H", 8, WSS_GET(span_get_cold_low),
	 "Memory that at its end had certainly been idle for 24 hours, in bytes; absent unless observed for all of that time"},
	{"cold_24h_high_bytes", NULL, "HIGH-24H", 8, WSS_GET(span_get_cold_high),
	 "Memory that at its end had not been seen touched for 24 hours, in bytes"},
	{"cold_24h_observed_share", NULL, "SEEN-24H", 8,
	 WSS_FIELD_OF(cold_of, struct wss_cold_report, ages[WSS_COLD_24H].observed, SHARE),
	 "Observed share of that time, 1 = 100%"},
	{"cold_watched_seconds", NULL, "WATCHED", 8, WSS_GET(span_get_cold_watched),
	 "How long its memory had been watched at the end, in seconds"},
};

const struct wss_report_layout wss_history_span_layout = {
	.schema = "virt-wss/history/1",
	.array_key = "spans",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,time,p50_bytes,p95_bytes,max_bytes,samples",
	.wide = "domain,time,method,granularity_bytes,requested_window_seconds,min_bytes,p50_bytes,"
		"p95_bytes,max_bytes,samples,degraded,cold_24h_low_bytes,cold_24h_high_bytes",
};
