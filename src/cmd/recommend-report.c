/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"
#include "cmd/recommend-backtest.h"
#include "cmd/config-report.h"
#include "cmd/recommend-evidence.h"
#include "cmd/recommend-host.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "out/json.h"

static const struct recommend_row *recommend_row_of(const void *row)
{
	return row;
}

static const struct wss_advice *advice_of(const void *row)
{
	return &recommend_row_of(row)->advice;
}

static struct wss_value recommend_get_domain(const void *row)
{
	return wss_value_text(recommend_row_of(row)->domain);
}

static struct wss_value recommend_get_uuid(const void *row)
{
	return wss_value_text(recommend_row_of(row)->uuid);
}

static struct wss_value recommend_get_status(const void *row)
{
	return wss_value_text(wss_advice_status_name(advice_of(row)->status));
}

static struct wss_value recommend_get_error(const void *row)
{
	return wss_value_text(recommend_row_of(row)->error);
}

static struct wss_value recommend_get_confidence(const void *row)
{
	return wss_value_text(
		advice_of(row)->has_series ? wss_confidence_name(advice_of(row)->sizing.confidence) : NULL);
}

static struct wss_value recommend_get_method(const void *row)
{
	return wss_value_text(advice_of(row)->has_series ? advice_of(row)->series.method : NULL);
}

/* Figures of the series; absent if there is none. */
#define SERIES(name, kind, value)                                                             \
	static struct wss_value recommend_get_##name(const void *row)                         \
	{                                                                                     \
		return advice_of(row)->has_series                                             \
			       ? wss_value_number(advice_of(row)->value, kind)                \
			       : wss_value_absent();                                          \
	}

#define AMOUNT(name, value)                                                                   \
	static struct wss_value recommend_get_##name(const void *row)                         \
	{                                                                                     \
		return wss_value_amount(advice_of(row)->value, WSS_KIND_BYTES);               \
	}

/* Windows of pages larger than 4 KiB give upper bounds. */
#define WORKING_SET(name, value)                                                              \
	static struct wss_value recommend_get_##name(const void *row)                         \
	{                                                                                     \
		return wss_value_bounded(                                                     \
			wss_value_amount(advice_of(row)->value, WSS_KIND_BYTES),              \
			wss_bound_of_granularity(advice_of(row)->series.granularity_bytes));           \
	}

/* While it is too early, the table shows how many windows are needed. */
static struct wss_value recommend_get_samples(const void *row)
{
	static _Thread_local char text[40];
	struct wss_value value;

	if (!advice_of(row)->has_series)
		return wss_value_absent();
	value = wss_value_number(advice_of(row)->series.summary.samples, WSS_KIND_COUNT);
	if (advice_of(row)->sizing.confidence == WSS_CONFIDENCE_NONE) {
		snprintf(text, sizeof(text), "%" PRIu64 " of %d", value.number,
			 WSS_SIZING_SAMPLES_MIN);
		value.text = text;
	}
	return value;
}

SERIES(degraded, WSS_KIND_COUNT, series.summary.degraded)
SERIES(other, WSS_KIND_COUNT, series.other_windows)
SERIES(granularity, WSS_KIND_BYTES, series.granularity_bytes)
SERIES(window, WSS_KIND_DURATION, series.window_ns)
SERIES(headroom, WSS_KIND_PERCENT, rule.headroom_percent)
SERIES(minimum, WSS_KIND_BYTES, rule.minimum_bytes)
SERIES(from_peak, WSS_KIND_BOOL, sizing.from_peak)
AMOUNT(held, held_bytes)

/* As its windows found it; of a guest that was never measured as libvirt says. */
static struct wss_value recommend_get_assigned(const void *row)
{
	struct wss_amount measured = advice_of(row)->assigned_bytes;

	return wss_value_amount(measured.known || !recommend_row_of(row)->active
					? measured
					: recommend_row_of(row)->size.assigned_bytes,
				WSS_KIND_BYTES);
}

static struct wss_value recommend_get_state(const void *row)
{
	const struct recommend_row *guest = recommend_row_of(row);

	if (guest->error)
		return wss_value_absent();
	return wss_value_text(!guest->active			 ? "shut off"
			      : guest->size.paused_bytes.known ? "paused"
							       : "running");
}

