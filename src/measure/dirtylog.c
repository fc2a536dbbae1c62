/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/dirtylog.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fault.h"

/* Time allowed from requesting the log to arming the window; the rest of it prolongs the log. */
#define SETUP_NS (2 * WSS_NS_PER_S)
/* QEMU ends a calculation a little late, because it reads the log first. */
#define END_GRACE_NS (5 * WSS_NS_PER_S)
/*
 * How long to wait for a calculation that this window did not start. What other windows of virt-wss leave behind, those of a
 * recording, too, ends within that time unless they were interrupted.
 */
#define BUSY_S 10

int wss_dirtylog_check(const struct wss_guest *guest, uint64_t window_ns, struct wss_error *err)
{
	if (!guest->kvm)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "4 KiB granularity: the dirty log crashes QEMU if the "
				     "guest does not use KVM");
	if (guest->config.dirty_log_hazard[0])
		return wss_error_set(err,
				     guest->config.dirty_log_unasked ? WSS_ERR_TIMEOUT
								     : WSS_ERR_UNSUPPORTED,
				     "4 KiB granularity: the dirty log is not safe with %s",
				     guest->config.dirty_log_hazard);
	if (window_ns > WSS_DIRTYLOG_MAX_WINDOW_NS)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "4 KiB granularity: the window must be 50 s or shorter, "
				     "as long as the dirty log lasts");
	return 0;
}

int wss_dirtylog_busy(const struct wss_dirty_log *now, struct wss_error *err)
{
	char left[40] = "";

	if (now->left_s)
		snprintf(left, sizeof(left), ", for %" PRIu64 " s more", now->left_s);
	/* QEMU does not say whose it is. */
	return wss_error_set(err, WSS_ERR_BUSY,
			     "a dirty-rate calculation is running for the guest%s (another "
			     "program's, or of a recording that was interrupted)",
			     left);
}

int wss_dirtylog_free(struct wss_dirtylog *log, struct wss_guest *guest, struct wss_error *err)
{
	uint64_t now_ns = wss_clock_now_ns();
	struct wss_dirty_log now;

	if (guest->ops->dirty_log_query(guest, &now, err) < 0)
		return -1;
	if (!now.measuring) {
		log->busy_since_ns = 0;
		return 1;
	}
	/* A calculation that an earlier window of ours started is about to end. */
	if (log->ends_ns && now_ns < log->ends_ns + END_GRACE_NS)
		return 0;
	if (!log->busy_since_ns)
		log->busy_since_ns = now_ns;
	if (now.left_s <= BUSY_S && now_ns - log->busy_since_ns < BUSY_S * WSS_NS_PER_S)
		return 0;
	return wss_dirtylog_busy(&now, err);
}

int wss_dirtylog_start(struct wss_dirtylog *log, struct wss_guest *guest, uint64_t window_ns,
		       struct wss_error *err)
{
	uint64_t now_ns = wss_clock_now_ns(), seconds;

	seconds = (window_ns + SETUP_NS + WSS_NS_PER_S - 1) / WSS_NS_PER_S;
	if (guest->ops->dirty_log_start(guest, wss_fault("short-log") ? 1 : (unsigned)seconds,
					err) < 0)
		return -1;
	log->state = WSS_DIRTYLOG_STARTING;
	log->deadline_ns = now_ns + SETUP_NS / 2;
	log->ends_ns = now_ns + seconds * WSS_NS_PER_S;
	return 0;
}

static int dirtylog_take_step(struct wss_dirtylog *log, struct wss_guest *guest,
			      const struct wss_kvm_counts *counts, struct wss_error *err)
{
	struct wss_dirty_log now;

	if (guest->ops->dirty_log_query(guest, &now, err) < 0)
		return -1;
	if (now.measuring && now.bitmap && !counts->pages_2m && !counts->pages_1g) {
		log->state = WSS_DIRTYLOG_ON;
		return 1;
	}
	if (wss_clock_now_ns() < log->deadline_ns)
		return 0;
	if (!now.measuring || !now.bitmap)
		return wss_error_set(err, WSS_ERR_FAILED, "QEMU did not start the dirty log");
	/* Entries that are only write-protected will go with the zap. */
	log->state = WSS_DIRTYLOG_ON;
	return 1;
}

int wss_dirtylog_step(struct wss_dirtylog *log, struct wss_guest *guest,
		      const struct wss_kvm_counts *counts, struct wss_error *err)
{
	int r;

	if (log->state == WSS_DIRTYLOG_ON)
		return 1;
	r = dirtylog_take_step(log, guest, counts, err);
	/* The next window starts from scratch, because this calculation may end unobserved. */
	if (r < 0)
		wss_dirtylog_done(log);
	return r;
}

void wss_dirtylog_done(struct wss_dirtylog *log)
{
	log->state = WSS_DIRTYLOG_OFF;
}

enum wss_dirtylog_end wss_dirtylog_ended(const struct wss_dirtylog *log, struct wss_guest *guest)
{
	struct wss_dirty_log now;

	if (wss_clock_now_ns() < log->ends_ns)
		return WSS_DIRTYLOG_LASTS;
	if (guest->ops->dirty_log_query(guest, &now, NULL) < 0)
		return WSS_DIRTYLOG_UNKNOWN;
	if (!now.measuring)
		return WSS_DIRTYLOG_ENDED;
	return wss_clock_now_ns() < log->ends_ns + END_GRACE_NS ? WSS_DIRTYLOG_LASTS
								: WSS_DIRTYLOG_OVERDUE;
}
