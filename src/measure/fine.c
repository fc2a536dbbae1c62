/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * A window on huge-page memory counts pages of 4 KiB only if the dirty log is on from before
 * the zap until the window is read (dirtylog.h explains why). QEMU starts the log some time
 * after the request, and ends it at a time that was fixed with the request; nothing ends it
 * earlier. The code therefore has to begin windows at the right moment, and to notice those
 * that missed it.
 *
 *	      log_start()	     wss_dirtylog_step()
 *	OFF ----------> STARTING --------------------> ON
 *	 ^		   |			       |
 *	 |		   | failed		       | too late for a whole window, or
 *	 +-----------------+			       | a window has begun outside a chain
 *	 +---------------------------------------------+
 *
 * wss_fine_choose() decides once, when the window is opened, whether windows have 4 KiB
 * granularity (fine->on) or native granularity, and keeps the reason if "auto" falls back to
 * native. Then for each window:
 *
 * 1. wss_fine_prepare() takes one step per call, and never waits.
 *    OFF: waits for the end of a calculation that an earlier window left running. Somebody else's
 *    calculation is WSS_ERR_BUSY, because two at a time corrupt QEMU's memory. Then checks again
 *    that the guest survives the log, because a device may have been plugged meanwhile. Zaps, then
 *    starts the log: in this order the log finds few mappings to split (docs/measurements.md).
 *    STARTING: waits until QEMU reports "measuring" and no large entry is mapped, or until the
 *    deadline. Both conditions are only hints; step 3 is the proof.
 *    ON: the window may begin if the log lasts until its end.
 * 2. The tracker zaps again and calls wss_fine_begun(). Outside a chain the log now belongs to this
 *    window, and the state becomes OFF: the next window starts its own. In a chain the state stays
 *    ON, and further windows share the log until it would end within one of them.
 * 3. wss_fine_seen() gets every reading of KVM's counters. KVM maps no large entry while the log is
 *    on, so a large entry shows that it was not: wss_fine_spoilt() then asks for another zap within
 *    the same log, at most AGAIN_MAX times. If that does not help, the sample is degraded.
 * 4. After the window wss_fine_settle() watches until the calculation ends and KVM maps large
 *    entries again.
 *
 * QEMU itself restores the guest, even if this process is killed: the calculation ends after
 * 60 s at most, and KVM then maps large entries again as the guest touches them. Only if the
 * guest is paused does QEMU defer the end until it runs.
 */
#include "measure/fine.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "measure/control.h"

/* A window with large entries is armed again after this time, at most AGAIN_MAX times. */
#define AGAIN_NS (100 * WSS_NS_PER_MS)
#define AGAIN_MAX 3
/* From one zap to the other, mostly: a step of the preparation. */
#define SEEN_ON_NS (20 * WSS_NS_PER_MS)
/* Time to wait for a guest to touch memory that was mapped large. */
#define BACK_NS (3 * WSS_NS_PER_S)

static bool any_large(const struct wss_kvm_counts *counts)
{
	return counts->pages_2m || counts->pages_1g;
}

/*
 * Whether the host has huge pages for the guest; without any, KVM maps 4 KiB anyway. True if
 * unknown.
 */
static bool has_huge_pages(const struct wss_guest *guest)
{
	struct wss_smaps smaps;

	return !guest->ram_known ||
	       wss_smaps_read(&guest->process, &guest->ram, &smaps, NULL) < 0 ||
	       smaps.guest.huge > 0;
}

/* Further conditions of "auto": 4 KiB granularity must be useful, and cheap enough. */
static int check_worth(const struct wss_guest *guest, const struct wss_track_options *options,
		       uint64_t stall_ns, struct wss_error *err)
{
	char predicted[16], limit[16];
	uint64_t rss;

	if (!has_huge_pages(guest))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "none of the guest's memory is on huge pages, so KVM "
				     "maps 4 KiB anyway");
	if (wss_resident_read(&guest->process, &rss, NULL, err) < 0)
		return -1;
	if (rss / 4096 > options->max_faults)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"4 KiB granularity could cost up to %llu faults, over the limit of %llu",
			(unsigned long long)(rss / 4096), (unsigned long long)options->max_faults);
	if (stall_ns <= options->max_stall_ns)
		return 0;
	wss_duration_format(stall_ns, predicted, sizeof(predicted));
	wss_duration_format(options->max_stall_ns, limit, sizeof(limit));
	return wss_error_set(
		err, WSS_ERR_UNSUPPORTED,
		"4 KiB granularity: starting the dirty log would stall the guest for about %s, over the limit of %s for one stall",
		predicted, limit);
}

/* Returns the rest of a chain's time. */
static uint64_t chain_left_ns(const struct wss_fine *fine)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (!fine->chain_end_ns)
		return fine->chain_ns;
	return fine->chain_end_ns > now_ns ? fine->chain_end_ns - now_ns : 0;
}

