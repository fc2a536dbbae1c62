/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/sizing.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"

#define MIB (1ULL << 20)
#define HOUR 3600
#define HOURS_MAX (366 * 24)
/* One degraded window in five makes the result doubtful. */
#define DEGRADED_SHARE 5
/* A set fills memory of which it leaves less than this part untouched. */
#define UNTOUCHED_PART 20
/* Upper limit of the least gain that makes shrinking a guest worthwhile. */
#define LEAST_GAIN_MAX (64 * MIB)
/* Up to this number of windows, ranks are counted one by one, in (1 - p) * n steps. */
#define RANK_COUNTED_MAX 1000000
#define NORMAL_CERTAINTY 1.6448536269514722 /* quantile of the normal distribution */

const char *wss_confidence_name(enum wss_confidence confidence)
{
	static const char *const names[] = {"none", "low", "medium", "high"};

	return names[confidence];
}

/*
 * Returns the rank among more than RANK_COUNTED_MAX windows, for 0.5 <= p <= 0.999: the normal
 * quantile with its first correction for skewness (Cornish and Fisher, 1938). It is one or two
 * ranks above the exact one, never below.
 */
static uint64_t rank_of_many(uint64_t n, double p)
{
	double z = NORMAL_CERTAINTY, mean = (double)n * p, skewness = (z * z - 1) * (1 - 2 * p) / 6;
	double rank = ceil(mean + z * sqrt(mean * (1 - p)) + skewness) + 2;

	return rank < (double)n ? (uint64_t)rank : n;
}

uint64_t wss_sizing_rank(uint64_t n, double p)
{
	/*
	 * Uses logarithms, because p^n underflows to 0 long before n reaches a year's number
	 * of windows.
	 */
	double log_pmf = (double)n * log(p), tail = exp(log_pmf);
	uint64_t rank = n;

	if (!n || tail > 1 - WSS_SIZING_CERTAINTY)
		return 0;
	if (n > RANK_COUNTED_MAX)
		return rank_of_many(n, p);
	while (rank > 1) {
		log_pmf += log((double)rank) + log1p(-p) - log((double)(n - rank + 1)) - log(p);
		tail += exp(log_pmf);
		if (tail > 1 - WSS_SIZING_CERTAINTY)
			break;
		rank--;
	}
	return rank;
}

void wss_sizing_apply_policy(struct wss_sizing_rule *rule, const struct wss_policy *policy,
			     struct wss_amount maximum_bytes)
{
	if (policy->headroom_percent.known)
		rule->headroom_percent = policy->headroom_percent.value;
	if (policy->minimum_bytes.known)
		rule->minimum_bytes = policy->minimum_bytes.value;
	else if (rule->minimum_is_default && maximum_bytes.known)
		rule->minimum_bytes = wss_u64_min(rule->minimum_bytes, maximum_bytes.value / 2);
}

uint64_t wss_sizing_coarse(uint64_t bytes)
{
	uint64_t step = MIB;

	while (step <= bytes / 64)
		step *= 2;
	return bytes % step ? wss_u64_add(bytes - bytes % step, step) : bytes;
}

static uint64_t with_headroom(uint64_t bytes, uint64_t percent)
{
	double size = (double)bytes * (1 + (double)percent / 100);

	return size < 9e18 ? wss_u64_from_double(size) : (uint64_t)9e18;
}

const char *wss_sizing_reason_name(enum wss_sizing_reason reason)
{
	static const char *const names[] = {"peak",	   "percentile", "recurring peak",
					    "full memory", "growth",	 "memory in use",
					    "minimum",	   "rounding",	 "maximum"};

	return names[reason];
}

/* Raises the recommended size to one more, and remembers the reason. */
static void size_raise(struct wss_sizing *sizing, uint64_t bytes, enum wss_sizing_reason reason)
{
	if (sizing->recommended_bytes.known && bytes <= sizing->recommended_bytes.value)
		return;
	sizing->recommended_bytes = wss_amount_of(bytes);
	sizing->reason = reason;
}

