/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/guest-view.h"

#include <stdio.h>
#include <string.h>

#include "measure/sample.h"

void wss_view_sample(const struct wss_sample *sample, struct wss_guest_sample *ret_sample)
{
	struct wss_working_set figure = wss_sample_figure(sample);

	*ret_sample = (struct wss_guest_sample){
		.granularity_bytes = sample->granularity_bytes,
		.window_ns = sample->window_ns,
		.wss_bytes = figure.bytes,
		.low_bytes = figure.low_bytes,
		.high_bytes = figure.high_bytes,
		.memory = {.maximum_bytes = sample->memory.maximum_bytes,
			   .balloon_bytes = sample->memory.balloon_bytes,
			   .rss_bytes = sample->memory.rss_bytes,
			   .swap_bytes = sample->memory.swap_bytes},
	};
	snprintf(ret_sample->quality, sizeof(ret_sample->quality), "%s",
		 wss_quality_name(sample->quality));
	snprintf(ret_sample->method, sizeof(ret_sample->method), "%s",
		 sample->method ? sample->method : "");
	snprintf(ret_sample->observes, sizeof(ret_sample->observes), "%s",
		 wss_observes_name(sample->observes));
}

bool wss_view_is(const struct wss_guest_view *guest, const char *state)
{
	return !strcmp(guest->state, state);
}

bool wss_view_is_degraded(const struct wss_guest_view *guest)
{
	return !strcmp(guest->sample.quality, wss_quality_name(WSS_QUALITY_DEGRADED));
}

bool wss_view_has_wss(const struct wss_guest_view *guest)
{
	return guest->sample.wss_bytes.known &&
	       !strcmp(guest->sample.observes, wss_observes_name(WSS_OBSERVES_ACCESSES));
}

struct wss_amount wss_view_size(const struct wss_guest_view *guest)
{
	return guest->sample.memory.balloon_bytes.known ? guest->sample.memory.balloon_bytes
							: guest->sample.memory.maximum_bytes;
}

bool wss_view_percent(const struct wss_guest_view *guest, double *ret_percent)
{
	struct wss_amount size = wss_view_size(guest);

	if (!wss_view_has_wss(guest) || !size.known || !size.value)
		return false;
	*ret_percent = 100.0 * (double)guest->sample.wss_bytes.value / (double)size.value;
	return true;
}

uint64_t wss_view_sum_add(struct wss_view_sum *sum, const struct wss_guest_sample *sample)
{
	uint64_t bytes = sample->wss_bytes.value;
	enum wss_bound bound = wss_bound_of(bytes, sample->low_bytes, sample->high_bytes);
	uint64_t low = bound == WSS_BOUND_AT_MOST ? sample->low_bytes.value : bytes;

	sum->bytes += bytes;
	sum->low_bytes += low;
	sum->at_most = sum->at_most || bound == WSS_BOUND_AT_MOST;
	sum->at_least = sum->at_least || bound == WSS_BOUND_AT_LEAST;
	return low;
}

enum wss_bound wss_view_sum_bound(const struct wss_view_sum *sum)
{
	return sum->at_least  ? WSS_BOUND_AT_LEAST
	       : sum->at_most ? WSS_BOUND_AT_MOST
			      : WSS_BOUND_EXACT;
}
