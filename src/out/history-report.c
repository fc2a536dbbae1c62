/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/history-report.h"

/* Windows of larger pages only give upper bounds, and so do their percentiles. */
#define PAGE_BYTES 4096

static const struct wss_history_span *span_of(const void *row)
{
	return row;
}

static struct wss_value span_get_domain(const void *row)
{
	return wss_value_text(span_of(row)->domain);
}

static struct wss_value span_get_uuid(const void *row)
{
	return wss_value_text(span_of(row)->uuid);
}

static struct wss_value span_get_time(const void *row)
{
	return wss_value_time(span_of(row)->start);
}

static struct wss_value span_get_span(const void *row)
{
	return wss_value_number((uint64_t)span_of(row)->seconds, WSS_KIND_AGE);
}

static struct wss_value span_get_method(const void *row)
{
	return wss_value_text(span_of(row)->method);
}

static struct wss_value span_get_observes(const void *row)
{
	return wss_value_text(wss_observes_name(span_of(row)->observes));
}

static struct wss_value span_get_granularity(const void *row)
{
	return wss_value_amount(span_of(row)->granularity_bytes, WSS_KIND_BYTES);
}

static struct wss_value span_get_requested(const void *row)
{
	return wss_value_number(span_of(row)->requested_window_ns, WSS_KIND_DURATION);
}

static struct wss_value span_get_samples(const void *row)
{
	return wss_value_number(span_of(row)->summary.samples, WSS_KIND_COUNT);
}

static struct wss_value span_get_degraded(const void *row)
{
	return wss_value_number(span_of(row)->summary.degraded, WSS_KIND_COUNT);
}

/* If all samples were degraded, the largest lower bound is the only known figure. */
static struct wss_value size_value(const void *row, uint64_t bytes)
{
	const struct wss_history_span *span = row;
	bool coarse =
		!span->granularity_bytes.known || span->granularity_bytes.value > PAGE_BYTES;

	if (!span->summary.samples)
		return wss_value_absent();
	return wss_value_bounded(wss_value_number(bytes, WSS_KIND_BYTES),
				 coarse ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT);
}

static struct wss_value span_get_min(const void *row)
{
	return size_value(row, span_of(row)->summary.min_bytes);
}

/* The histogram returns the edge of a bucket, which may exceed the largest measured value. */
static struct wss_value percentile_value(const void *row, double p)
{
	const struct wss_summary *summary = &span_of(row)->summary;
	uint64_t bytes = wss_histogram_percentile(&summary->sizes, p);

	return size_value(row, bytes < summary->max_bytes ? bytes : summary->max_bytes);
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

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, span_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, span_get_uuid, "UUID of the guest", false},
	{"time", NULL, "TIME", -20, span_get_time, "Start of the hour or day, UTC", false},
	{"span_seconds", NULL, "SPAN", 6, span_get_span,
	 "Length of the hour or day, in seconds", false},
	{"method", NULL, "METHOD", -6, span_get_method, "Name of the method that measured it",
	 false},
	{"observes", NULL, "OBSERVES", -9, span_get_observes,
	 "Kind of use observed: accesses, writes or residency", false},
	{"granularity_bytes", NULL, "GRAN", 5, span_get_granularity,
	 "Granularity: the largest page-table entry seen, in bytes", false},
	{"requested_window_seconds", NULL, "REQUESTED", 9, span_get_requested,
	 "Requested length of the windows, in seconds", false},
	{"min_bytes", NULL, "MIN", 11, span_get_min, "Smallest working set, in bytes", false},
	{"p50_bytes", NULL, "P50", 11, span_get_p50, "Median of the working sets, in bytes",
	 false},
	{"p95_bytes", NULL, "P95", 11, span_get_p95,
	 "95th percentile of the working sets, in bytes", false},
	{"max_bytes", NULL, "MAX", 11, span_get_max, "Largest working set, in bytes", false},
	{"samples", NULL, "N", 5, span_get_samples, "Samples of good quality, a count", false},
	{"degraded", NULL, "DEGRADED", 8, span_get_degraded,
	 "Degraded samples, a count; only the largest figure includes them", false},
};

const struct wss_report_layout wss_history_span_layout = {
	.schema = "virt-wss/history/1",
	.array_key = "spans",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,time,p50_bytes,p95_bytes,max_bytes,samples",
	.wide = "domain,time,method,granularity_bytes,requested_window_seconds,min_bytes,p50_"
		"bytes,"
		"p95_bytes,max_bytes,samples,degraded",
};