/* Returns the size with which the guest can be started. */
static uint64_t size_round(struct wss_sizing *sizing, const struct wss_rounding *rounding)
{
	uint64_t bytes = sizing->recommended_bytes.value,
		 whole = wss_u64_add(bytes, MIB - 1) / MIB * MIB;
	struct wss_amount up = wss_amount_of(whole);

	if (!rounding)
		return whole;
	sizing->unrounded_bytes = wss_amount_of(whole);
	up = wss_rounding_up(rounding, bytes);
	sizing->outgrows = !up.known;
	if (!up.known)
		return whole;
	if (up.value > whole)
		sizing->reason = WSS_SIZING_ROUNDING;
	return up.value;
}

/* Headroom covers what the windows did not show; a learned or an extrapolated size already includes that. */
static void size_recommend(struct wss_sizing *sizing, const struct wss_sizing_rule *rule,
			   const struct wss_policy *policy, const struct wss_sizing_state *state)
{
	uint64_t bytes;

	if (state->learned && state->learned->known)
		size_raise(sizing, state->learned->target_bytes,
			   state->learned->recurring_bytes ? WSS_SIZING_RECURRING
			   : state->learned->quantile_bytes < state->learned->peak_bytes
				   ? WSS_SIZING_PERCENTILE
				   : WSS_SIZING_PEAK);
	else
		size_raise(sizing, with_headroom(sizing->base_bytes.value, rule->headroom_percent),
			   sizing->from_peak ? WSS_SIZING_PEAK : WSS_SIZING_PERCENTILE);
	if (sizing->filled_bytes.known)
		size_raise(sizing, sizing->filled_bytes.value, WSS_SIZING_FILLS);
	if (sizing->grown_bytes.known)
		size_raise(sizing, sizing->grown_bytes.value, WSS_SIZING_BEYOND);
	sizing->need_bytes = sizing->recommended_bytes;
	sizing->need_reason = sizing->reason;
	/* Its kernel keeps the reserve from whatever the set is made of. */
	sizing->recommended_bytes.value =
		wss_u64_add(sizing->need_bytes.value, state->reserve_bytes.value);
	if (state->floor.bytes)
		size_raise(sizing,
			   wss_floor_bytes(&state->floor, sizing->base_bytes.value,
					   rule->headroom_percent),
			   WSS_SIZING_IN_USE);
	size_raise(sizing, rule->minimum_bytes, WSS_SIZING_MINIMUM);
	bytes = size_round(sizing, rule->rounding);
	/* The operator's maximum is final, even if no guest can be given exactly that. */
	sizing->wanted_bytes = wss_amount_of(bytes);
	if (policy->maximum_bytes.known && policy->maximum_bytes.value < bytes) {
		sizing->reason = WSS_SIZING_MAXIMUM;
		bytes = policy->maximum_bytes.value;
	}
	sizing->recommended_bytes = wss_amount_of(bytes);
}

/* A size is trusted as far as it has proved itself, and no further than the windows that it is from. */
static enum wss_confidence confidence_of(const struct wss_summary *summary,
					 const struct wss_learned *learned,
					 const struct wss_growth *growth)
{
	if (summary->samples < WSS_SIZING_SAMPLES_MIN)
		return WSS_CONFIDENCE_NONE;
	if (!growth->known || wss_growth_goes_on(growth))
		return WSS_CONFIDENCE_LOW;
	if (summary->degraded * DEGRADED_SHARE > summary->samples + summary->degraded)
		return WSS_CONFIDENCE_LOW;
	return learned && learned->known ? learned->confidence : WSS_CONFIDENCE_LOW;
}

