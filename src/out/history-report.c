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

static struct wss_value cold_low(const void *row, enum wss_cold_age age)
{
	const struct wss_cold_report *cold = span_of(row)->cold;

	return cold && cold->ages[age].whole && wss_cold_watched(cold, age)
		       ? wss_value_number(cold->ages[age].low_bytes, WSS_KIND_BYTES)
		       : wss_value_absent();
}

static struct wss_value cold_high(const void *row, enum wss_cold_age age)
{
	const struct wss_cold_report *cold = span_of(row)->cold;

	return cold && wss_cold_watched(cold, age) ? wss_value_number(cold->ages[age].high_bytes, WSS_KIND_BYTES)
						   : wss_value_absent();
}

static struct wss_value cold_observed(const void *row, enum wss_cold_age age)
{
	const struct wss_cold_report *cold = span_of(row)->cold;

	return cold ? (struct wss_value){ .kind = WSS_KIND_SHARE,
					  .real = cold->ages[age].observed }
		    : wss_value_absent();
}

#define COLD_GETTERS(name, age)                                                               \
	static struct wss_value span_get_cold_low_##name(const void *row)                     \
	{                                                                                     \
		return cold_low(row, age);                                                    \
	}                                                                                     \
	static struct wss_value span_get_cold_high_##name(const void *row)                    \
	{                                                                                     \
		return cold_high(row, age);                                                   \
	}                                                                                     \
	static struct wss_value span_get_cold_observed_##name(const void *row)                \
	{                                                                                     \
		return cold_observed(row, age);                                               \
	}

COLD_GETTERS(2m, WSS_COLD_2MIN)
COLD_GETTERS(10m, WSS_COLD_10MIN)
COLD_GETTERS(1h, WSS_COLD_1H)
COLD_GETTERS(24h, WSS_COLD_24H)
COLD_GETTERS(never, WSS_COLD_SINCE_WATCHED)

static struct wss_value span_get_cold_watched(const void *row)
{
	const struct wss_cold_report *cold = span_of(row)->cold;

	return cold ? wss_value_number(cold->as_of_ns - cold->since_ns, WSS_KIND_DURATION)
		    : wss_value_absent();
}

/* Of memory that had been idle for that time when the hour or day ended. */
#define COLD_COLUMNS(name, head, time)                                                        \
	{"cold_" #name "_low_bytes", NULL, "LOW-" head, 8, span_get_cold_low_##name,           \
	 "Memory that at its end had certainly been idle for " time                           \
	 ", in bytes; absent unless observed for all of that time",                           \
	 false},                                                                              \
	{"cold_" #name "_high_bytes", NULL, "HIGH-" head, 8, span_get_cold_high_##name,       \
	 "Memory that at its end had not been seen touched for " time ", in bytes", false},   \
	{"cold_" #name "_observed_share", NULL, "SEEN-" head, 8,                              \
	 span_get_cold_observed_##name, "Observed share of that time, 1 = 100%", false}

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
	COLD_COLUMNS(2m, "2M", "2 minutes"),
	COLD_COLUMNS(10m, "10M", "10 minutes"),
	COLD_COLUMNS(1h, "1H", "an hour"),
	COLD_COLUMNS(24h, "24H", "24 hours"),
	COLD_COLUMNS(never, "ALL", "all the time that serve watched it"),
	{"cold_watched_seconds", NULL, "WATCHED", 8, span_get_cold_watched,
	 "How long its memory had been watched at the end, in seconds", false},
};

const struct wss_report_layout wss_history_span_layout = {
	.schema = "virt-wss/history/1",
	.array_key = "spans",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
	.shown = "domain,time,p50_bytes,p95_bytes,max_bytes,samples",
	.wide = "domain,time,method,granularity_bytes,requested_window_seconds,min_bytes,p50_"
		"bytes,"
		"p95_bytes,max_bytes,samples,degraded,cold_24h_low_bytes,cold_24h_high_bytes",
};
