/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "fleet/host-room-report.h"
#include "show/json.h"
#include "sizing/backtest-report.h"
#include "sizing/config-report.h"
#include "sizing/host-sum-report.h"

static const struct recommend_row *recommend_row_of(const void *row)
{
	return row;
}

static const struct wss_advice *advice_of(const void *row)
{
	return &recommend_row_of(row)->advice;
}

static struct wss_value recommend_get_status(const void *row)
{
	return wss_value_text(wss_advice_status_name(advice_of(row)->status));
}

static struct wss_value recommend_get_confidence(const void *row)
{
	return wss_value_text(advice_of(row)->has_series
				      ? wss_confidence_name(advice_of(row)->sizing.confidence)
				      : NULL);
}

/* What follows from its windows; NULL without any, so that all of that is absent. */
static const void *measured_of(const void *row)
{
	return advice_of(row)->has_series ? advice_of(row) : NULL;
}

static const void *floor_of(const void *row)
{
	return advice_of(row)->floor.bytes ? &advice_of(row)->floor : NULL;
}

static const void *learned_of(const void *row)
{
	return advice_of(row)->learned.known ? &advice_of(row)->learned : NULL;
}

/* Windows of pages larger than 4 KiB give upper bounds. */
#define WORKING_SET(name, value)                                                             \
	static struct wss_value recommend_get_##name(const void *row)                        \
	{                                                                                    \
		return wss_value_bounded(                                                    \
			wss_value_amount(advice_of(row)->value, WSS_KIND_BYTES),             \
			wss_bound_of_granularity(advice_of(row)->series.granularity_bytes)); \
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

/* As its windows found it; of a guest that was never measured as libvirt says. */
static struct wss_value recommend_get_assigned(const void *row)
{
	struct wss_amount measured = advice_of(row)->assigned_bytes;

	return wss_value_amount(measured.known || !recommend_row_of(row)->active
					? measured
					: recommend_row_of(row)->size.assigned_bytes,
				WSS_KIND_BYTES);
}

/* Absent without a size, as an arrow from assigned to recommended is. */
static struct wss_value recommend_get_boot_saving(const void *row)
{
	struct wss_amount assigned = advice_of(row)->assigned_bytes,
			  size = advice_of(row)->sizing.recommended_bytes;

	return assigned.known && size.known
		       ? wss_value_number(wss_u64_sub(assigned.value, size.value), WSS_KIND_BYTES)
		       : wss_value_absent();
}

static struct wss_value recommend_get_state(const void *row)
{
	const struct recommend_row *guest = recommend_row_of(row);

	if (guest->error)
		return wss_value_absent();
	return wss_value_text(!guest->active		       ? "shut off"
			      : guest->size.paused_bytes.known ? "paused"
							       : "running");
}

WORKING_SET(p50, sizing.p50_bytes)
WORKING_SET(p99, sizing.p99_bytes)
WORKING_SET(peak, sizing.peak_bytes)
WORKING_SET(base, sizing.base_bytes)

static struct wss_value recommend_get_base_is(const void *row)
{
	return advice_of(row)->sizing.base_bytes.known
		       ? wss_value_share_or_peak(advice_of(row)->rule.percentile,
						 advice_of(row)->sizing.from_peak)
		       : wss_value_absent();
}

static bool has_what_if(const void *row)
{
	return advice_of(row)->what_if.bytes.known &&
	       advice_of(row)->sizing.confidence != WSS_CONFIDENCE_NONE;
}

/*
 * Windows of pages larger than 4 KiB may not have been above the size at all; none above it is sure. Where nothing shows
 * what the guest cannot give up, a size that no window exceeded may be too small all the same.
 */
static struct wss_value recommend_get_exceeded(const void *row)
{
	const struct wss_advice *advice = advice_of(row);
	double share = advice->what_if.exceeded;
	enum wss_bound bound = share > 0
				       ? wss_bound_of_granularity(advice->series.granularity_bytes)
				       : WSS_BOUND_EXACT;

	if (!has_what_if(row))
		return wss_value_absent();
	if (advice->floor.source == WSS_FLOOR_UNKNOWN && share < 1) {
		if (share <= 0 || bound != WSS_BOUND_EXACT)
			return wss_value_absent();
		bound = WSS_BOUND_AT_LEAST;
	}
	return wss_value_bounded(wss_value_share(share), bound);
}

static struct wss_value recommend_get_floor_is(const void *row)
{
	return wss_value_text(wss_floor_source_name(advice_of(row)->floor.source));
}

static struct wss_value recommend_get_floor_time(const void *row)
{
	const struct wss_floor *floor = &advice_of(row)->floor;

	return floor->time ? wss_value_time(floor->time) : wss_value_absent();
}

static struct wss_value recommend_get_reason(const void *row)
{
	return advice_of(row)->sizing.recommended_bytes.known
		       ? wss_value_text(wss_sizing_reason_name(advice_of(row)->sizing.reason))
		       : wss_value_absent();
}

static struct wss_value recommend_get_flavour(const void *row)
{
	const struct wss_advice *advice = advice_of(row);

	return advice->rule.rounding && advice->sizing.recommended_bytes.known
		       ? wss_value_text(wss_rounding_name(advice->rule.rounding,
							  advice->sizing.recommended_bytes.value))
		       : wss_value_absent();
}

static struct wss_value recommend_get_cold_status(const void *row)
{
	return advice_of(row)->status == WSS_ADVICE_FAILED
		       ? wss_value_absent()
		       : wss_value_text(wss_advice_cold_status_name(advice_of(row)->cold.status));
}

/* --- what was learned from the guest's past --- */

static struct wss_value recommend_get_recent_peak(const void *row)
{
	const struct wss_learned *learned = learned_of(row);

	return learned && learned->recent_peak_bytes
		       ? wss_value_number(learned->recent_peak_bytes, WSS_KIND_BYTES)
		       : wss_value_absent();
}

static bool record_is_old(const struct wss_learned *learned)
{
	return learned->old_peak_bytes > learned->peak_bytes;
}

static struct wss_value recommend_get_hours_above(const void *row)
{
	return learned_of(row) ? wss_value_number(advice_of(row)->hours_above, WSS_KIND_COUNT)
			       : wss_value_absent();
}

/* A size is marked if the guest has needed more just now. */
static struct wss_value recommend_get_size(const void *row)
{
	struct wss_amount size = advice_of(row)->sizing.recommended_bytes;

	return wss_value_bounded(wss_value_amount(size, WSS_KIND_BYTES),
				 size.known && advice_of(row)->learned.recent_peak_bytes >
							 size.value
					 ? WSS_BOUND_AT_LEAST
					 : WSS_BOUND_EXACT);
}

static struct wss_value recommend_get_learned_peak(const void *row)
{
	const struct wss_learned *learned = learned_of(row);

	return learned ? wss_value_number(record_is_old(learned) ? learned->old_peak_bytes
								 : learned->peak_bytes,
					  WSS_KIND_BYTES)
		       : wss_value_absent();
}

static struct wss_value recommend_get_learned_peak_time(const void *row)
{
	const struct wss_learned *learned = learned_of(row);

	return learned ? wss_value_time(record_is_old(learned) ? learned->old_peak_day
							       : learned->peak_start)
		       : wss_value_absent();
}

static struct wss_value recommend_get_overhead_is(const void *row)
{
	const struct wss_history_overhead *overhead = &advice_of(row)->overhead;

	if (!advice_of(row)->has_series)
		return wss_value_absent();
	if (!overhead->p99_bytes.known)
		return wss_value_text("unknown");
	return wss_value_text(overhead->samples < 100 ? "peak" : "p99");
}

/* --- lists, in JSON --- */

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

#define FIELD(member, kind) WSS_FIELD(struct recommend_row, member, kind)
#define MEASURED(member, kind) WSS_FIELD_OF(measured_of, struct wss_advice, member, kind)
#define FLOOR(member, kind) WSS_FIELD_OF(floor_of, struct wss_floor, member, kind)
#define LEARNED(member, kind) WSS_FIELD_OF(learned_of, struct wss_learned, member, kind)

static const struct wss_column columns[] = {
	{"domain", NULL, "DOMAIN", -12, FIELD(domain, TEXT), "Name of the guest"},
	{"uuid", NULL, "UUID", -36, FIELD(uuid, TEXT), "UUID of the guest"},
	{"status", NULL, "STATUS", -9, WSS_GET(recommend_get_status),
	 "ok; too early (too few windows); unknown (no window); no size (what it cannot give up is unknown); opted out; "
	 "failed"},
	{"state", NULL, "STATE", -8, WSS_GET(recommend_get_state), "running, paused or shut off"},
	{"confidence", NULL, "CONFIDENCE", -10, WSS_GET(recommend_get_confidence),
	 "How sure the recommendation is: none, low, medium or high"},
	{"samples", NULL, "SAMPLES", 7, WSS_GET(recommend_get_samples),
	 "Windows that it is based on, a count; if too few, also how many are needed"},
	{"degraded_samples", NULL, "DEGRADED", 8, MEASURED(series.summary.degraded, COUNT),
	 "Degraded windows that were left out, a count"},
	{"since", NULL, "SINCE", -20, MEASURED(series.summary.first, TEXT),
	 "When the first window was, UTC"},
	{"last", NULL, "LAST", -20, MEASURED(series.summary.last, TEXT),
	 "When the last window was, UTC"},
	{"method", NULL, "METHOD", -6, MEASURED(series.method, TEXT),
	 "Name of the method that measured the windows"},
	{"granularity_bytes", NULL, "GRAN", 5, MEASURED(series.granularity_bytes, BYTES),
	 "Granularity of the windows, in bytes"},
	{"window_seconds", NULL, "WINDOW", 7, MEASURED(series.window_ns, DURATION),
	 "Length of the windows, in seconds"},
	{"assigned_bytes", NULL, "ASSIGNED", 8, WSS_GET(recommend_get_assigned),
	 "Maximum memory of the guest, in bytes"},
	{"held_bytes", NULL, "HELD", 8, FIELD(advice.held_bytes, BYTES),
	 "Guest memory that is resident on the host, in bytes"},
	{"p50_bytes", NULL, "STEADY", 11, WSS_GET(recommend_get_p50),
	 "Median working set, in bytes"},
	{"p99_bytes", NULL, "P99", 11, WSS_GET(recommend_get_p99),
	 "99th percentile of the working set, in bytes"},
	{"peak_bytes", NULL, "PEAK", 11, WSS_GET(recommend_get_peak),
	 "Largest working set, in bytes"},
	{"base_is", NULL, "PCTILE", 6, WSS_GET(recommend_get_base_is), "The percentile, or peak"},
	{"base_bytes", NULL, "BASE", 11, WSS_GET(recommend_get_base),
	 "Upper bound of that percentile with 95% certainty, or the peak, in bytes"},
	{"headroom_percent", NULL, "HEADROOM", 8, MEASURED(rule.headroom_percent, PERCENT),
	 "Headroom on top of the base, in percent"},
	{"minimum_bytes", NULL, "MINIMUM", 8, MEASURED(rule.minimum_bytes, BYTES),
	 "Smallest size to recommend, in bytes"},
	{"need_bytes", NULL, "NEED", 8, FIELD(advice.sizing.need_bytes, BYTES),
	 "Memory that its working set needs, with headroom or margin, in bytes; the size is never less"},
	{"floor_bytes", NULL, "IN-USE", 8, FLOOR(bytes, BYTES),
	 "The most that it had in use within --span, touched or not, in bytes: a size is at least that and "
	 "some headroom; absent: unknown, and so is the size"},
	{"floor_is", NULL, "IN-USE-BY", -10, WSS_GET(recommend_get_floor_is),
	 "Where that figure comes from: statistics (of its balloon); squeeze (it did not page then); ballooning (it ran for an hour with no more); "
	 "free page reporting (no more of it was on the host)"},
	{"recommended_bytes", NULL, "RECOMMEND", 9, WSS_GET(recommend_get_size),
	 "Recommended memory size, in bytes; >= if it needed more within the last --hold; absent: too few windows, or what it "
	 "cannot give up is unknown"},
	{"reclaimable_bytes", NULL, "RECLAIM", 8, FIELD(advice.sizing.reclaimable_bytes, BYTES),
	 "Memory that balloon would return to the host now, in bytes: it leaves the guest what it needs and holds now, and gives "
	 "it back when that grows"},
	{"boot_saving_bytes", NULL, "AT-BOOT", 8, WSS_GET(recommend_get_boot_saving),
	 "Memory that it would no longer be assigned if it were started with the recommended size, in bytes: no part of what can "
	 "be reclaimed now, and not to be added to it"},
	{"what_if_bytes", NULL, "WHAT-IF", 8, FIELD(advice.what_if.bytes, BYTES),
	 "Size given by --what-if, in bytes"},
	{"what_if_exceeded", NULL, "EXCEEDED", 8, WSS_GET(recommend_get_exceeded),
	 "Windows whose working set was larger, as a share, 1 = 100%; <= where it is an upper bound, >= a lower one; absent: what it "
	 "cannot give up is unknown"},
	{"error", NULL, "ERROR", -30, FIELD(error, TEXT), "Why the guest could not be examined"},
	{"grown_bytes", NULL, "GROWN", 8, FIELD(advice.sizing.grown_bytes, BYTES),
	 "Base extrapolated to five minutes if the set still grew, in bytes"},
	{"cold_status", NULL, "COLD", -9, WSS_GET(recommend_get_cold_status),
	 "Whether memory that was idle for 24 hours is known: ok; gaps (part of that time was not "
	 "observed) or too early (watched for less): only an upper bound; stale (last seen over an "
	 "hour ago); unwatched (no serve --continuous, or not running)"},
	{"cold_24h_low_bytes", NULL, "IDLE-LOW", 8, FIELD(advice.cold.low_bytes, BYTES),
	 "Memory that was certainly idle for 24 hours and can be reclaimed, in bytes"},
	{"cold_24h_high_bytes", NULL, "IDLE-HIGH", 9, FIELD(advice.cold.high_bytes, BYTES),
	 "Memory that was not seen touched in 24 hours, an upper limit only, in bytes"},
	{"reason", NULL, "REASON", -15, WSS_GET(recommend_get_reason),
	 "Why the recommended size is not smaller: peak, percentile, recurring peak (of this part of the last two "
	 "months or quarters), full memory (its set fills it: it may want more), growth "
	 "(beyond the windows), memory in use, minimum, rounding; or why it is not larger: maximum"},
	{"learned_bytes", NULL, "LEARNED", 8, LEARNED(target_bytes, BYTES),
	 "Size learned from the guest's past, in bytes; absent: by percentile and headroom"},
	{"record_bytes", NULL, "RECORD", 8, WSS_GET(recommend_get_learned_peak),
	 "Largest need of the last year, in bytes"},
	{"record_time", NULL, "RECORDED", -20, WSS_GET(recommend_get_learned_peak_time),
	 "Start of the hour that needed it, or more than 13 weeks ago of the day, UTC"},
	{"last_hold_bytes", NULL, "LAST-HOLD", 9, WSS_GET(recommend_get_recent_peak),
	 "Largest need within the last --hold, in bytes; absent: nothing was measured in it"},
	{"learned_hours", NULL, "L-HOURS", 7, LEARNED(hours, COUNT),
	 "Measured hours that the size is from, a count"},
	{"hours_above", NULL, "ABOVE", 6, WSS_GET(recommend_get_hours_above),
	 "Those that needed more than the recommended size, or than the need where there is no size, a count"},
	{"holds", NULL, "HOLDS", 6, LEARNED(holds, COUNT),
	 "Past times of --hold, one from each day on, in which such a size was tried, a count"},
	{"holds_kept", NULL, "KEPT", 5, LEARNED(holds_kept, COUNT),
	 "Those in which no hour needed more than 1.1 times the size, a count"},
	{"flavour", NULL, "FLAVOUR", -12, WSS_GET(recommend_get_flavour),
	 "Name of the recommended flavour; absent: it has none, or the size is none of them"},
	{"overhead_bytes", NULL, "OVERHEAD", 8, FIELD(advice.overhead.p99_bytes, BYTES),
	 "Resident memory of QEMU that is not guest memory, 99th percentile, in bytes: a limit for its "
	 "cgroup needs that on top"},
	{"overhead_is", NULL, "OVER-IS", -7, WSS_GET(recommend_get_overhead_is),
	 "p99; peak (fewer than 100 samples have it); unknown (none has: guest RAM could not be told from "
	 "QEMU's other memory)"},
	{"floor_time", NULL, "IN-USE-AT", -20, WSS_GET(recommend_get_floor_time),
	 "When its statistics last said what it had in use, UTC; absent: that is not where the figure comes from"},
	{"hold_seconds", NULL, "HOLD", 7, MEASURED(hold_ns, DURATION),
	 "How long the size is to be kept, in seconds"},
	{"record_days", NULL, "DAYS", 5, LEARNED(days, COUNT),
	 "Days on record, a year at most, a count"},
};

#define SHOWN                                                                \
	"domain,status,confidence,samples,assigned_bytes,recommended_bytes," \
	"reclaimable_bytes"
#define SHOWN_WHAT_IF "domain,status,recommended_bytes,what_if_bytes,what_if_exceeded"
#define WIDE                                                                               \
	"domain,status,confidence,samples,assigned_bytes,held_bytes,p50_bytes,peak_bytes," \
	"base_is,base_bytes,need_bytes,floor_bytes,recommended_bytes,reason,reclaimable_bytes,boot_saving_bytes"

#define LAYOUT(shown_keys, wide_keys)                                                           \
	{                                                                                       \
		.schema = "virt-wss/recommendations/1", .array_key = "recommendations",         \
		.columns = columns, .n_columns = sizeof(columns) / sizeof(columns[0]),          \
		.extra = recommend_write_extra, .table_only = "base_is", .shown = (shown_keys), \
		.wide = (wide_keys),                                                            \
	}

const struct wss_report_layout recommend_layout = LAYOUT(SHOWN, WIDE);
const struct wss_report_layout recommend_what_if_layout =
	LAYOUT(SHOWN_WHAT_IF, WIDE ",what_if_bytes,what_if_exceeded");

const struct wss_report_layout *const recommend_layouts[] = {
	&recommend_layout,	     &wss_host_sum_layout, &wss_host_room_layout,
	&wss_host_room_total_layout, &wss_backtest_layout, NULL};
