/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include "base/number.h"

static const struct recommend_row *cast(const void *row)
{
	return row;
}

static struct wss_value get_domain(const void *row)
{
	return wss_value_text(cast(row)->domain);
}

static struct wss_value get_uuid(const void *row)
{
	return wss_value_text(cast(row)->uuid);
}

static struct wss_value get_status(const void *row)
{
	return wss_value_text(cast(row)->status);
}

static struct wss_value get_error(const void *row)
{
	return wss_value_text(cast(row)->error);
}

static struct wss_value get_confidence(const void *row)
{
	return wss_value_text(
		cast(row)->has_series ? wss_confidence_name(cast(row)->sizing.confidence) : NULL);
}

static struct wss_value get_method(const void *row)
{
	return wss_value_text(cast(row)->has_series ? cast(row)->series.method : NULL);
}

/* Figures of the series, absent without one. */
#define SERIES(name, kind, value)                                                       \
	static struct wss_value get_##name(const void *row)                             \
	{                                                                               \
		return cast(row)->has_series ? wss_value_number(cast(row)->value, kind) \
					     : wss_value_absent();                      \
	}

#define AMOUNT(name, value)                                            \
	static struct wss_value get_##name(const void *row)            \
	{                                                              \
		return wss_value_amount(cast(row)->value, WSS_KIND_BYTES); \
	}

SERIES(samples, WSS_KIND_COUNT, series.summary.samples)
SERIES(degraded, WSS_KIND_COUNT, series.summary.degraded)
SERIES(granularity, WSS_KIND_BYTES, series.granularity_bytes)
SERIES(window, WSS_KIND_DURATION, series.window_ns)
SERIES(headroom, WSS_KIND_COUNT, rule.headroom_percent)
SERIES(minimum, WSS_KIND_BYTES, rule.minimum_bytes)
SERIES(from_peak, WSS_KIND_BOOL, sizing.from_peak)
AMOUNT(held, held_bytes)
AMOUNT(assigned, assigned_bytes)
AMOUNT(p50, sizing.p50_bytes)
AMOUNT(p95, sizing.p95_bytes)
AMOUNT(p99, sizing.p99_bytes)
AMOUNT(peak, sizing.peak_bytes)
AMOUNT(base, sizing.base_bytes)
AMOUNT(curve, curve_bytes)
AMOUNT(recommended, sizing.recommended_bytes)
AMOUNT(reclaimable, sizing.reclaimable_bytes)
AMOUNT(what_if, what_if_bytes)

static struct wss_value get_since(const void *row)
{
	return cast(row)->has_series ? wss_value_time(cast(row)->series.summary.first)
				     : wss_value_absent();
}

static struct wss_value get_last(const void *row)
{
	return cast(row)->has_series ? wss_value_time(cast(row)->series.summary.last)
				     : wss_value_absent();
}

static struct wss_value value_share(double share)
{
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = share };
}

static struct wss_value get_percentile(const void *row)
{
	return cast(row)->has_series ? value_share(cast(row)->rule.percentile) : wss_value_absent();
}

/* For a table, which has one column for both: what a figure holds for, or that it is the peak. */
static struct wss_value value_share_or_peak(double share, bool from_peak)
{
	return from_peak ? wss_value_text("peak") : value_share(share);
}

static struct wss_value get_base_is(const void *row)
{
	return cast(row)->sizing.base_bytes.known
		       ? value_share_or_peak(cast(row)->rule.percentile,
					     cast(row)->sizing.from_peak)
		       : wss_value_absent();
}

static bool has_what_if(const void *row)
{
	return cast(row)->what_if_bytes.known && cast(row)->sizing.confidence != WSS_CONFIDENCE_NONE;
}

static struct wss_value get_exceeded(const void *row)
{
	return has_what_if(row) ? value_share(cast(row)->exceeded) : wss_value_absent();
}

static struct wss_value get_faults(const void *row)
{
	if (!has_what_if(row) || !cast(row)->has_missrate)
		return wss_value_absent();
	return wss_value_number(wss_u64_from_double(cast(row)->faults_per_second + 0.5), WSS_KIND_COUNT);
}

static struct wss_value get_loss(const void *row)
{
	if (!has_what_if(row) || !cast(row)->has_missrate)
		return wss_value_absent();
	return value_share(cast(row)->loss);
}

static struct wss_value get_curve_beyond(const void *row)
{
	if (!cast(row)->curve_bytes.known)
		return wss_value_absent();
	return wss_value_number(cast(row)->curve_is_beyond, WSS_KIND_BOOL);
}

static struct wss_value get_bound(const void *row)
{
	if (!has_what_if(row) || !cast(row)->has_missrate)
		return wss_value_absent();
	return wss_value_number(cast(row)->bound, WSS_KIND_BOOL);
}

