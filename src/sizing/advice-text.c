/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/advice-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define SIZE_TEXT_MAX 24

/* Formats a length for a sentence: "4 s", not "4.00 s" as in a column. */
static void window_format(uint64_t ns, char ret_text[SIZE_TEXT_MAX])
{
	char *cut;

	wss_duration_format(ns, ret_text, SIZE_TEXT_MAX);
	cut = strstr(ret_text, ".00 ");
	if (cut)
		memmove(cut, cut + 3, strlen(cut + 3) + 1);
}

bool wss_advice_kind_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_history_series *series = &advice->series;
	char window[SIZE_TEXT_MAX], granularity[SIZE_TEXT_MAX];

	if (!advice->has_series)
		return false;
	window_format(series->window_ns, window);
	wss_size_format(series->granularity_bytes, granularity, sizeof(granularity));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "windows of %s by %s at %s granularity", window,
		 series->method, granularity);
	return true;
}

bool wss_advice_left_out_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	uint64_t degraded = advice->series.summary.degraded, other = advice->series.other_windows;
	char first[80] = "", second[120] = "";

	if (!advice->has_series || (!degraded && !other))
		return false;
	if (degraded)
		snprintf(first, sizeof(first), "%" PRIu64 " degraded window%s", degraded,
			 wss_plural(degraded));
	if (other)
		snprintf(second, sizeof(second),
			 "%" PRIu64 " window%s of another method, granularity or length", other,
			 wss_plural(other));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "leaves out %s%s%s", first,
		 degraded && other ? " and " : "", second);
	return true;
}

bool wss_advice_no_size_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	char need[SIZE_TEXT_MAX], base[SIZE_TEXT_MAX];

	if (advice->status != WSS_ADVICE_NO_SIZE)
		return false;
	wss_size_format(advice->sizing.base_bytes.value, base, sizeof(base));
	wss_size_format(advice->sizing.need_bytes.value, need, sizeof(need));
	snprintf(
		ret_text, WSS_ADVICE_TEXT_MAX,
		"no size: its working set of %s asks for %s with headroom, but the size also depends on memory that it holds "
		"and does not touch, which is unknown without balloon statistics",
		base, need);
	return true;
}

bool wss_advice_fills_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	char base[SIZE_TEXT_MAX], all[SIZE_TEXT_MAX];

	if (!advice->sizing.filled_bytes.known)
		return false;
	wss_size_format(advice->sizing.base_bytes.value, base, sizeof(base));
	wss_size_format(advice->sizing.filled_bytes.value, all, sizeof(all));
	snprintf(
		ret_text, WSS_ADVICE_TEXT_MAX,
		"its set of %s fills its %s, so that what it needs is unknown: it may want more, and nothing shrinks it",
		base, all);
	return true;
}

bool wss_advice_maximum_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sizing *sizing = &advice->sizing;
	uint64_t bytes = sizing->recommended_bytes.value,
		 in_use = advice->series.unreclaimable_bytes.value;
	char size[SIZE_TEXT_MAX], need[SIZE_TEXT_MAX], used[SIZE_TEXT_MAX], kept[60] = "";

	if (!sizing->recommended_bytes.known || sizing->reason != WSS_SIZING_MAXIMUM ||
	    sizing->need_bytes.value <= bytes)
		return false;
	wss_size_format(bytes, size, sizeof(size));
	wss_size_format(sizing->need_bytes.value, need, sizeof(need));
	wss_size_format(in_use, used, sizeof(used));
	if (in_use > bytes)
		snprintf(kept, sizeof(kept), ", and cannot give up %s", used);
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "the %s that its policy allows at most are too little: it needs %s%s", size, need,
		 kept);
	return true;
}

bool wss_advice_growth_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sizing *sizing = &advice->sizing;
	char window[SIZE_TEXT_MAX], base[SIZE_TEXT_MAX], grown[SIZE_TEXT_MAX];

	if (sizing->confidence == WSS_CONFIDENCE_NONE)
		return false;
	window_format(advice->series.window_ns, window);
	if (!sizing->growth.known) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "no growth curve shows whether the working set outgrew its windows of %s",
			 window);
		return true;
	}
	if (!sizing->grown_bytes.known)
		return false;
	wss_size_format(sizing->base_bytes.value, base, sizeof(base));
	wss_size_format(sizing->grown_bytes.value, grown, sizeof(grown));
	snprintf(
		ret_text, WSS_ADVICE_TEXT_MAX,
		"still growing when the windows of %s ended, by %.0f%% with each doubling of time; %s "
		"extrapolated to %s%s; longer windows show where it ends",
		window, sizing->growth.per_doubling * 100, base, grown,
		sizing->reason == WSS_SIZING_BEYOND ? ", which is the size" : "");
	return true;
}