WORKING_SET(p50, sizing.p50_bytes)
WORKING_SET(p95, sizing.p95_bytes)
WORKING_SET(p99, sizing.p99_bytes)
WORKING_SET(peak, sizing.peak_bytes)
WORKING_SET(base, sizing.base_bytes)
AMOUNT(curve, curve.bytes)
AMOUNT(grown, sizing.grown_bytes)
AMOUNT(recommended, sizing.recommended_bytes)
AMOUNT(reclaimable, sizing.reclaimable_bytes)
AMOUNT(what_if, what_if.bytes)

static struct wss_value recommend_get_since(const void *row)
{
	return advice_of(row)->has_series ? wss_value_time(advice_of(row)->series.summary.first)
				     : wss_value_absent();
}

static struct wss_value recommend_get_last(const void *row)
{
	return advice_of(row)->has_series ? wss_value_time(advice_of(row)->series.summary.last)
				     : wss_value_absent();
}

struct wss_value recommend_value_share(double share)
{
	return (struct wss_value){ .kind = WSS_KIND_SHARE, .real = share };
}

static struct wss_value recommend_get_growth(const void *row)
{
	return advice_of(row)->has_series && advice_of(row)->sizing.growth.known
		       ? recommend_value_share(advice_of(row)->sizing.growth.per_doubling)
		       : wss_value_absent();
}

static struct wss_value recommend_get_percentile(const void *row)
{
	return advice_of(row)->has_series ? recommend_value_share(advice_of(row)->rule.percentile) : wss_value_absent();
}

struct wss_value recommend_value_share_or_peak(double share, bool from_peak)
{
	return from_peak ? wss_value_text("peak") : recommend_value_share(share);
}

static struct wss_value recommend_get_base_is(const void *row)
{
	return advice_of(row)->sizing.base_bytes.known
		       ? recommend_value_share_or_peak(advice_of(row)->rule.percentile,
					     advice_of(row)->sizing.from_peak)
		       : wss_value_absent();
}

static bool has_what_if(const void *row)
{
	return advice_of(row)->what_if.bytes.known && advice_of(row)->sizing.confidence != WSS_CONFIDENCE_NONE;
}

static struct wss_value recommend_get_exceeded(const void *row)
{
	return has_what_if(row) ? recommend_value_share(advice_of(row)->what_if.exceeded) : wss_value_absent();
}

static enum wss_bound what_if_bound(const void *row)
{
	return advice_of(row)->what_if.bound ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT;
}

static struct wss_value recommend_get_faults(const void *row)
{
	if (!has_what_if(row) || !advice_of(row)->curve.known)
		return wss_value_absent();
	return wss_value_bounded(
		wss_value_number(wss_u64_from_double(advice_of(row)->what_if.faults_per_second + 0.5),
				 WSS_KIND_COUNT),
		what_if_bound(row));
}

static struct wss_value recommend_get_loss(const void *row)
{
	if (!has_what_if(row) || !advice_of(row)->curve.known)
		return wss_value_absent();
	return wss_value_bounded(recommend_value_share(advice_of(row)->what_if.loss), what_if_bound(row));
}

static struct wss_value recommend_get_curve_beyond(const void *row)
{
	if (!advice_of(row)->curve.known)
		return wss_value_absent();
	return wss_value_number(advice_of(row)->curve.is_beyond, WSS_KIND_BOOL);
}

static struct wss_value recommend_get_bound(const void *row)
{
	if (!has_what_if(row) || !advice_of(row)->curve.known)
		return wss_value_absent();
	return wss_value_number(advice_of(row)->what_if.bound, WSS_KIND_BOOL);
}

static struct wss_value recommend_get_reason(const void *row)
{
	return advice_of(row)->sizing.recommended_bytes.known
		       ? wss_value_text(wss_sizing_reason_name(advice_of(row)->sizing.reason))
		       : wss_value_absent();
}

static struct wss_value recommend_get_next(const void *row)
{
	return advice_of(row)->sizing.next_bytes.known
		       ? wss_value_text(wss_sizing_reason_name(advice_of(row)->sizing.next_reason))
		       : wss_value_absent();
}

