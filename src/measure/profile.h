/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Profile of a guest in the inventory. Plain data. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "measure/sample.h"

#define WSS_PROFILE_VERSION 1

struct wss_profile {
	unsigned version; /* of the element's schema */
	time_t time;
	char method[WSS_METHOD_NAME_MAX];
	char observes[16];
	uint64_t window_ns;
	uint64_t granularity_bytes;
	uint64_t current_bytes;
	uint64_t low_bytes;
	uint64_t high_bytes;
	/* Unknown without a history. */
	struct wss_amount p50_bytes;
	struct wss_amount p95_bytes;
	struct wss_amount p99_bytes;
	struct wss_amount peak_bytes;
	struct wss_amount samples; /* number of samples that these figures are based on */
	struct wss_amount since;   /* time of the oldest of them, seconds since the epoch */
	/*
	 * "single": one good sample; "low": one that is degraded or bounded; with a history also "medium" or "high".
	 */
	char confidence[16];
	char tool[32]; /* version of the program that wrote it */
	/* Why the guest is not measured by 4 KiB; "": it is, or that is not known. */
	char coarse_why[512];
};

/* Makes a profile from one measured sample; of a degraded one its current figure is the lower bound. */
void wss_profile_from_sample(const struct wss_sample *sample, const char *tool_version,
			     struct wss_profile *ret_profile);

/*
 * Whether a round should replace the published profile, old, by the new one: after
 * WSS_PUBLISH_PERIOD_S if a figure has changed; otherwise after WSS_PUBLISH_REFRESH_S, to show
 * readers that the guest is still being measured. A profile from the future (the clock was set
 * back) is replaced at once.
 */
#define WSS_PUBLISH_PERIOD_S (15 * 60)
#define WSS_PUBLISH_REFRESH_S (24 * 3600)
bool wss_profile_due(const struct wss_profile *old, const struct wss_profile *now);
