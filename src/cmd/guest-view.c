/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/guest-view.h"

#include <stdio.h>
#include <string.h>

#include "wss/sample.h"

void wss_view_sample(const struct wss_sample *sample, struct wss_guest_sample *ret_sample)
{
	*ret_sample = (struct wss_guest_sample){
		.granularity_bytes = sample->granularity_bytes,
		.window_ns = sample->window_ns,
		.wss_bytes = sample->wss_bytes,
		.low_bytes = sample->low_bytes,
		.high_bytes = sample->high_bytes,
		.written_bytes = sample->written_bytes,
		.memory = { .maximum_bytes = sample->memory.maximum_bytes,
			    .balloon_bytes = sample->memory.balloon_bytes,
			    .rss_bytes = sample->memory.rss_bytes,
			    .swap_bytes = sample->memory.swap_bytes },
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
