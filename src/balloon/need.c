/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/need.h"

#include "base/clock.h"

/* Default period if the policy has none, as in dist/virt-wss-sample.timer. */
#define PERIOD_DEFAULT_S 300

/* Converts a wall-clock time to the monotonic clock. */
static int64_t window_time_s(time_t wall)
{
	return wss_clock_now_seconds() - wss_clock_age_seconds(wall);
}

int wss_need_read(const struct wss_advice_options *options, struct wss_history *history,
		  const char *uuid, const struct wss_policy *policy, struct wss_need *ret_need,
		  struct wss_error *err)
{
	const struct wss_advice_guest guest = {.uuid = uuid, .active = true, .policy = policy};
	time_t since = wss_advice_since(options, wss_clock_wall_seconds());
	struct wss_need need = {.time_s = window_time_s(0)};
	struct wss_advice advice;

	if (wss_advice_read(history, &guest, since, options, &advice, err) < 0)
		return -1;
	need.minimum_bytes = advice.rule.minimum_bytes;
	need.headroom_percent = advice.rule.headroom_percent;
	need.period_s =
		policy->period_ns.known ? policy->period_ns.value / WSS_NS_PER_S : PERIOD_DEFAULT_S;
	if (advice.has_series) {
		need.confidence = advice.sizing.confidence;
		need.windows = advice.series.summary.samples;
		need.needed_bytes = advice.sizing.need_bytes.value;
		need.reason = advice.sizing.need_reason;
		need.wss_bytes = advice.series.wss_bytes;
		need.rss_bytes = advice.series.rss_bytes;
		need.qemu_bytes = advice.series.qemu_bytes;
		need.time_s = window_time_s(advice.series.time);
	}
	wss_advice_free(&advice);
	*ret_need = need;
	return 0;
}