uint64_t wss_keep_bytes(const struct wss_keep *keep)
{
	uint64_t set = with_headroom(keep->wss_bytes.value, keep->headroom_percent);
	uint64_t size = wss_u64_max(keep->minimum_bytes,
				    wss_u64_add(keep->need_bytes, keep->reserve_bytes));

	if (keep->wss_bytes.known)
		size = wss_u64_max(size, wss_u64_add(set, keep->reserve_bytes));
	if (keep->in_use_bytes.known)
		size = wss_u64_max(size,
				   wss_u64_add(keep->in_use_bytes.value,
					       wss_floor_spare(keep->in_use_bytes.value,
							       keep->wss_bytes.known
								       ? keep->wss_bytes.value
								       : keep->in_use_bytes.value,
							       keep->headroom_percent)));
	return size;
}

struct wss_amount wss_keep_gain(struct wss_amount actual_bytes, struct wss_amount rss_bytes,
				uint64_t to_bytes)
{
	if (!actual_bytes.known || !rss_bytes.known)
		return (struct wss_amount){0};
	return wss_amount_of(
		wss_u64_sub(wss_u64_min(actual_bytes.value, rss_bytes.value), to_bytes));
}

uint64_t wss_keep_least_gain(uint64_t actual_bytes)
{
	return wss_u64_min(actual_bytes / 20, LEAST_GAIN_MAX);
}

static struct wss_amount reclaimable_size(const struct wss_sizing *sizing,
					  const struct wss_sizing_rule *rule,
					  const struct wss_sizing_state *state)
{
	const struct wss_keep keep = {.minimum_bytes = rule->minimum_bytes,
				      .headroom_percent = rule->headroom_percent,
				      .need_bytes = sizing->need_bytes.value,
				      .wss_bytes = state->wss_bytes,
				      .in_use_bytes = state->in_use_bytes,
				      .reserve_bytes = state->reserve_bytes.value};
	struct wss_amount balloon = state->balloon_bytes.known ? state->balloon_bytes
							       : state->held_bytes,
			  gain;
	uint64_t to = wss_keep_bytes(&keep);

	if (!state->in_use_bytes.known)
		to = wss_u64_max(to, sizing->wanted_bytes.value);
	gain = wss_keep_gain(balloon, state->held_bytes.known ? state->held_bytes : balloon, to);
	if (gain.value < wss_keep_least_gain(balloon.value))
		gain.value = 0;
	return gain;
}

static struct wss_amount grown_size(uint64_t base, const struct wss_growth *growth,
				    struct wss_amount maximum)
{
	uint64_t bytes = wss_sizing_coarse(wss_u64_add(base, wss_growth_beyond_bytes(growth)));

	if (!wss_growth_goes_on(growth))
		return (struct wss_amount){0};
	if (maximum.known)
		bytes = wss_u64_max(base, wss_u64_min(bytes, maximum.value));
	return wss_amount_of(bytes);
}

/* Returns the guest's memory if the set fills what of it its kernel hands out. */
static struct wss_amount filled_memory(uint64_t set_bytes, const struct wss_sizing_state *state)
{
	uint64_t all = wss_u64_sub(state->maximum_bytes.value, state->reserve_bytes.value);

	return state->maximum_bytes.known && set_bytes >= all - all / UNTOUCHED_PART
		       ? state->maximum_bytes
		       : (struct wss_amount){0};
}

void wss_sizing_recommend(struct wss_sizing *sizing, const struct wss_sizing_rule *rule,
			  const struct wss_policy *policy, const struct wss_sizing_state *state)
{
	const struct wss_amount unknown = {.known = false};

	if (sizing->confidence == WSS_CONFIDENCE_NONE)
		return;
	sizing->recommended_bytes = sizing->wanted_bytes = sizing->unrounded_bytes = unknown;
	sizing->reclaimable_bytes = unknown;
	sizing->outgrows = false;
	size_recommend(sizing, rule, policy, state);
	if (state->floor.source == WSS_FLOOR_UNKNOWN) {
		sizing->recommended_bytes = sizing->wanted_bytes = sizing->unrounded_bytes =
			unknown;
		sizing->outgrows = false;
		return;
	}
	sizing->reclaimable_bytes = reclaimable_size(sizing, rule, state);
}

