/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "track/sampling.h"

#include "base/clock.h"

/* Time that QEMU may take for hashing, besides the window. */
#define HASH_NS (10 * WSS_NS_PER_S)
#define POLL_NS (50 * WSS_NS_PER_MS)

/* Sleeps until a time without using up the deadline. */
static int sampling_sleep(struct wss_deadline *deadline, uint64_t when_ns,
			  struct wss_error *err)
{
	int r;

	wss_deadline_pause(deadline);
	r = wss_cancel_sleep_until_ns(wss_deadline_cancel(deadline), when_ns);
	wss_deadline_run(deadline, 0);
	return r < 0 ? wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted") : 0;
}

static int sampling_start(struct wss_guest *guest, struct wss_sampling *sampling,
			  struct wss_error *err)
{
	struct wss_dirty_log log;

	if (!guest->ops->page_sampling_start)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "pages of this guest cannot be sampled");
	if (guest->ops->dirty_log_query(guest, &log, err) < 0)
		return -1;
	if (log.measuring)
		return wss_error_set(
			err, WSS_ERR_BUSY,
			"another program's dirty-rate calculation is running for the guest");
	return guest->ops->page_sampling_start(guest, sampling->seconds, &sampling->per_gib,
					       err);
}

int wss_sampling_take(struct wss_guest *guest, struct wss_deadline *deadline, unsigned seconds,
		      struct wss_sampling *ret_sampling, struct wss_error *err)
{
	struct wss_sampling sampling = {.seconds = seconds};
	struct wss_dirty_log log = {.measuring = false};
	uint64_t due_ns, late_ns;

	if (sampling_start(guest, &sampling, err) < 0)
		return -1;
	/* Until then the result may be that of an earlier calculation. */
	due_ns = wss_clock_now_ns() + seconds * WSS_NS_PER_S;
	late_ns = due_ns + HASH_NS;
	do {
		if (sampling_sleep(deadline, due_ns, err) < 0 ||
		    guest->ops->dirty_log_query(guest, &log, err) < 0)
			return -1;
		due_ns = wss_clock_now_ns() + POLL_NS;
	} while (!log.mib_per_s.known && due_ns < late_ns);
	if (!log.mib_per_s.known)
		return wss_error_set(err, WSS_ERR_TIMEOUT,
				     "QEMU did not end its dirty-rate calculation");
	if (log.bitmap)
		return wss_error_set(
			err, WSS_ERR_BUSY,
			"another program's dirty-rate calculation replaced this one");
	sampling.mib_per_s = log.mib_per_s.value;
	*ret_sampling = sampling;
	return 0;
}
