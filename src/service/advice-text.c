/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/advice-text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define SIZE_TEXT_MAX 24
/* A smaller share of time is stated as at most that. */
#define LOSS_SHOWN 0.00001

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
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "windows of %s by %s at %s granularity",
		 window, series->method, granularity);
	return true;
}

bool wss_advice_left_out_text(const struct wss_advice *advice,
			      char ret_text[WSS_ADVICE_TEXT_MAX])
{
	uint64_t degraded = advice->series.summary.degraded,
		 other = advice->series.other_windows;
	char first[80] = "", second[120] = "";

	if (!advice->has_series || (!degraded && !other))
		return false;
	if (degraded)
		snprintf(first, sizeof(first), "%" PRIu64 " degraded window%s", degraded,
			 wss_plural(degraded));
	if (other)
		snprintf(second, sizeof(second),
			 "%" PRIu64 " window%s of another method, granularity or length",
			 other, wss_plural(other));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "leaves out %s%s%s", first,
		 degraded && other ? " and " : "", second);
	return true;
}

bool wss_advice_growth_text(const struct wss_advice *advice,
			    char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sizing *sizing = &advice->sizing;
	char window[SIZE_TEXT_MAX], base[SIZE_TEXT_MAX], grown[SIZE_TEXT_MAX];

	if (sizing->confidence == WSS_CONFIDENCE_NONE)
		return false;
	window_format(advice->series.window_ns, window);
	if (!sizing->growth.known) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "no growth curve shows whether the working set outgrew its windows "
			 "of %s",
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
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "no flavour is as large as %s, so the size is not rounded",
		 size);
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
			 "idle memory is not known yet: watched for %s of the 24 h needed",
			 age);
		return true;
	case WSS_ADVICE_COLD_GAPS:
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
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

bool wss_advice_left_out_memory_text(const struct wss_advice *advice,
				     char ret_text[WSS_ADVICE_TEXT_MAX])
{
	char size[SIZE_TEXT_MAX];

	if (!advice->left_out_bytes.value)
		return false;
	wss_size_format(advice->left_out_bytes.value, size, sizeof(size));
	if (advice->loss.known)
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "the size leaves out %s that was used in the last 24 h: that is predicted to "
			 "cost %s%.2g%% of its time",
			 size,
			 advice->loss.bound || advice->loss.share < LOSS_SHOWN ? "at most " : "",
			 100 * fmax(advice->loss.share, LOSS_SHOWN));
	else
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "the size leaves out %s that was used in the last 24 h: what that costs is "
			 "unknown, as its windows have no growth curve of 4 KiB pages",
			 size);
	return true;
}

#define RULE_TEXT_MAX 120

/* "the largest of 168 measured hours plus 5%" */
static void rule_format(const struct wss_learner_rule *rule, char ret_text[RULE_TEXT_MAX])
{
	char percentile[40];

	snprintf(percentile, sizeof(percentile), "%gth percentile", 100 * rule->percentile);
	snprintf(ret_text, RULE_TEXT_MAX, "the %s of %u measured hour%s plus %g%%",
		 rule->percentile < 1 ? percentile : "largest", rule->hours, wss_plural(rule->hours), 100 * rule->margin);
}

#define OTHER_TEXT_MAX 80

/* Why the learned size is not that of its rule: "; a former size of 3.17 GiB is kept"; empty if it is. */
static void other_size_format(const struct wss_learned *learned, char ret_text[OTHER_TEXT_MAX])
{
	char rule[SIZE_TEXT_MAX], size[SIZE_TEXT_MAX];
	const char *start = "; a former size of ", *end = " is kept";

	wss_size_format(learned->steady_bytes, rule, sizeof(rule));
	wss_size_format(learned->target_bytes, size, sizeof(size));
	if (learned->reason == WSS_LEARNER_GROWTH) {
		start = "; its growth asks for ";
		end = "";
	} else if (learned->reason == WSS_LEARNER_BOOT) {
		start = "; its start asks for ";
		end = "";
	}
	ret_text[0] = '\0';
	if (strcmp(rule, size) != 0)
		snprintf(ret_text, OTHER_TEXT_MAX, "%s%s%s", start, size, end);
}

