/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sizing/publish-profile.h"

#include <stdio.h>
#include <string.h>

#define SPAN_S (7 * WSS_HISTORY_DAY)

void wss_profile_add_sizing(struct wss_profile *profile, uint64_t samples, time_t first,
			    const struct wss_sizing *sizing)
{
	profile->samples = wss_amount_of(samples);
	profile->since = wss_amount_of(first < 0 ? 0 : (uint64_t)first);
	/* Too early: keep the confidence of the single window. */
	if (sizing->confidence == WSS_CONFIDENCE_NONE)
		return;
	profile->p50_bytes = sizing->p50_bytes;
	profile->p95_bytes = sizing->p95_bytes;
	profile->p99_bytes = sizing->p99_bytes;
	profile->peak_bytes = sizing->peak_bytes;
	snprintf(profile->confidence, sizeof(profile->confidence), "%s",
		 wss_confidence_name(sizing->confidence));
}

void wss_publish_profile(struct wss_history *history, const struct wss_sample *sample,
			 const struct wss_policy *policy, struct wss_profile *ret_profile)
{
	static const struct wss_sizing_rule rule = {.percentile = 0.99};
	const struct wss_sizing_state unknown = {.held_bytes = {0}};
	struct wss_history_series series;
	struct wss_sizing sizing;

	wss_profile_from_sample(sample, PACKAGE_VERSION, ret_profile);
	if (!history || wss_history_series(history, sample->uuid, sample->wall - SPAN_S,
					   WSS_HISTORY_CURVE, &series, NULL) != 1)
		return;
	wss_sizing_compute(&series.summary, &rule, policy, &unknown, &sizing);
	/* Figures from a different kind of window must not appear next to these. */
	if (!strcmp(series.method, sample->method) &&
	    series.granularity_bytes == sample->granularity_bytes.value &&
	    series.window_ns == sample->requested_window_ns)
		wss_profile_add_sizing(ret_profile, series.summary.samples, series.summary.first,
				       &sizing);
	wss_summary_free(&series.summary);
}