/*
 * Returns the time for which to request the log: that of one window, or in a chain as long as
 * a log can last, but no longer than the chain, because nothing ends the log early.
 */
static uint64_t log_window_ns(const struct wss_fine *fine, uint64_t window_ns)
{
	uint64_t chain_ns = wss_u64_min(WSS_DIRTYLOG_MAX_WINDOW_NS, chain_left_ns(fine));

	return chain_ns > window_ns ? chain_ns : window_ns;
}

int wss_fine_choose(struct wss_fine *fine, const struct wss_guest *guest,
		    const struct wss_track_options *options, uint64_t stall_ns,
		    struct wss_error *err)
{
	int r;

	fine->chain_ns = options->chain_ns;
	fine->may_be_native = options->granularity == WSS_GRANULARITY_AUTO;
	if (options->granularity == WSS_GRANULARITY_NATIVE)
		return 0;
	r = wss_dirtylog_check(guest, options->window_ns, &fine->why_native);
	if (r == 0 && options->granularity == WSS_GRANULARITY_AUTO)
		r = check_worth(guest, options, stall_ns, &fine->why_native);
	fine->on = r == 0;
	if (fine->on || options->granularity == WSS_GRANULARITY_AUTO)
		return 0;
	/* Whoever wants pages gets none of a window that shows large entries all the same. */
	fine->needs_no_log = options->recorder == WSS_RECORDER_PAGES && !has_huge_pages(guest);
	if (!fine->needs_no_log)
		*err = fine->why_native;
	wss_error_clear(&fine->why_native);
	return fine->needs_no_log ? 0 : -1;
}

/*
 * Checks again just before starting the log: a device that does not survive the log may have
 * been plugged since the window was chosen, or a job may have begun during the wait for an
 * earlier log. Returns 1: the log may be started; 0: windows are native from now on; -1 with
 * err set.
 */
static int check_again(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		       struct wss_error *err)
{
	struct wss_error why = WSS_ERROR_INIT;

	if (wss_guest_check_ready(guest, err) < 0)
		return -1;
	if (wss_dirtylog_check(guest, window_ns, &why) == 0)
		return 1;
	if (!fine->may_be_native)
		return wss_error_set(err, why.code, "%s", why.text);
	fine->why_native = why;
	fine->on = false;
	return 0;
}

static int log_start(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		     const struct wss_kvm_counts *counts, struct wss_error *err)
{
	struct wss_span zap = {0, 0};

	fine->was_large = any_large(counts);
	if (!wss_fault("skip-zap") && !wss_fault("log-first") &&
	    wss_control_clear(&guest->process, '4', &zap, err) < 0)
		return -1;
	wss_log_guest(WSS_LOG_DEBUG, guest->config.name, guest->config.uuid,
		      "%llu entries, zapped before the dirty log in %.3f ms",
		      (unsigned long long)wss_kvm_counts_entries(counts),
		      (double)(zap.end_ns - zap.start_ns) / 1e6);
	fine->zapped_ns = zap.end_ns - zap.start_ns;
	fine->asked_ns = wss_clock_now_ns();
	if (wss_dirtylog_start(&fine->log, guest, log_window_ns(fine, window_ns), err) < 0)
		return -1;
	if (fine->chain_ns && !fine->chain_end_ns)
		fine->chain_end_ns = fine->chain_ns > UINT64_MAX - fine->asked_ns
					     ? UINT64_MAX
					     : fine->asked_ns + fine->chain_ns;
	return 0;
}

/*
 * Whether the log ends before the window would, including one that an abandoned window requested. Gives up after some
 * attempts if QEMU always starts the log too late.
 */
static bool log_is_late(const struct wss_fine *fine, uint64_t window_ns)
{
	return wss_clock_now_ns() + window_ns > fine->log.ends_ns &&
	       (fine->log.state != WSS_DIRTYLOG_STARTING || fine->late < AGAIN_MAX);
}

static void drop_if_late(struct wss_fine *fine, uint64_t window_ns)
{
	if (!log_is_late(fine, window_ns))
		return;
	fine->late += fine->log.state == WSS_DIRTYLOG_STARTING;
	wss_dirtylog_done(&fine->log);
}

bool wss_fine_prepare_stalls(const struct wss_fine *fine, uint64_t window_ns)
{
	return fine->on && (fine->log.state == WSS_DIRTYLOG_OFF || log_is_late(fine, window_ns));
}