AMOUNT(next_bytes, sizing.next_bytes)
AMOUNT(unrounded, sizing.unrounded_bytes)

static struct wss_value recommend_get_predicted_loss(const void *row)
{
	const struct wss_advice_loss *loss = &advice_of(row)->loss;

	return loss->known ? wss_value_bounded(recommend_value_share(loss->share),
					       loss->bound ? WSS_BOUND_AT_MOST : WSS_BOUND_EXACT)
			   : wss_value_absent();
}

static struct wss_value recommend_get_loss_bound(const void *row)
{
	const struct wss_advice_loss *loss = &advice_of(row)->loss;

	return loss->known ? wss_value_number(loss->bound, WSS_KIND_BOOL) : wss_value_absent();
}

static struct wss_value recommend_get_flavour(const void *row)
{
	const struct wss_advice *advice = advice_of(row);

	return advice->rule.rounding && advice->sizing.recommended_bytes.known
		       ? wss_value_text(wss_rounding_name(advice->rule.rounding,
							  advice->sizing.recommended_bytes.value))
		       : wss_value_absent();
}

/* What its configuration costs; an empty list if nothing is to be changed. */
static void recommend_write_config(const struct recommend_row *row, struct wss_json *json)
{
	struct wss_json list;

	if (!row->has_findings)
		return;
	list = wss_json_list(json->stream, json, wss_config_layout.array_key);
	for (size_t i = 0; i < row->n_findings; i++) {
		const struct wss_config_row finding = {.finding = &row->findings[i]};

		wss_json_row(json->stream, &list, NULL, &wss_config_layout, &finding);
	}
	wss_json_list_end(&list);
}

/* Writes "week": the largest working set of each hour of the week, null where none was measured. */
static void recommend_write_week(const struct wss_advice *advice, struct wss_json *json)
{
	struct wss_json week, list;

	if (!advice->has_series)
		return;
	week = wss_json_object(json->stream, json, "week");
	list = wss_json_list(json->stream, &week, "set_bytes");
	for (size_t i = 0; i < WSS_ADVICE_WEEK_HOURS; i++) {
		struct wss_value value = wss_value_number(advice->week_bytes[i], WSS_KIND_BYTES);

		if (advice->week_bytes[i])
			wss_json_value(&list, NULL, &value);
		else
			wss_json_null(&list, NULL);
	}
	wss_json_list_end(&list);
	wss_json_object_end(&week);
}