bool wss_advice_outgrows_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	char size[SIZE_TEXT_MAX];

	if (!advice->sizing.outgrows)
		return false;
	wss_size_format(advice->sizing.unrounded_bytes.value, size, sizeof(size));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "no flavour is as large as %s, so the size is not rounded", size);
	return true;
}

bool wss_advice_cold_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_advice_cold *cold = &advice->cold;
	const struct wss_cold_report *report = &cold->newest.report;
	char low[SIZE_TEXT_MAX], high[SIZE_TEXT_MAX], age[SIZE_TEXT_MAX];

	wss_size_format(cold->low_bytes.value, low, sizeof(low));
	wss_size_format(cold->high_bytes.value, high, sizeof(high));
	wss_age_format((report->as_of_ns - report->since_ns) / WSS_NS_PER_S, age, sizeof(age));
	switch (cold->status) {
	case WSS_ADVICE_COLD_UNWATCHED:
		return false;
	case WSS_ADVICE_COLD_STALE:
		wss_age_format((uint64_t)(wss_clock_wall_seconds() - cold->newest.time), age,
			       sizeof(age));
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "which memory is idle is unknown: serve last reported it %s ago", age);
		return true;
	case WSS_ADVICE_COLD_YOUNG:
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "idle memory is not known yet: watched for %s of the 24 h needed", age);
		return true;
	case WSS_ADVICE_COLD_GAPS:
		snprintf(
			ret_text, WSS_ADVICE_TEXT_MAX,
			"idle memory is not known: only %.3g%% of the last 24 h was observed; at most %s was "
			"idle",
			100 * report->ages[WSS_COLD_24H].observed, high);
		return true;
	case WSS_ADVICE_COLD_OK:
		break;
	}
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "%s has been idle for 24 h and can certainly be reclaimed; at most %s may have "
		 "been idle (upper limit only)",
		 low, high);
	return true;
}

/* Formats the largest need on record, if it is above the size, and when it was: "; 5.00 GiB once, Mon 2026-11-23 02:00". */
static void record_text(const struct wss_advice *advice, uint64_t size_bytes,
			char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_learned *learned = &advice->learned;
	bool is_old = learned->old_peak_bytes > learned->peak_bytes;
	time_t when = is_old ? learned->old_peak_day : learned->peak_start;
	uint64_t bytes = is_old ? learned->old_peak_bytes : learned->peak_bytes;
	char peak[SIZE_TEXT_MAX], date[40] = "";
	struct tm utc;

	ret_text[0] = '\0';
	if (bytes <= size_bytes)
		return;
	wss_size_format(bytes, peak, sizeof(peak));
	if (gmtime_r(&when, &utc))
		strftime(date, sizeof(date), is_old ? "%a %F" : "%a %F %H:%M UTC", &utc);
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "; %s %s, %s", peak,
		 is_old || advice->hours_above == 1 ? "once" : "at most", date);
}

/* Formats what such sizes have proved: "such a size would have kept 18 of 18 past holds". */
static void proof_text(const struct wss_learned *learned, char *ret_text, size_t size)
{
	if (learned->holds)
		snprintf(ret_text, size,
			 "such a size would have kept %" PRIu64 " of %" PRIu64 " past hold%s",
			 learned->holds_kept, learned->holds, wss_plural(learned->holds));
	else
		snprintf(ret_text, size, "no past hold yet to try such a size on");
}

bool wss_advice_learned_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_learned *learned = &advice->learned;
	uint64_t bytes = advice->sizing.recommended_bytes.value;
	char size[SIZE_TEXT_MAX], hold[SIZE_TEXT_MAX], record[WSS_ADVICE_TEXT_MAX],
		old[80] = "", proof[104], when[WSS_CLOCK_TEXT_MAX];

	if (!learned->known || !advice->sizing.recommended_bytes.known)
		return false;
	wss_size_format(bytes, size, sizeof(size));
	wss_age_format(advice->hold_ns / WSS_NS_PER_S, hold, sizeof(hold));
	record_text(advice, bytes, record);
	proof_text(learned, proof, sizeof(proof));
	if (learned->recurring_bytes) {
		wss_clock_format(learned->recurring_day, when);
		snprintf(old, sizeof(old), "; as it did in this part of the last two %s (%.10s)",
			 learned->recurring_months == 1 ? "months" : "quarters", when);
	}
	snprintf(
		ret_text, WSS_ADVICE_TEXT_MAX,
		"for %s: needs at most %s in %" PRIu64 " of %" PRIu64 " hours, %" PRIu64
		" day%s on record%.120s%s; %s%s",
		hold, size, learned->hours - advice->hours_above, learned->hours, learned->days,
		wss_plural(learned->days), record, old, proof,
		learned->is_unprovable
			? "; confidence in holds so long is never high, as four of them exceed the 13 weeks of "
			  "hours that are kept"
			: "");
	return true;
}

