/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon-tender-private.h"

#include "base/clock.h"
#include "base/log.h"

int wss_tender_read_record(struct tender *tender, const struct wss_policy *policy,
			   struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct balloon_record record;
	int r;

	tending_lock(tending);
	r = wss_balloon_read(&tending->options, tending->history, tender->uuid, policy, &record,
			     err);
	if (r == 0) {
		tender->record = record;
		tender->policy = *policy;
	}
	tending_unlock(tending);
	return r;
}

static void keep_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
			void *opaque)
{
	struct tender *tender = opaque;
	struct tending *tending = tender->tending;
	struct wss_error err = WSS_ERROR_INIT;
	int r = 0;

	(void)last;
	if (!wss_sample_measured(sample)) {
		if (!wss_stop_requested())
			wss_warn("%s: %s", sample->domain, sample->error.text);
		return;
	}
	tending_lock(tending);
	r = wss_history_add(tending->history, sample, &err);
	tending_unlock(tending);
	if (r < 0 || wss_tender_read_record(tender, &entry->policy, &err) < 0)
		wss_warn("%s: %s", entry->name, err.text);
	/* The newest window is this one, whichever series the history has most of. */
	tending_lock(tending);
	tender->record.wss_bytes = sample->wss_bytes;
	tender->record.qemu_bytes = sample->memory.qemu_bytes;
	tender->record.time = sample->wall;
	tending_unlock(tending);
}

/* With a guest of its own: the other thread goes on with the one that it has. */
static void measure(struct tender *tender)
{
	struct tending *tending = tender->tending;
	const struct balloon_options *options = &tending->options;
	struct wss_round_guest entry = { .name = tender->uuid };
	struct wss_round_options round = {
		.window = { .window_ns = options->window_ns,
			    .max_stall_ns = WSS_MAX_STALL_DEFAULT_NS,
			    .max_faults = UINT64_MAX },
		.count = 1,
		.interval_ns = options->window_ns,
	};

	wss_guests_open_one(&tending->guests, &entry);
	if (entry.guest) {
		wss_round_run(&tending->guests.host, &entry, 1, &round, keep_sample, tender, NULL);
		wss_guest_free(entry.guest);
	} else {
		wss_warn("%s: %s", tender->name, entry.error.text);
		tending_lock(tending);
		tender->opted_out = entry.policy.opt_out;
		tending_unlock(tending);
	}
}

void *wss_tender_measure(void *opaque)
{
	struct tender *tender = opaque;
	uint64_t period_ns = tender->tending->options.period_ns;
	uint64_t due_ns = wss_clock_now_ns();

	/* Not all guests at once. */
	due_ns += period_ns / (tender->number + 1) * tender->number;
	while (!tender->over && !tending_is_ending(tender->tending)) {
		if (wss_clock_now_ns() < due_ns) {
			wss_stop_wait_ns(LOOK_NS / 2);
			continue;
		}
		due_ns = wss_clock_now_ns() + period_ns;
		measure(tender);
	}
	wss_tender_thread_ended(tender->tending);
	return NULL;
}
