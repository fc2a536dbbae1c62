/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "service/publish.h"

#include <string.h>

#include "base/cleanup.h"
#include "host/inventory.h"
#include "out/metadata.h"

#define SPAN_S (7 * WSS_HISTORY_DAY)

void wss_publish_profile(struct wss_history *history, const struct wss_sample *sample,
			 const struct wss_policy *policy, struct wss_profile *ret_profile)
{
	static const struct wss_sizing_rule rule = { .percentile = 0.99 };
	const struct wss_sizing_state unknown = { .held_bytes = { 0 } };
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
		wss_profile_add_sizing(ret_profile, series.summary.samples, series.summary.first, &sizing);
	wss_summary_free(&series.summary);
}

/* Whether to write the profile; an unreadable one is replaced. */
static bool profile_is_due(struct wss_guest *guest, const struct wss_profile *profile)
{
	wss_auto_free char *xml = NULL;
	struct wss_profile old;

	return guest->ops->metadata(guest, WSS_PROFILE_NAMESPACE, &xml, NULL) < 0 || !xml ||
	       wss_metadata_read(xml, &old, NULL) < 0 || wss_profile_due(&old, profile);
}

int wss_publish(struct wss_target *target, const struct wss_profile *profile,
		enum wss_publish_when when, bool persistent, struct wss_error *err)
{
	struct wss_guest *guest = target->guest;
	wss_auto_free char *xml = NULL;
	int r = 0;

	wss_deadline_run(&target->deadline, 0);
	if (when == WSS_PUBLISH_NOW || profile_is_due(guest, profile)) {
		r = wss_metadata_write(profile, &xml, err);
		if (r == 0)
			r = guest->ops->publish(guest, xml, persistent, err);
	}
	wss_deadline_pause(&target->deadline);
	return r;
}