static void recommend_write_extra(const void *row, struct wss_json *json)
{
	recommend_write_config(recommend_row_of(row), json);
	recommend_write_week(advice_of(row), json);
}

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, recommend_get_domain, "Name of the guest", false},
	{"uuid", NULL, "UUID", -36, recommend_get_uuid, "UUID of the guest", false},
	{"status", NULL, "STATUS", -9, recommend_get_status,
	 "ok; too early (too few windows); unknown (no window); opted out; failed", false},
	{"state", NULL, "STATE", -8, recommend_get_state, "running, paused or shut off", false},
	{"confidence", NULL, "CONFIDENCE", -10, recommend_get_confidence,
	 "How sure the recommendation is: none, low, medium or high", false},
	{"samples", NULL, "SAMPLES", 7, recommend_get_samples,
	 "Windows that it is based on, a count; if too few, also how many are needed", false},
	{"degraded_samples", NULL, "DEGRADED", 8, recommend_get_degraded,
	 "Degraded windows that were left out, a count", false},
	{"since", NULL, "SINCE", -20, recommend_get_since, "When the first window was, UTC",
	 false},
	{"last", NULL, "LAST", -20, recommend_get_last, "When the last window was, UTC",
	 false},
	{"method", NULL, "METHOD", -6, recommend_get_method,
	 "Name of the method that measured the windows", false},
	{"granularity_bytes", NULL, "GRAN", 5, recommend_get_granularity,
	 "Granularity of the windows, in bytes", false},
	{"window_seconds", NULL, "WINDOW", 7, recommend_get_window,
	 "Length of the windows, in seconds", false},
	{"assigned_bytes", NULL, "ASSIGNED", 8, recommend_get_assigned,
	 "Maximum memory of the guest, in bytes", false},
	{"held_bytes", NULL, "HELD", 8, recommend_get_held,
	 "Guest memory that is resident on the host, in bytes", false},
	{"p50_bytes", NULL, "STEADY", 11, recommend_get_p50, "Median working set, in bytes",
	 false},
	{"p95_bytes", NULL, "P95", 11, recommend_get_p95,
	 "95th percentile of the working set, in bytes", false},
	{"p99_bytes", NULL, "P99", 11, recommend_get_p99,
	 "99th percentile of the working set, in bytes", false},
	{"peak_bytes", NULL, "PEAK", 11, recommend_get_peak, "Largest working set, in bytes",
	 false},
	{"percentile", NULL, "PERCENTILE", 10, recommend_get_percentile,
	 "Requested percentile, as a share, 1 = 100%", false},
	{"from_peak", NULL, "FROM-PEAK", -9, recommend_get_from_peak,
	 "Whether the peak is used instead, because there are too few windows", false},
	{"base_is", NULL, "PCTILE", 6, recommend_get_base_is, "The percentile, or peak", true},
	{"base_bytes", NULL, "BASE", 11, recommend_get_base,
	 "Upper bound of that percentile with 95% certainty, or the peak, in bytes", false},
	{"headroom_percent", NULL, "HEADROOM", 8, recommend_get_headroom,
	 "Headroom on top of the base, in percent", false},
	{"minimum_bytes", NULL, "MINIMUM", 8, recommend_get_minimum,
	 "Smallest size to recommend, in bytes", false},
	{"curve_bytes", NULL, "BY-CURVE", 8, recommend_get_curve,
	 "Smallest size that loses no more time to faults than is allowed, in bytes", false},
	{"curve_is_beyond", NULL, "BEYOND", -6, recommend_get_curve_beyond,
	 "Whether that size is larger than what was measured", false},
	{"recommended_bytes", NULL, "RECOMMEND", 9, recommend_get_recommended,
	 "Recommended memory size, in bytes", false},
	{"reclaimable_bytes", NULL, "RECLAIM", 8, recommend_get_reclaimable,
	 "Memory beyond the recommended size, that a smaller balloon would return to the host, in bytes", false},
	{"what_if_bytes", NULL, "WHAT-IF", 8, recommend_get_what_if,
	 "Size given by --what-if, in bytes", false},
	{"what_if_exceeded", NULL, "EXCEEDED", 8, recommend_get_exceeded,
	 "Windows whose working set was larger, as a share, 1 = 100%", false},
	{"what_if_faults_per_second", NULL, "FAULTS/S", 8, recommend_get_faults,
	 "Predicted faults at that size that read a page in again, a count per second", false},
	{"what_if_loss", NULL, "LOSS", 7, recommend_get_loss,
	 "Predicted time lost to them, as a share, 1 = 100%; < where it is an upper bound",
	 false},
	{"what_if_is_bound", NULL, "BOUND", -5, recommend_get_bound,
	 "Whether the last two are upper bounds", false},
	{"error", NULL, "ERROR", -30, recommend_get_error,
	 "Why the guest could not be examined", false},
	{"growth_per_doubling", NULL, "GROWTH", 7, recommend_get_growth,
	 "Growth at the end of the windows when time doubles, as a share, 1 = 100%", false},
	{"grown_bytes", NULL, "GROWN", 8, recommend_get_grown,
	 "Base extrapolated to five minutes if the set still grew, in bytes", false},
	{"other_samples", NULL, "OTHER", 7, recommend_get_other,
	 "Windows of another method, granularity or length that were left out, a count",
	 false},
	{"cold_status", NULL, "COLD", -9, recommend_get_cold_status,
	 "Whether memory that was idle for 24 hours is known: ok; gaps (part of that time was not "
	 "observed) or too early (watched for less): only an upper bound; stale (last seen over an "
	 "hour ago); unwatched (no serve --continuous, or not running)",
	 false},
	{"cold_24h_low_bytes", NULL, "IDLE-LOW", 8, recommend_get_cold_low,
	 "Memory that was certainly idle for 24 hours and can be reclaimed, in bytes", false},
	{"cold_24h_high_bytes", NULL, "IDLE-HIGH", 9, recommend_get_cold_high,
	 "Memory that was not seen touched in 24 hours, an upper limit only, in bytes", false},
	{"cold_24h_observed_share", NULL, "OBSERVED", 8, recommend_get_cold_observed,
	 "Observed share of those 24 hours, 1 = 100%", false},
	{"cold_watched_seconds", NULL, "WATCHED", 8, recommend_get_cold_watched,
	 "How long its memory had been watched, in seconds", false},
	{"cold_time", NULL, "COLD-TIME", -20, recommend_get_cold_time,
	 "When its ages were last stored, UTC", false},
	{"reason", NULL, "REASON", -15, recommend_get_reason,
	 "What binds the recommended size: peak, percentile, trend (grows from day to day), boot, held "
	 "(an earlier size is kept), miss-rate curve, growth (beyond the windows), coldness (used in the last 24 hours), pressure (had too little), minimum, rounding, maximum",
	 false},
	{"next_reason", NULL, "NEXT", -15, recommend_get_next,
	 "The reason that comes next: one of those of REASON, or the last 24 hours", false},
	{"next_bytes", NULL, "NEXT-SIZE", 9, recommend_get_next_bytes,
	 "The size that this would give, in bytes", false},
	{"learned_bytes", NULL, "LEARNED", 8, recommend_get_learned_target,
	 "Size learned from the guest's past, in bytes; absent: by percentile and headroom", false},
	{"lower_bytes", NULL, "LOWER", 8, recommend_get_learned_lower,
	 "What the last 24 measured hours needed, at most the learned size: less costs something, in bytes",
	 false},
	{"upper_bytes", NULL, "UPPER", 8, recommend_get_learned_upper,
	 "Size above which the guest has more than it is worth to keep, in bytes", false},
	{"boot_bytes", NULL, "BOOT", 8, recommend_get_learned_boot,
	 "Largest working set in the first hour after a gap, in bytes", false},
	{"learned_span_seconds", NULL, "L-SPAN", 7, recommend_get_learned_span,
	 "Measured hours that the learned rule looks at, in seconds", false},
	{"learned_percentile", NULL, "L-PCTILE", 8, recommend_get_learned_percentile,
	 "Percentile of these hours, as a share, 1 = 100%", false},
	{"learned_margin_share", NULL, "L-MARGIN", 8, recommend_get_learned_margin,
	 "Margin of the learned rule, as a share", false},
	{"learned_hours", NULL, "L-HOURS", 7, recommend_get_learned_hours,
	 "Measured hours that it was learned from, a count", false},
	{"trend_per_day", NULL, "TREND", 6, recommend_get_trend,
	 "Growth from day to day, as a share, 1 = 100%; 0: none was found", false},
	{"unrounded_bytes", NULL, "UNROUNDED", 9, recommend_get_unrounded,
	 "Size before --flavours or --step, in bytes", false},
	{"flavour", NULL, "FLAVOUR", -12, recommend_get_flavour,
	 "Name of the recommended flavour; absent: it has none, or the size is none of them", false},
	{"used_24h_bytes", NULL, "USED-24H", 8, recommend_get_used,
	 "Memory that was certainly used in the last 24 hours, in bytes; absent: not watched page by page",
	 false},
	{"left_out_bytes", NULL, "LEFT-OUT", 8, recommend_get_left_out,
	 "Part of that which the recommended size leaves out, in bytes", false},
	{"loss_share", NULL, "R-LOSS", 7, recommend_get_predicted_loss,
	 "Time that the recommended size is predicted to lose to faults, as a share, 1 = 100%", false},
	{"loss_is_bound", NULL, "R-BOUND", -7, recommend_get_loss_bound,
	 "Whether that is an upper bound", false},
	{"pressure_status", NULL, "PRESSURE", -8, recommend_get_pressure_status,
	 "Signs that it had too little memory in the last eight days: none; seen; unknown (the history has "
	 "neither the guest's own counters nor those of QEMU's cgroup)", false},
	{"pressure_kinds", NULL, "SIGNS", -12, recommend_get_pressure_kinds,
	 "Which signs: swap-in, major faults, OOM kill, stalls, refaults", false},
	{"pressure_time", NULL, "PRESSED", -20, recommend_get_pressure_time,
	 "When the last one was, UTC", false},
	{"pressure_bytes", NULL, "BY-SIGNS", 8, recommend_get_pressure,
	 "Size that they ask for, in bytes; absent: no more than is recommended anyway", false},
	{"held_out_hours", NULL, "HELD-OUT", 8, recommend_get_held_out,
	 "Hours on which --risk has chosen the learned rule, a count", false},
	{"held_out_violation_share", NULL, "VIOLATED", 8, recommend_get_risk_seen,
	 "Those that needed more than the rule gave, as a share, 1 = 100%", false},
	{"risk_bound_share", NULL, "RISK-AT-MOST", 12, recommend_get_risk_bound,
	 "Upper bound of that share with 95% certainty, if hours are independent", false},
	{"overhead_bytes", NULL, "OVERHEAD", 8, recommend_get_guest_overhead,
	 "Resident memory of QEMU that is not guest memory, 99th percentile, in bytes: a limit for its "
	 "cgroup needs that on top", false},
	{"overhead_is", NULL, "OVER-IS", -7, recommend_get_overhead_is,
	 "p99; peak (fewer than 100 samples have it); unknown (none has: guest RAM could not be told from "
	 "QEMU's other memory)", false},
	{"overhead_samples", NULL, "O-SAMPLES", 9, recommend_get_overhead_samples,
	 "Samples that it is from, a count", false},
	{"prior_bytes", NULL, "PRIOR", 8, recommend_get_prior,
	 "Where the guest itself was measured too little: what suffices for nine of ten like guests, in bytes; "
	 "no measurement of the guest", false},
	{"prior_is", NULL, "PRIOR-BY", -8, recommend_get_prior_is,
	 "What they have in common: title; os (libosinfo's id); none (fewer than three such guests have a "
	 "size)", false},
	{"prior_guests", NULL, "P-GUESTS", 8, recommend_get_prior_guests,
	 "How many they are, a count", false},
	{"prior_reason", NULL, "P-REASON", -10, recommend_get_prior_reason,
	 "Reason for the size of the prior: percentile (of the similar guests); minimum; rounding; maximum "
	 "(of the policy, or of the guest's own memory)", false},
};

