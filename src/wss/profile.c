/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wss/profile.h"

#include <stdio.h>

void wss_profile_from_sample(const struct wss_sample *sample, const char *tool_version,
			     struct wss_profile *ret_profile)
{
	struct wss_profile profile = {
		.version = WSS_PROFILE_VERSION,
		.time = sample->wall,
		.window_ns = sample->window_ns.value,
		.granularity_bytes = sample->granularity_bytes.value,
		.current_bytes = sample->wss_bytes.value,
		.low_bytes = sample->low_bytes.value,
		.high_bytes = sample->high_bytes.value,
	};

	snprintf(profile.method, sizeof(profile.method), "%s", sample->method);
	snprintf(profile.observes, sizeof(profile.observes), "%s",
		 wss_observes_name(sample->observes));
	/* One window is never more than a hint; bounds that are apart make it a weak one. */
	snprintf(profile.confidence, sizeof(profile.confidence), "%s",
		 sample->quality == WSS_QUALITY_OK && profile.low_bytes == profile.high_bytes
			 ? "single"
			 : "low");
	snprintf(profile.tool, sizeof(profile.tool), "%s", tool_version);
	*ret_profile = profile;
}
