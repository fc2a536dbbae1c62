/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/recommend-evidence.h"

#include "cmd/recommend.h"

static const struct recommend_row *recommend_row_of(const void *row)
{
	return row;
}

static const struct wss_advice *advice_of(const void *row)
{
	return &recommend_row_of(row)->advice;
}

#define AMOUNT(name, value)                                                                   \
	struct wss_value recommend_get_##name(const void *row)                                \
	{                                                                                     \
		return wss_value_amount(advice_of(row)->value, WSS_KIND_BYTES);               \
	}

/* --- ages of memory --- */

AMOUNT(cold_low, cold.low_bytes)
AMOUNT(cold_high, cold.high_bytes)
AMOUNT(used, cold.used_bytes)
AMOUNT(left_out, left_out_bytes)

static const struct wss_advice_cold *cold_of(const void *row)
{
	return &advice_of(row)->cold;
}

struct wss_value recommend_get_cold_status(const void *row)
{
	return advice_of(row)->status == WSS_ADVICE_FAILED
		       ? wss_value_absent()
		       : wss_value_text(wss_advice_cold_status_name(cold_of(row)->status));
}

struct wss_value recommend_get_cold_observed(const void *row)
{
	return cold_of(row)->high_bytes.known
		       ? recommend_value_share(cold_of(row)->newest.report.ages[WSS_COLD_24H].observed)
		       : wss_value_absent();
}

struct wss_value recommend_get_cold_watched(const void *row)
{
	const struct wss_cold_report *report = &cold_of(row)->newest.report;

	return cold_of(row)->status == WSS_ADVICE_COLD_UNWATCHED
		       ? wss_value_absent()
		       : wss_value_number(report->as_of_ns - report->since_ns, WSS_KIND_DURATION);
}

struct wss_value recommend_get_cold_time(const void *row)
{
	return cold_of(row)->status == WSS_ADVICE_COLD_UNWATCHED
		       ? wss_value_absent()
		       : wss_value_time(cold_of(row)->newest.time);
}

/* --- what was learned from the guest's past --- */

static bool was_learned(const void *row)
{
	return advice_of(row)->learned.known;
}

#define LEARNED(name, value)                                                                  \
	struct wss_value recommend_get_##name(const void *row)                                \
	{                                                                                     \
		return was_learned(row) && advice_of(row)->learned.value                      \
			       ? wss_value_number(advice_of(row)->learned.value, WSS_KIND_BYTES) \
			       : wss_value_absent();                                          \
	}

LEARNED(learned_lower, lower_bytes)
LEARNED(learned_target, target_bytes)
LEARNED(learned_upper, upper_bytes)
LEARNED(learned_boot, boot_bytes)

struct wss_value recommend_get_learned_margin(const void *row)
{
	return was_learned(row) ? recommend_value_share(advice_of(row)->learned.rule.margin) : wss_value_absent();
}

struct wss_value recommend_get_learned_percentile(const void *row)
{
	return was_learned(row) ? recommend_value_share(advice_of(row)->learned.rule.percentile)
				: wss_value_absent();
}

struct wss_value recommend_get_learned_span(const void *row)
{
	return was_learned(row) ? wss_value_number(advice_of(row)->learned.rule.hours *
							   WSS_HISTORY_HOUR * WSS_NS_PER_S,
						   WSS_KIND_DURATION)
				: wss_value_absent();
}

struct wss_value recommend_get_learned_hours(const void *row)
{
	return was_learned(row) ? wss_value_number(advice_of(row)->learned.hours, WSS_KIND_COUNT)
				: wss_value_absent();
}

struct wss_value recommend_get_trend(const void *row)
{
	return was_learned(row) ? recommend_value_share(advice_of(row)->learned.growth) : wss_value_absent();
}

struct wss_value recommend_get_held_out(const void *row)
{
	return advice_of(row)->has_choice
		       ? wss_value_number(advice_of(row)->choice.hours, WSS_KIND_COUNT)
		       : wss_value_absent();
}

struct wss_value recommend_get_risk_seen(const void *row)
{
	const struct wss_sweep_choice *choice = &advice_of(row)->choice;

	return advice_of(row)->has_choice
		       ? recommend_value_share((double)choice->violations / (double)choice->hours)
		       : wss_value_absent();
}

struct wss_value recommend_get_risk_bound(const void *row)
{
	return advice_of(row)->has_choice ? recommend_value_share(advice_of(row)->choice.bound)
					  : wss_value_absent();
}

/* --- signs of pressure --- */

AMOUNT(pressure, sizing.pressure_bytes)

struct wss_value recommend_get_pressure_status(const void *row)
{
	const struct wss_pressure *pressure = &advice_of(row)->pressure;

	if (!advice_of(row)->has_series)
		return wss_value_absent();
	if (!pressure->watched)
		return wss_value_text("unknown");
	return wss_value_text(pressure->n ? "seen" : "none");
}

struct wss_value recommend_get_pressure_kinds(const void *row)
{
	static _Thread_local char text[WSS_PRESSURE_TEXT_MAX];
	const struct wss_pressure *pressure = &advice_of(row)->pressure;
	unsigned kinds = 0;

	for (size_t i = 0; i < pressure->n; i++)
		kinds |= pressure->events[i].kinds;
	wss_pressure_format(kinds, text);
	return kinds ? wss_value_text(text) : wss_value_absent();
}

struct wss_value recommend_get_pressure_time(const void *row)
{
	const struct wss_pressure *pressure = &advice_of(row)->pressure;

	return pressure->n ? wss_value_time(pressure->events[pressure->n - 1].time)
			   : wss_value_absent();
}

/* --- QEMU's own memory --- */

AMOUNT(guest_overhead, overhead.p99_bytes)

struct wss_value recommend_get_overhead_samples(const void *row)
{
	return advice_of(row)->has_series
		       ? wss_value_number(advice_of(row)->overhead.samples, WSS_KIND_COUNT)
		       : wss_value_absent();
}

struct wss_value recommend_get_overhead_is(const void *row)
{
	const struct wss_history_overhead *overhead = &advice_of(row)->overhead;

	if (!advice_of(row)->has_series)
		return wss_value_absent();
	if (!overhead->p99_bytes.known)
		return wss_value_text("unknown");
	return wss_value_text(overhead->samples < 100 ? "peak" : "p99");
}

/* --- like guests --- */

struct wss_value recommend_get_prior(const void *row)
{
	return wss_value_amount(recommend_row_of(row)->prior_size.bytes, WSS_KIND_BYTES);
}

struct wss_value recommend_get_prior_is(const void *row)
{
	return recommend_row_of(row)->wants_prior
		       ? wss_value_text(wss_prior_kind_name(recommend_row_of(row)->prior.kind))
		       : wss_value_absent();
}

struct wss_value recommend_get_prior_guests(const void *row)
{
	const struct wss_prior *prior = &recommend_row_of(row)->prior;

	return prior->kind != WSS_PRIOR_NONE ? wss_value_number(prior->guests, WSS_KIND_COUNT)
					     : wss_value_absent();
}

struct wss_value recommend_get_prior_reason(const void *row)
{
	const struct wss_prior_size *size = &recommend_row_of(row)->prior_size;

	return size->bytes.known ? wss_value_text(wss_sizing_reason_name(size->reason))
				 : wss_value_absent();
}