#define SHOWN                                                                          \
	"domain,status,confidence,samples,assigned_bytes,recommended_bytes,"             \
	"reclaimable_bytes"
#define SHOWN_WHAT_IF                                                                  \
	"domain,status,recommended_bytes,what_if_bytes,what_if_exceeded,"               \
	"what_if_faults_per_second,what_if_loss"
#define WIDE                                                                          \
	"domain,status,confidence,samples,method,granularity_bytes,window_seconds,"     \
	"assigned_bytes,held_bytes,p50_bytes,"                                          \
	"p99_bytes,peak_bytes,base_is,base_bytes,growth_per_doubling,grown_bytes,"      \
	"curve_bytes,recommended_bytes,reason,next_bytes,"                              \
	"reclaimable_bytes,cold_24h_low_bytes,cold_24h_high_bytes"

#define LAYOUT(shown_keys, wide_keys)                                                 \
	{                                                                             \
		.schema = "virt-wss/recommendations/1",                               \
		.array_key = "recommendations", .columns = columns,                   \
		.n_columns = sizeof(columns) / sizeof(columns[0]),                    \
		.extra = recommend_write_extra,                                       \
		.shown = (shown_keys), .wide = (wide_keys),                           \
	}

const struct wss_report_layout recommend_layout = LAYOUT(SHOWN, WIDE);
const struct wss_report_layout recommend_what_if_layout = LAYOUT(
	SHOWN_WHAT_IF,
	WIDE ",what_if_bytes,what_if_exceeded,what_if_faults_per_second,what_if_loss");

const struct wss_report_layout *const recommend_layouts[] = { &recommend_layout,
							      &recommend_host_layout,
							      &recommend_room_layout,
							      &recommend_room_total_layout,
							      &recommend_backtest_layout,
							      &recommend_sweep_layout, NULL };
