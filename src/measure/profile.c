/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/profile.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

void wss_profile_from_sample(const struct wss_sample *sample, const char *tool_version,
			     struct wss_profile *ret_profile)
{
	struct wss_working_set figure = wss_sample_figure(sample);
	struct wss_profile profile = {
		.version = WSS_PROFILE_VERSION,
		.time = sample->wall,
		.window_ns = sample->window_ns.value,
		.granularity_bytes = sample->granularity_bytes.value,
		.current_bytes = sample->wss_bytes.value,
		.low_bytes = sample->low_bytes.value,
		.high_bytes = sample->high_bytes.value,
	};

	/* Of a degraded window only the lower bound is sure; the upper one is the guest's memory. */
	if (sample->quality == WSS_QUALITY_DEGRADED && figure.bytes.known) {
		profile.current_bytes = figure.bytes.value;
		profile.high_bytes =
			wss_u64_max(profile.high_bytes, sample->memory.maximum_bytes.known
								? sample->memory.maximum_bytes.value
								: 0);
	}
	snprintf(profile.method, sizeof(profile.method), "%s", sample->method);
	snprintf(profile.observes, sizeof(profile.observes), "%s",
		 wss_observes_name(sample->observes));
	/* A single window is only an indication; differing bounds make it a weak one. */
	snprintf(profile.confidence, sizeof(profile.confidence), "%s",
		 sample->quality == WSS_QUALITY_OK && profile.low_bytes == profile.high_bytes
			 ? "single"
			 : "low");
	snprintf(profile.tool, sizeof(profile.tool), "%s", tool_version);
	*ret_profile = profile;
}

static bool same_amount(struct wss_amount a, struct wss_amount b)
{
	return a.known == b.known && (!a.known || a.value == b.value);
}

/* Compares everything but the time and the number of samples. */
static bool same_figures(const struct wss_profile *a, const struct wss_profile *b)
{
	return !strcmp(a->method, b->method) && !strcmp(a->observes, b->observes) &&
	       !strcmp(a->confidence, b->confidence) && !strcmp(a->tool, b->tool) &&
	       !strcmp(a->coarse_why, b->coarse_why) &&
	       a->granularity_bytes == b->granularity_bytes &&
	       a->current_bytes == b->current_bytes && a->low_bytes == b->low_bytes &&
	       a->high_bytes == b->high_bytes && same_amount(a->p50_bytes, b->p50_bytes) &&
	       same_amount(a->p95_bytes, b->p95_bytes) && same_amount(a->p99_bytes, b->p99_bytes) &&
	       same_amount(a->peak_bytes, b->peak_bytes);
}

bool wss_profile_due(const struct wss_profile *old, const struct wss_profile *now)
{
	if (old->time > now->time)
		return true;
	if (now->time - old->time < WSS_PUBLISH_PERIOD_S)
		return false;
	return now->time - old->time >= WSS_PUBLISH_REFRESH_S || !same_figures(old, now);
}
