/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/look.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"

/* Of the round that the timer runs, where the policy names no other. */
#define PERIOD_DEFAULT_S 300
/* Of what the disks have read QEMU is asked. */
#define READS_PERIOD_S 10
/* A guest that reports at all does so every few seconds. */
#define STATISTICS_MAX_AGE_S 60

/* Why memory that the guest gives up would not come back to the host. */
static const char *hazard_of(const struct wss_domxml *config)
{
	if (config->hostdevs)
		return "a device of the host is passed through, which pins its memory";
	if (config->launch_security[0])
		return "its memory is encrypted, and pinned";
	if (config->locked)
		return "its memory is locked";
	if (config->hugepages)
		return "its memory is of huge pages, which stay whole";
	return NULL;
}

static int64_t now_s(void)
{
	return (int64_t)(wss_clock_now_ns() / WSS_NS_PER_S);
}

/* By the time of day. What is of the future is of a clock that was wrong: as far away is as old. */
static int64_t age_of(int64_t time_s)
{
	int64_t now = wss_clock_wall_seconds();

	return now > time_s ? now - time_s : time_s - now;
}

static void note_report(struct balloon_reports *reports, uint64_t update_s, bool running)
{
	int64_t now = now_s(), age = age_of((int64_t)update_s), since = now - reports->looked_s;

	if (update_s != reports->update_s) {
		/* It was not there at the look before. */
		if (reports->update_s && age > since)
			age = since;
		reports->said_s = reports->heard_s = now - age;
		reports->update_s = update_s;
	}
	if (!running)
		reports->heard_s = now;
	reports->looked_s = now;
}

int wss_balloon_look_statistics(struct wss_guest *guest, struct balloon_reports *reports,
				struct balloon_look *look, struct wss_error *err)
{
	struct wss_balloon_view *view = &look->view;
	struct wss_balloon_stats stats;

	look->facts.statistics = false;
	look->view = (struct wss_balloon_view){ .now_s = (uint64_t)now_s() };
	if (!guest->ops->balloon_stats)
		return 0;
	if (guest->ops->balloon_stats(guest, &stats, err) < 0)
		return -1;
	view->actual_bytes = stats.actual_bytes;
	view->rss_bytes = stats.rss_bytes;
	/* What the guest says counts while it is fresh. */
	if (!stats.update_s.known || !stats.update_s.value ||
	    stats.update_s.value > (uint64_t)WSS_TIME_MAX_S || !stats.usable_bytes.known)
		return 0;
	note_report(reports, stats.update_s.value, guest->state == WSS_GUEST_RUNNING);
	if (reports->looked_s - reports->heard_s > STATISTICS_MAX_AGE_S)
		return 0;
	look->facts.statistics = true;
	view->now_s = (uint64_t)reports->looked_s;
	view->statistics_age_s = (uint64_t)(reports->looked_s - reports->said_s);
	view->usable_bytes = stats.usable_bytes;
	view->free_bytes = stats.free_bytes;
	view->cache_bytes = stats.cache_bytes;
	view->managed_bytes = stats.managed_bytes;
	/* Linux leaves what is in the balloon in its total where it can take it back by itself. */
	view->managed_of_bytes = view->actual_bytes;
	if (guest->config.balloon_autodeflate && stats.actual_bytes.value < guest->config.initial_bytes)
		view->managed_of_bytes = wss_amount_of(guest->config.initial_bytes);
	view->swapped_bytes = stats.swapped_bytes;
	view->major_faults = stats.major_faults;
	return 0;
}

int wss_balloon_look(const struct wss_target *target, struct balloon_reports *reports,
		     struct balloon_look *ret_look, struct wss_error *err)
{
	struct wss_guest *guest = target->guest;

	*ret_look = (struct balloon_look){
		.facts = { .running = guest->state == WSS_GUEST_RUNNING,
			   .job = guest->job,
			   .has_device = guest->config.has_balloon,
			   .opted_out = target->policy.opt_out,
			   .hazard = hazard_of(&guest->config),
			   .autodeflate = guest->config.balloon_autodeflate },
	};
	return wss_balloon_look_statistics(guest, reports, ret_look, err);
}

void wss_balloon_look_disks(struct wss_guest *guest, struct balloon_reports *reports,
			    struct balloon_look *look)
{
	struct wss_error err = WSS_ERROR_INIT;
	int64_t now = now_s();
	uint64_t bytes;

	/* It can wait for another job; that the guest's statistics could be had shows that there is none. */
	if (!guest->ops->disk_reads || !look->view.usable_bytes.known ||
	    (reports->asked_s && now - reports->asked_s < READS_PERIOD_S))
		return;
	reports->asked_s = now;
	if (guest->ops->disk_reads(guest, &bytes, &err) == 0)
		look->view.read_bytes = wss_amount_of(bytes);
	else
		wss_debug("%s: %s", guest->config.name, err.text);
}

int wss_balloon_read(const struct balloon_options *options, struct wss_history *history,
		     const char *uuid, const struct wss_policy *policy,
		     struct balloon_record *ret_record, struct wss_error *err)
{
	const struct wss_advice_options *rule = &options->sizing.advice;
	const struct wss_advice_guest guest = { .uuid = uuid, .policy = policy, .need_only = true };
	struct balloon_record record = { .time_s = now_s() - age_of(0) };
	struct wss_advice advice;

	/* A maximum limits what is recommended; it is no leave to take what the guest needs. */
	if (wss_advice_read(history, &guest, wss_advice_since(rule, wss_clock_wall_seconds()), rule,
			    &advice, err) < 0)
		return -1;
	record.minimum_bytes = advice.rule.minimum_bytes;
	record.headroom_percent = advice.rule.headroom_percent;
	record.period_s = policy->period_ns.known ? policy->period_ns.value / WSS_NS_PER_S
						  : PERIOD_DEFAULT_S;
	if (advice.has_series) {
		record.confidence = advice.sizing.confidence;
		record.needed_bytes = advice.sizing.recommended_bytes.value;
		record.wss_bytes = advice.series.wss_bytes;
		record.rss_bytes = advice.series.rss_bytes;
		record.qemu_bytes = advice.series.qemu_bytes;
		record.time_s = now_s() - age_of(advice.series.time);
	}
	wss_advice_free(&advice);
	*ret_record = record;
	return 0;
}

uint64_t wss_balloon_due(const struct wss_guest *guest, uint64_t original_bytes, uint64_t now_bytes)
{
	uint64_t bytes = original_bytes > now_bytes ? original_bytes : now_bytes;

	return bytes < guest->config.maximum_bytes ? bytes : guest->config.maximum_bytes;
}

void wss_balloon_join(const struct balloon_record *record, struct balloon_look *look)
{
	struct wss_balloon_view *view = &look->view;
	int64_t now = now_s();

	look->limits.headroom_percent = record->headroom_percent;
	look->limits.period_s = record->period_s;
	look->limits.minimum_bytes = record->minimum_bytes;
	look->limits.needed_bytes = record->needed_bytes;
	look->facts.confidence = record->confidence;
	view->wss_bytes = record->wss_bytes;
	/* What is resident now, less what QEMU itself had of it in the newest window. */
	if (!view->rss_bytes.known)
		view->rss_bytes = record->rss_bytes;
	else if (record->qemu_bytes.known && record->qemu_bytes.value < view->rss_bytes.value)
		view->rss_bytes.value -= record->qemu_bytes.value;
	view->wss_age_s = now > record->time_s ? (uint64_t)(now - record->time_s) : 0;
	look->facts.current = record->wss_bytes.known && view->wss_age_s <= 2 * record->period_s;
}