void wss_sizing_compute(const struct wss_summary *summary, const struct wss_sizing_rule *rule,
			const struct wss_policy *policy, const struct wss_sizing_state *state,
			struct wss_sizing *ret_sizing)
{
	uint64_t rank = wss_sizing_rank(summary->samples, rule->percentile);
	struct wss_sizing sizing = {.from_peak = rank == 0, .growth = wss_growth_of(summary)};

	sizing.confidence = confidence_of(summary, state->learned, &sizing.growth);
	if (sizing.confidence != WSS_CONFIDENCE_NONE) {
		uint64_t base = rank ? wss_u64_min(wss_histogram_at_rank(&summary->sizes, rank),
						   summary->max_bytes)
				     : summary->max_bytes;

		sizing.p50_bytes = wss_amount_of(wss_summary_percentile(summary, 0.5));
		sizing.p95_bytes = wss_amount_of(wss_summary_percentile(summary, 0.95));
		sizing.p99_bytes = wss_amount_of(wss_summary_percentile(summary, 0.99));
		sizing.peak_bytes = wss_amount_of(summary->max_bytes);
		sizing.base_bytes = wss_amount_of(base);
		sizing.grown_bytes = grown_size(base, &sizing.growth, state->maximum_bytes);
		sizing.filled_bytes = filled_memory(base, state);
		if (sizing.filled_bytes.known)
			sizing.confidence = WSS_CONFIDENCE_LOW;
	}
	wss_sizing_recommend(&sizing, rule, policy, state);
	*ret_sizing = sizing;
}

int wss_fit_init(struct wss_fit *fit, time_t from, time_t to)
{
	size_t n;

	from -= from % HOUR;
	n = to > from ? (size_t)((to - from) / HOUR) + 1 : 1;
	if (n > HOURS_MAX) {
		from += (time_t)(n - HOURS_MAX) * HOUR;
		n = HOURS_MAX;
	}
	*fit = (struct wss_fit){
		.from = from, .n_hours = n, .hours = calloc(n, sizeof(*fit->hours))};
	return fit->hours ? 0 : -1;
}

void wss_fit_free(struct wss_fit *fit)
{
	free(fit->hours);
	fit->hours = NULL;
}

void wss_fit_hour(struct wss_fit *fit, time_t start, uint64_t bytes)
{
	size_t at;

	if (start < fit->from)
		return;
	at = (size_t)((start - fit->from) / HOUR);
	if (at >= fit->n_hours || fit->hours[at].seen)
		return;
	fit->hours[at].bytes = wss_u64_add(fit->hours[at].bytes, bytes);
	fit->hours[at].seen = true;
	fit->hours[at].any = true;
}

void wss_fit_guest(struct wss_fit *fit, uint64_t otherwise_bytes)
{
	for (size_t i = 0; i < fit->n_hours; i++) {
		struct wss_fit_hour *hour = &fit->hours[i];

		if (!hour->seen)
			hour->bytes = wss_u64_add(hour->bytes, otherwise_bytes);
		hour->seen = false;
	}
}

static int fit_compare_sizes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int wss_fit_result(const struct wss_fit *fit, double probability, struct wss_fit_result *ret_result)
{
	struct wss_fit_result result = {0};
	uint64_t *sums = calloc(fit->n_hours ? fit->n_hours : 1, sizeof(*sums)), rank;

	if (!sums)
		return -1;
	for (size_t i = 0; i < fit->n_hours; i++)
		if (fit->hours[i].any)
			sums[result.hours++] = fit->hours[i].bytes;
	if (result.hours) {
		qsort(sums, result.hours, sizeof(*sums), fit_compare_sizes);
		rank = wss_sizing_rank(result.hours, probability);
		result.from_peak = rank == 0;
		result.bytes = wss_amount_of(sums[(rank ? rank : result.hours) - 1]);
	}
	free(sums);
	*ret_result = result;
	return 0;
}