bool wss_advice_learned_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_learned *learned = &advice->learned;
	char rule[RULE_TEXT_MAX], size[SIZE_TEXT_MAX], other[OTHER_TEXT_MAX];

	if (!learned->known || advice->has_choice || !advice->sizing.recommended_bytes.known)
		return false;
	rule_format(&learned->rule, rule);
	wss_size_format(learned->steady_bytes, size, sizeof(size));
	other_size_format(learned, other);
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "learned from %" PRIu64 " hour%s: %s, which is %s%s",
		 learned->hours, wss_plural(learned->hours), rule, size, other);
	return true;
}

bool wss_advice_risk_text(const struct wss_advice *advice, double risk,
			  char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sweep_choice *choice = &advice->choice;
	char rule[RULE_TEXT_MAX], other[OTHER_TEXT_MAX], headroom[80] = "";

	if (!(risk > 0) || !advice->sizing.recommended_bytes.known)
		return false;
	if (!advice->has_choice || !advice->learned.known) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
			 "no rule can be chosen for a risk of %g%%: %s", 100 * risk,
			 advice->rule_is_fixed ? "its policy has a headroom"
					       : "that takes two weeks of measured hours");
		return true;
	}
	rule_format(&choice->rule, rule);
	other_size_format(&advice->learned, other);
	if (!advice->sizing.growth.known)
		snprintf(headroom, sizeof(headroom),
			 " and %" PRIu64 "%%, as its windows have no growth curves",
			 wss_sizing_learned_headroom(&advice->rule, &advice->sizing));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "risk of %g%%: %s%s: of %" PRIu64
		 " held-out hour%s %" PRIu64 " needed more, with 95%% certainty at most %.2g%%%s%s",
		 100 * risk, rule, headroom, choice->hours, wss_plural(choice->hours), choice->violations,
		 100 * choice->bound, choice->met ? "" : "; no rule keeps that risk", other);
	return true;
}

bool wss_advice_pressure_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_sizing *sizing = &advice->sizing;
	char kinds[WSS_PRESSURE_TEXT_MAX], age[SIZE_TEXT_MAX], had[SIZE_TEXT_MAX],
		size[SIZE_TEXT_MAX];

	if (!sizing->pressure_bytes.known)
		return false;
	wss_pressure_format(sizing->pressed.kinds, kinds);
	wss_age_format((uint64_t)wss_clock_age_seconds(sizing->pressed.time), age, sizeof(age));
	wss_size_format(sizing->pressed.had_bytes, had, sizeof(had));
	wss_size_format(sizing->pressure_bytes.value, size, sizeof(size));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX,
		 "it had too little memory %s ago, with %s (%s): that asks for %s now, and for less "
		 "each day",
		 age, had, kinds, size);
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

/* Formats the confidence: "low confidence: 12 windows in 1 min, needs 7 days". */
static void trust_text(const struct wss_advice *advice, char ret_text[WSS_ADVICE_TEXT_MAX])
{
	const struct wss_summary *summary = &advice->series.summary;
	enum wss_confidence confidence = advice->sizing.confidence;
	bool is_week = summary->last - summary->first >= WSS_SIZING_WEEK_S;
	char windows[80];
	const char *wanted = "";

	if (confidence == WSS_CONFIDENCE_NONE) {
		snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "too early: %" PRIu64 " of %d windows",
			 summary->samples, WSS_SIZING_SAMPLES_MIN);
		return;
	}
	windows_format(summary, windows, sizeof(windows));
	if (!is_week)
		wanted = ", needs 7 days";
	else if (advice->sizing.from_peak)
		wanted = ", needs more";
	else if (confidence == WSS_CONFIDENCE_LOW)
		wanted = advice->sizing.growth.known && !advice->sizing.grown_bytes.known
				 ? ", many of them degraded"
				 : ", needs longer ones";
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "%s confidence: %s%s",
		 wss_confidence_name(confidence), windows, wanted);
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
	uint64_t bytes = wss_u64_min(advice->cold.low_bytes.value,
				     advice->sizing.reclaimable_bytes.value);
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
		snprintf(step, sizeof(step), "%s -> %s would free nothing on the host now",
			 from, to);
	else
		snprintf(step, sizeof(step), "%s -> %s would free %s on the host%s", from, to,
			 frees, idle_text(advice, idle));
	snprintf(ret_text, WSS_ADVICE_TEXT_MAX, "%.*s; %.*s", 140, step, 250, trust);
	return true;
}
