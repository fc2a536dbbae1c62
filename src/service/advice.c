/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/advice.h"

const char *wss_advice_status_name(enum wss_advice_status status)
{
	static const char *const names[] = {"failed", "unknown", "too early", "opted out",
					    "ok"};

	return names[status];
}

time_t wss_advice_since(const struct wss_advice_options *options, time_t now)
{
	return now - (time_t)(options->span_ns / WSS_NS_PER_S);
}

/* Computes the size that the miss-rate curve requires, for the advice and for the sizing. */
static void advice_add_curve(struct wss_advice *advice,
			     const struct wss_advice_options *options,
			     struct wss_sizing_state *state)
{
	const struct wss_history_series *series = &advice->series;
	struct wss_missrate *missrate = &advice->missrate;
	uint64_t size,
		all = series->maximum_bytes.known ? series->maximum_bytes.value : UINT64_MAX;

	/*
	 * The curve counts 4 KiB pages; coarser windows also count untouched pages around each
	 * touched one.
	 */
	if (series->granularity_bytes > 4096 ||
	    !wss_missrate_from_summary(missrate, &series->summary))
		return;
	advice->has_missrate = true;
	advice->curve_is_beyond =
		!wss_missrate_size(missrate, options->target_loss, options->fault_ns, &size);
	if (advice->curve_is_beyond) {
		size = wss_missrate_reach_bytes(missrate, options->target_loss,
						options->fault_ns);
		size = size < all ? size : all;
	}
	advice->curve_bytes = state->curve_bytes = wss_amount_of(size);
}

static void advice_ask_what_if(struct wss_advice *advice,
			       const struct wss_advice_options *options)
{
	const struct wss_summary *summary = &advice->series.summary;
	uint64_t bytes = options->what_if_bytes.value;

	advice->what_if.bytes = options->what_if_bytes;
	if (!options->what_if_bytes.known)
		return;
	if (summary->samples)
		advice->what_if.exceeded =
			(double)wss_histogram_above(&summary->sizes, bytes) /
			(double)summary->samples;
	if (!advice->has_missrate)
		return;
	advice->what_if.faults_per_second =
		wss_missrate_at(&advice->missrate, bytes, &advice->what_if.bound);
	advice->what_if.loss =
		wss_missrate_loss(advice->what_if.faults_per_second, options->fault_ns);
}

/* Sizes a guest from the series in its advice. */
static void advice_size(struct wss_advice *advice, const struct wss_advice_guest *guest,
			const struct wss_advice_options *options)
{
	struct wss_sizing_state state = {.held_bytes = {0}};
	struct wss_policy policy = *guest->policy;
	struct wss_sizing_rule rule;

	wss_sizing_heed(&advice->rule, &policy);
	rule = advice->rule;
	if (guest->need_only) {
		rule.minimum_bytes = 0;
		policy.maximum_bytes.known = false;
	}
	if (guest->active) {
		advice->held_bytes = state.held_bytes = advice->series.rss_bytes;
		state.balloon_bytes = advice->series.balloon_bytes;
	}
	advice->assigned_bytes = state.maximum_bytes = advice->series.maximum_bytes;
	advice_add_curve(advice, options, &state);
	wss_sizing_compute(&advice->series.summary, &rule, &policy, &state, &advice->sizing);
	advice->status = advice->sizing.confidence == WSS_CONFIDENCE_NONE
				 ? WSS_ADVICE_TOO_EARLY
				 : WSS_ADVICE_OK;
	advice_ask_what_if(advice, options);
}

int wss_advice_read(struct wss_history *history, const struct wss_advice_guest *guest,
		    time_t since, const struct wss_advice_options *options,
		    struct wss_advice *ret_advice, struct wss_error *err)
{
	struct wss_advice advice = {.status = WSS_ADVICE_UNKNOWN, .rule = options->rule};
	int r = 0;

	if (history && guest->uuid && *guest->uuid)
		r = wss_history_series(history, guest->uuid, since, WSS_HISTORY_CURVE,
				       &advice.series, err);
	if (r < 0)
		return -1;
	/*
	 * Windows that see only writes cannot show how much memory the guest needs for
	 * reading.
	 */
	advice.only_writes = r == 1 && advice.series.observes == WSS_OBSERVES_WRITES;
	advice.has_series = r == 1 && !advice.only_writes;
	if (advice.has_series)
		advice_size(&advice, guest, options);
	else
		wss_sizing_heed(&advice.rule, guest->policy);
	if (guest->policy->opt_out)
		advice.status = WSS_ADVICE_OPTED_OUT;
	*ret_advice = advice;
	return 0;
}

void wss_advice_free(struct wss_advice *advice)
{
	wss_summary_free(&advice->series.summary);
}