int wss_fine_prepare(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		     const struct wss_kvm_counts *counts, struct wss_error *err)
{
	int r;

	/* This is a new window, not another arming of the same one. */
	fine->again = 0;
	fine->coarse_seen = false;
	drop_if_late(fine, window_ns);
	if (fine->log.state == WSS_DIRTYLOG_OFF) {
		r = wss_dirtylog_free(&fine->log, guest, err);
		if (r <= 0)
			return r;
		r = check_again(fine, guest, window_ns, err);
		if (r <= 0)
			return r < 0 ? -1 : 1;
		return log_start(fine, guest, window_ns, counts, err);
	}
	r = wss_dirtylog_step(&fine->log, guest, counts, err);
	if (r > 0)
		wss_log_guest(WSS_LOG_DEBUG, guest->config.name, guest->config.uuid,
			      "dirty log on after %.3f ms, %llu entries by then",
			      (double)(wss_clock_now_ns() - fine->asked_ns) / 1e6,
			      (unsigned long long)wss_kvm_counts_entries(counts));
	return r;
}

uint64_t wss_fine_entries(const struct wss_guest *guest, uint64_t rss_bytes, double fault_ns)
{
	double entries = (double)SEEN_ON_NS / fault_ns * guest->config.vcpus;

	return wss_u64_min(rss_bytes / 4096, wss_u64_from_double(entries));
}

void wss_fine_begun(struct wss_fine *fine)
{
	fine->begun_ns = wss_clock_now_ns();
	fine->again += fine->on && fine->coarse_seen;
	fine->coarse_seen = false;
	fine->late = 0;
	fine->ended.ns = 0;
	/*
	 * The window that begins now uses this log; outside a chain the next window needs its
	 * own.
	 */
	if (!fine->chain_ns)
		wss_dirtylog_done(&fine->log);
}

void wss_fine_seen(struct wss_fine *fine, const struct wss_kvm_counts *counts)
{
	fine->coarse_seen |= any_large(counts);
}

bool wss_fine_spoilt(const struct wss_fine *fine, uint64_t window_ns)
{
	uint64_t now_ns = wss_clock_now_ns();

	return fine->on && fine->coarse_seen && fine->again < AGAIN_MAX &&
	       now_ns >= fine->begun_ns + AGAIN_NS && now_ns + window_ns <= fine->log.ends_ns;
}

/*
 * Watches whether KVM, too, has ended its log: by its memory slots, or by large entries. Returns true once that is
 * decided.
 */
static bool see_log_off(struct wss_fine *fine, const struct wss_kvm_counts *counts,
			enum wss_tristate logs_writes, struct wss_sample *sample)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (logs_writes == WSS_NO ||
	    (logs_writes == WSS_UNKNOWN && (!fine->was_large || !counts || any_large(counts))))
		return true;
	if (!fine->ended.ns) {
		fine->ended.ns = now_ns;
		fine->ended.faults = counts ? counts->pf_fixed : 0;
	}
	if (now_ns < fine->ended.ns + BACK_NS)
		return false;
	if (logs_writes == WSS_YES)
		wss_sample_degrade(
			sample,
			"KVM still keeps a dirty log of this guest although QEMU's has ended");
	else if (counts->has_pf_fixed && counts->pf_fixed != fine->ended.faults)
		wss_sample_degrade(sample,
				   "KVM maps this guest by 4 KiB although the dirty log has ended");
	else
		wss_sample_note(sample, "it is not observable whether KVM maps large pages "
					"again: the guest has touched nothing new (QEMU keeps "
					"the dirty log on while a guest is paused)");
	return true;
}

bool wss_fine_settle(struct wss_fine *fine, struct wss_guest *guest,
		     const struct wss_kvm_counts *counts, enum wss_tristate logs_writes,
		     struct wss_sample *sample)
{
	if (!fine->on)
		return true;
	switch (wss_dirtylog_ended(&fine->log, guest)) {
	case WSS_DIRTYLOG_LASTS:
		return false;
	case WSS_DIRTYLOG_ENDED:
		return see_log_off(fine, counts, logs_writes, sample);
	case WSS_DIRTYLOG_OVERDUE:
		wss_sample_degrade(sample, "QEMU has not ended its dirty log in time; it will "
					   "when the guest continues");
		return true;
	default:
		wss_sample_note(sample, "cannot find out whether the dirty log has ended");
		return true;
	}
}

void wss_fine_explain(const struct wss_fine *fine, struct wss_sample *sample)
{
	/* The longer of the two stalls counts. */
	if (fine->on && sample->cost.arm_ns.known && fine->zapped_ns > sample->cost.arm_ns.value)
		sample->cost.arm_ns.value = fine->zapped_ns;
	if (fine->on && fine->coarse_seen)
		wss_sample_degrade(sample, "the dirty log was not on throughout the "
					   "window: this is native granularity");
	if (fine->needs_no_log && fine->coarse_seen)
		wss_sample_degrade(
			sample,
			"the guest has got huge pages since the first window: this is native granularity");
	if (fine->again)
		wss_sample_note(sample,
				"started %u times, because KVM mapped large entries although "
				"the dirty log was requested",
				fine->again + 1);
	if (fine->why_native.code)
		wss_sample_note(sample, "native granularity because: %s", fine->why_native.text);
}