bool wss_advice_below_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_learned *learned = &advice->learned;
	struct wss_amount size = advice->sizing.recommended_bytes;
	char to[SIZE_TEXT_MAX], needed[SIZE_TEXT_MAX];

	if (!learned->known || !size.known || learned->recent_peak_bytes <= size.value)
		return false;
	wss_size_format(size.value, to, sizeof(to));
	wss_size_format(learned->recent_peak_bytes, needed, sizeof(needed));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "the size of %s is less than the %s that it needed within the last hold", to,
		 needed);
	return true;
}

/* Formats the number of windows and the time they span: "12 windows in 1 min". */
static void windows_format(const struct wss_summary *summary, char *ret_text, size_t size)
{
	char age[SIZE_TEXT_MAX];

	wss_age_format((uint64_t)(summary->last - summary->first), age, sizeof(age));
	snprintf(ret_text, size, "%" PRIu64 " window%s in %s", summary->samples,
		 wss_plural(summary->samples), age);
}

/*
 * Formats the confidence: "high confidence: such sizes kept 18 of 18 past holds", "low confidence: 12 windows in 1 min,
 * many of them degraded".
 */
static void trust_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_summary *summary = &advice->series.summary;
	const struct wss_learned *learned = &advice->learned;
	enum wss_confidence confidence = advice->sizing.confidence;
	char windows[80];

	if (confidence == WSS_CONFIDENCE_NONE) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "too early: %" PRIu64 " of %d windows",
			 summary->samples, WSS_SIZING_SAMPLES_MIN);
		return;
	}
	if (learned->holds && learned->confidence == confidence) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "%s confidence: such sizes kept %" PRIu64 " of %" PRIu64 " past hold%s",
			 wss_confidence_name(confidence), learned->holds_kept, learned->holds,
			 wss_plural(learned->holds));
		return;
	}
	windows_format(summary, windows, sizeof(windows));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "%s confidence: %s%s",
		 wss_confidence_name(confidence), windows,
		 !learned->known   ? ", needs a day of measured hours"
		 : !learned->holds ? ", needs more days"
		 : advice->sizing.growth.known && !advice->sizing.grown_bytes.known
			 ? ", many of them degraded"
			 : ", needs longer ones");
}

/* Returns the memory that the guest may use now. */
static struct wss_amount size_now(const struct wss_advice *advice)
{
	struct wss_amount balloon = advice->series.balloon_bytes;

	return balloon.known ? balloon : advice->assigned_bytes;
}

/* Returns how much of what would be freed has certainly been idle: ", 1.50 GiB of it idle for 24 h". */
static const char *idle_text(const struct wss_advice *advice, char ret_text[60])
{
	uint64_t bytes =
		wss_u64_min(advice->cold.low_bytes.value, advice->sizing.reclaimable_bytes.value);
	char size[SIZE_TEXT_MAX];

	if (!bytes)
		return "";
	wss_size_format(bytes, size, sizeof(size));
	snprintf(ret_text, 60, ", %s of it idle for 24 h", size);
	return ret_text;
}

bool wss_advice_step_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sizing *sizing = &advice->sizing;
	struct wss_amount now = size_now(advice);
	char from[SIZE_TEXT_MAX], to[SIZE_TEXT_MAX], frees[SIZE_TEXT_MAX];
	char trust[WSS_ADVICE_TEXT_MAX], step[180], idle[60];

	if (!advice->has_series)
		return false;
	if (wss_advice_no_size_text(advice, ret_text))
		return true;
	trust_text(advice, trust);
	if (!sizing->recommended_bytes.known || !now.known) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "%s", trust);
		return true;
	}
	wss_size_format(now.value, from, sizeof(from));
	wss_size_format(sizing->recommended_bytes.value, to, sizeof(to));
	wss_size_format(sizing->reclaimable_bytes.value, frees, sizeof(frees));
	if (sizing->recommended_bytes.value > now.value)
		snprintf(step, sizeof(step), "%s is less than it needs (%s)", from, to);
	else if (sizing->recommended_bytes.value == now.value)
		snprintf(step, sizeof(step), "%s is what it needs", from);
	else if (!sizing->reclaimable_bytes.value)
		snprintf(step, sizeof(step), "%s -> %s; balloon would free nothing on the host now",
			 from, to);
	else
		snprintf(step, sizeof(step), "%s -> %s; balloon would free %s on the host%s", from,
			 to, frees, idle_text(advice, idle));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "%.*s; %.*s", 140, step, 250, trust);
	return true;
}