static const struct wss_column columns[] = {
	{ "domain", NULL, "DOMAIN", -12, get_domain },
	{ "uuid", NULL, NULL, 0, get_uuid },
	{ "status", NULL, "STATUS", -9, get_status },
	{ "confidence", NULL, "CONFIDENCE", -10, get_confidence },
	{ "samples", NULL, "SAMPLES", 7, get_samples },
	{ "degraded_samples", NULL, NULL, 0, get_degraded },
	{ "since", NULL, NULL, 0, get_since },
	{ "last", NULL, NULL, 0, get_last },
	{ "method", NULL, NULL, 0, get_method },
	{ "granularity_bytes", NULL, NULL, 0, get_granularity },
	{ "window_seconds", NULL, NULL, 0, get_window },
	{ "assigned_bytes", NULL, "ASSIGNED", 8, get_assigned },
	{ "held_bytes", NULL, "HELD", 8, get_held },
	{ "p50_bytes", NULL, "STEADY", 8, get_p50 },
	{ "p95_bytes", NULL, NULL, 0, get_p95 },
	{ "p99_bytes", NULL, "P99", 8, get_p99 },
	{ "peak_bytes", NULL, "PEAK", 8, get_peak },
	{ "percentile", NULL, NULL, 0, get_percentile },
	{ "from_peak", NULL, NULL, 0, get_from_peak },
	{ NULL, NULL, "PCTILE", 6, get_base_is },
	{ "base_bytes", NULL, "BASE", 8, get_base },
	{ "headroom_percent", NULL, NULL, 0, get_headroom },
	{ "minimum_bytes", NULL, NULL, 0, get_minimum },
	{ "curve_bytes", NULL, "BY-CURVE", 8, get_curve },
	{ "curve_is_beyond", NULL, NULL, 0, get_curve_beyond },
	{ "recommended_bytes", NULL, "RECOMMEND", 9, get_recommended },
	{ "reclaimable_bytes", NULL, "RECLAIM", 8, get_reclaimable },
	{ "what_if_bytes", NULL, NULL, 0, get_what_if },
	{ "what_if_exceeded", NULL, "EXCEEDED", 8, get_exceeded },
	{ "what_if_faults_per_second", NULL, "FAULTS/S", 8, get_faults },
	{ "what_if_loss", NULL, "LOSS", 6, get_loss },
	{ "what_if_is_bound", NULL, NULL, 0, get_bound },
	{ "error", NULL, NULL, 0, get_error },
};

const struct wss_report_layout recommend_layout = {
	.schema = "virt-wss/recommendations/1",
	.array_key = "recommendations",
	.columns = columns,
	.n_columns = sizeof(columns) / sizeof(columns[0]),
};

static const struct recommend_host *host_of(const void *row)
{
	return row;
}

static struct wss_value get_guests(const void *row)
{
	return wss_value_number(host_of(row)->guests, WSS_KIND_COUNT);
}

static struct wss_value get_unknown(const void *row)
{
	return wss_value_number(host_of(row)->unknown, WSS_KIND_COUNT);
}

static struct wss_value get_hours(const void *row)
{
	return wss_value_number(host_of(row)->hours, WSS_KIND_COUNT);
}

static struct wss_value get_probability(const void *row)
{
	return value_share(host_of(row)->probability);
}

static struct wss_value get_needed_is(const void *row)
{
	return value_share_or_peak(host_of(row)->probability, host_of(row)->from_peak);
}

static struct wss_value get_host_from_peak(const void *row)
{
	return host_of(row)->needed_bytes.known
		       ? wss_value_number(host_of(row)->from_peak, WSS_KIND_BOOL)
		       : wss_value_absent();
}

#define HOST(name)                                                                    \
	static struct wss_value get_##name##_bytes(const void *row)                   \
	{                                                                             \
		return wss_value_amount(host_of(row)->name##_bytes, WSS_KIND_BYTES); \
	}

HOST(host)
HOST(assigned)
HOST(wss)
HOST(needed)
HOST(overhead)
HOST(fits)

/* How many bytes may be given to guests for each that they need together. */
static struct wss_value get_overcommit(const void *row)
{
	const struct recommend_host *host = host_of(row);

	if (!host->needed_bytes.known || !host->needed_bytes.value || !host->assigned_bytes.known)
		return wss_value_absent();
	return value_share((double)host->assigned_bytes.value / (double)host->needed_bytes.value);
}

static const struct wss_column host_columns[] = {
	{ "guests", NULL, "GUESTS", 6, get_guests },
	{ "unknown_guests", NULL, "UNKNOWN", 7, get_unknown },
	{ "host_bytes", NULL, "HOST", 8, get_host_bytes },
	{ "assigned_bytes", NULL, "ASSIGNED", 8, get_assigned_bytes },
	{ "wss_bytes", NULL, "WSS", 8, get_wss_bytes },
	{ "hours", NULL, "HOURS", 5, get_hours },
	{ "probability", NULL, NULL, 0, get_probability },
	{ NULL, NULL, "PROB", 6, get_needed_is },
	{ "from_peak", NULL, NULL, 0, get_host_from_peak },
	{ "needed_bytes", NULL, "NEEDED", 8, get_needed_bytes },
	{ "overhead_bytes", NULL, "OVERHEAD", 8, get_overhead_bytes },
	{ "overcommit", NULL, "OVERCOMMIT", 10, get_overcommit },
	{ "fits_bytes", NULL, "FITS", 8, get_fits_bytes },
};

const struct wss_report_layout recommend_host_layout = {
	.schema = "virt-wss/recommendations/1",
	.array_key = "host",
	.columns = host_columns,
	.n_columns = sizeof(host_columns) / sizeof(host_columns[0]),
};
