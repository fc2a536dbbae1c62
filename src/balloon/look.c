/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/look.h"

#include <stdlib.h>

#include "balloon/journal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "host/pressure.h"
#include "sizing/config-advice.h"

/* Older statistics are ignored: a guest that reports at all does so every few seconds. */
#define STATISTICS_MAX_AGE_S 60

/* Returns why the host would not reclaim memory that the guest gives up; NULL if it would. */
static const char *hazard_of(const struct wss_domxml *config)
{
	if (wss_config_blocks(config, WSS_CONFIG_PINNED))
		return "pinned by a host device";
	if (wss_config_blocks(config, WSS_CONFIG_ENCRYPTED))
		return config->security_unseen ? "may be encrypted, so pinned"
					       : "encrypted, so pinned";
	if (wss_config_blocks(config, WSS_CONFIG_LOCKED))
		return "its memory is locked";
	if (wss_config_blocks(config, WSS_CONFIG_HUGEPAGES))
		return "on explicit huge pages";
	return NULL;
}

static void note_report(struct wss_reports *reports, uint64_t update_s, bool running)
{
	int64_t now = wss_clock_now_seconds(), since = now - reports->looked_s;
	int64_t age = wss_clock_age_seconds((int64_t)update_s);

	if (update_s != reports->update_s) {
		/* The report has come since the previous look. */
		if (reports->update_s && age > since)
			age = since;
		reports->said_s = reports->heard_s = now - age;
		reports->update_s = update_s;
	}
	if (!running)
		reports->heard_s = now;
	reports->looked_s = now;
}

int wss_look_statistics(struct wss_guest *guest, struct wss_reports *reports, struct wss_look *look,
			struct wss_error *err)
{
	struct wss_balloon_view *view = &look->view;
	struct wss_balloon_stats stats;

	look->facts.answers = look->facts.statistics = false;
	look->facts.unsized = true;
	look->view = (struct wss_balloon_view){.now_s = (uint64_t)wss_clock_now_seconds()};
	if (!guest->ops->balloon_stats)
		return 0;
	if (guest->ops->balloon_stats(guest, &stats, err) < 0)
		return -1;
	view->actual_bytes = stats.actual_bytes;
	look->facts.unsized = !stats.actual_bytes.known;
	view->rss_bytes = stats.rss_bytes;
	if (!stats.update_s.known || !stats.update_s.value ||
	    stats.update_s.value > (uint64_t)WSS_TIME_MAX_S)
		return 0;
	/* A driver reports once when it is loaded, even without polling. */
	look->facts.answers = true;
	if (!stats.usable_bytes.known)
		return 0;
	/* The guest's report counts as long as it is fresh. */
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
	view->managed_of_bytes = wss_balloon_managed_of(&guest->config, view->actual_bytes);
	view->swapped_bytes = stats.swapped_bytes;
	view->major_faults = stats.major_faults;
	return 0;
}

int wss_look_take(struct wss_guest *guest, const struct wss_policy *policy,
		  struct wss_reports *reports, struct wss_look *ret_look, struct wss_error *err)
{
	*ret_look = (struct wss_look){
		.facts = {.foreign = guest->foreign,
			  .running = guest->state == WSS_GUEST_RUNNING,
			  .job = guest->job[0] != '\0',
			  .has_device = guest->config.has_balloon,
			  .owner = guest->balloon_owner,
			  .fixed = !guest->ops->set_balloon,
			  .opted_out = policy->opt_out,
			  .hazard = hazard_of(&guest->config),
			  .autodeflate = guest->config.balloon_autodeflate,
			  .asked = guest->config.balloon_statistics},
	};
	return wss_look_statistics(guest, reports, ret_look, err);
}

int wss_look_journal(struct wss_history *history, const char *uuid, struct wss_look *look,
		     struct wss_error *err)
{
	struct wss_journal_open *open = NULL;
	size_t n = 0;

	if (history && wss_journal_unfinished(history, uuid, &open, &n, err) < 0)
		return -1;
	free(open);
	look->facts.unfinished = n > 0;
	return 0;
}

void wss_look_disks(struct wss_guest *guest, struct wss_reports *reports, int64_t period_s,
		    struct wss_look *look)
{
	struct wss_error err = WSS_ERROR_INIT;
	int64_t now = wss_clock_now_seconds();
	uint64_t bytes;

	/*
	 * This request would wait for another job; fresh statistics show that none is running.
	 */
	if (!guest->ops->disk_reads || !look->view.usable_bytes.known ||
	    (reports->asked_s && now - reports->asked_s < period_s))
		return;
	reports->asked_s = now;
	if (guest->ops->disk_reads(guest, &bytes, &err) == 0)
		look->view.read_bytes = wss_amount_of(bytes);
	else
		wss_debug("%s: %s", guest->config.name, err.text);
}

void wss_look_pressure(const struct wss_host *host, struct wss_look *look)
{
	double percent;

	if (wss_pressure_read(&host->root, NULL, WSS_PSI_SOME, &percent, NULL) == 0)
		look->view.pressure_permille = wss_amount_of(wss_u64_from_double(10 * percent));
}

int wss_look_check_memory(struct wss_guest *guest, const struct wss_host *host,
			  struct wss_look *look, struct wss_amount *ret_qemu_bytes,
			  struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;
	struct wss_smaps smaps;

	*ret_qemu_bytes = (struct wss_amount){0};
	if (wss_guest_read_memory(guest, host, &smaps, &why) == 0) {
		look->view.rss_bytes = wss_amount_of(smaps.guest.rss);
		*ret_qemu_bytes = wss_amount_of(smaps.qemu.rss);
	} else if (why.code == WSS_ERR_NO_MEMORY) {
		*err = why;
		return -1;
	} else {
		wss_debug("%s: cannot read its resident memory: %s", guest->config.name, why.text);
	}
	look->view.rss_checked = true;
	return 0;
}

void wss_look_join(const struct wss_need *need, struct wss_look *look)
{
	struct wss_balloon_view *view = &look->view;
	int64_t now = wss_clock_now_seconds();

	look->limits.headroom_percent = need->headroom_percent;
	look->limits.period_s = need->period_s;
	look->limits.minimum_bytes = need->minimum_bytes;
	look->limits.needed_bytes = need->needed_bytes;
	look->facts.confidence = need->confidence;
	look->windows = need->windows;
	look->reason = need->reason;
	view->wss_bytes = need->wss_bytes;
	/* Resident memory now, less QEMU's own share as of the newest window or check. */
	if (!view->rss_bytes.known)
		view->rss_bytes = need->rss_bytes;
	else if (need->qemu_bytes.known && need->qemu_bytes.value < view->rss_bytes.value)
		view->rss_bytes.value -= need->qemu_bytes.value;
	view->wss_age_s = now > need->time_s ? (uint64_t)(now - need->time_s) : 0;
	look->facts.current = need->wss_bytes.known && view->wss_age_s <= 2 * need->period_s;
}
