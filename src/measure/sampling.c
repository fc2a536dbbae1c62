/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/sampling.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "measure/dirtylog.h"

/* Time that QEMU may take for hashing, besides the window. */
#define HASH_NS (10 * WSS_NS_PER_S)
#define POLL_NS (50 * WSS_NS_PER_MS)
/* QEMU's longest calculation, and some seconds for it to end. One that record or a window has left runs to its end. */
#define BUSY_NS ((WSS_SAMPLING_MAX_S + 5) * WSS_NS_PER_S)

/* Sleeps until a time without using up the deadline. */
static int sampling_sleep(struct wss_deadline *deadline, uint64_t when_ns, struct wss_error *err)
{
	int r;

	wss_deadline_pause(deadline);
	r = wss_cancel_sleep_until_ns(wss_deadline_cancel(deadline), when_ns);
	wss_deadline_run(deadline, 0);
	return r < 0 ? wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted") : 0;
}

/* Sleeps likewise, and looks at the guest as often as in a window. */
static int sampling_watch(struct wss_guest *guest, struct wss_deadline *deadline, uint64_t when_ns,
			  struct wss_window_facts *facts, uint64_t window_ns, struct wss_error *err)
{
	uint64_t now_ns;

	do {
		uint64_t next_ns = wss_standstill_next_ns(&facts->standstill, window_ns);

		if (sampling_sleep(deadline, wss_u64_min(next_ns, when_ns), err) < 0)
			return -1;
		now_ns = wss_clock_now_ns();
		wss_standstill_look(&facts->standstill, now_ns);
		if (guest->ops->look)
			guest->ops->look(guest);
	} while (now_ns < when_ns);
	wss_standstill_look_at_all(&facts->standstill, now_ns);
	return 0;
}

static int sampling_start(struct wss_guest *guest, struct wss_deadline *deadline,
			  struct wss_sampling *sampling, struct wss_error *err)
{
	uint64_t late_ns = wss_clock_now_ns() + BUSY_NS;
	struct wss_dirty_log log;

	if (!guest->ops->page_sampling_start)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "pages of this guest cannot be sampled");
	if (guest->ops->dirty_log_query(guest, &log, err) < 0)
		return -1;
	if (log.measuring)
		wss_debug("%s: waiting until a dirty-rate calculation has ended",
			  guest->config.name);
	while (log.measuring && wss_clock_now_ns() < late_ns)
		if (sampling_sleep(deadline, wss_clock_now_ns() + POLL_NS, err) < 0 ||
		    guest->ops->dirty_log_query(guest, &log, err) < 0)
			return -1;
	if (log.measuring)
		return wss_dirtylog_busy(&log, err);
	return guest->ops->page_sampling_start(guest, sampling->seconds, &sampling->per_gib, err);
}

static struct wss_disturbance sampling_disturbance(struct wss_guest *guest)
{
	return guest->ops->disturbed ? guest->ops->disturbed(guest)
				     : (struct wss_disturbance){.stopped = false};
}

/* What has happened since before. */
static struct wss_disturbance sampling_disturbed(struct wss_guest *guest,
						 const struct wss_disturbance *before)
{
	struct wss_disturbance now = sampling_disturbance(guest);
	uint64_t paused_ns = wss_u64_sub(now.paused_ns, before->paused_ns);

	return (struct wss_disturbance){.stopped = now.stopped && (!before->stopped || paused_ns),
					.paused_ns = paused_ns};
}

int wss_sampling_take(const struct wss_host *host, struct wss_guest *guest,
		      struct wss_deadline *deadline, unsigned seconds,
		      struct wss_sampling *ret_sampling, struct wss_error *err)
{
	struct wss_sampling sampling = {.seconds = seconds};
	struct wss_dirty_log log = {.measuring = false};
	struct wss_window_facts facts = {
		.host = host, .guest = guest, .suspended_ns = wss_clock_suspended_ns()};
	struct wss_disturbance before;
	uint64_t due_ns, late_ns, end_ns;

	if (sampling_start(guest, deadline, &sampling, err) < 0)
		return -1;
	before = sampling_disturbance(guest);
	facts.start_ns = wss_clock_now_ns();
	wss_standstill_begin(&facts.standstill, &host->root, &guest->process, guest->kvm,
			     facts.start_ns);
	/* Until then the result may be that of an earlier calculation. */
	due_ns = facts.start_ns + seconds * WSS_NS_PER_S;
	late_ns = due_ns + HASH_NS;
	if (sampling_watch(guest, deadline, due_ns, &facts, seconds * WSS_NS_PER_S, err) < 0)
		return -1;
	end_ns = wss_clock_now_ns();
	do {
		if (sampling_sleep(deadline, due_ns, err) < 0 ||
		    guest->ops->dirty_log_query(guest, &log, err) < 0)
			return -1;
		due_ns = wss_clock_now_ns() + POLL_NS;
	} while (!log.mib_per_s.known && due_ns < late_ns);
	/* QMP's events come with its answers. */
	facts.disturbance = sampling_disturbed(guest, &before);
	wss_window_stood_still(&facts, end_ns, sampling.stood_still);
	if (!log.mib_per_s.known)
		return wss_error_set(err, WSS_ERR_TIMEOUT,
				     "QEMU did not end its dirty-rate calculation");
	if (log.bitmap)
		return wss_error_set(err, WSS_ERR_BUSY,
				     "another program's dirty-rate calculation replaced this one");
	sampling.mib_per_s = log.mib_per_s.value;
	*ret_sampling = sampling;
	return 0;
}
