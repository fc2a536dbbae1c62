/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Theory of operation
 *
 * A window counts pages of 4 KiB on huge-page memory only while the dirty log is on, from before
 * its zap until it is read (dirtylog.h has the reason). QEMU starts the log on request, some time
 * later, and ends it at a time that was fixed with the request; nothing can end it earlier. So all
 * there is to do is to begin windows at the right moment, and to notice those that missed it.
 *
 *	      start()		     wss_dirtylog_step()
 *	OFF ----------> STARTING --------------------> ON
 *	 ^		   |			       |
 *	 |		   | failed		       | too late for a whole window, or
 *	 +-----------------+			       | a window has begun and no chain is wanted
 *	 +---------------------------------------------+
 *
 * wss_fine_choose() decides once, when the window is opened, whether windows are by 4 KiB (fine->on)
 * or native, and keeps the reason where "auto" falls back. For each window then:
 *
 * 1. wss_fine_prepare() takes one step a call, and never waits.
 *    OFF: waits for the end of a calculation that an earlier window left running; somebody else's
 *    is WSS_ERR_BUSY, because two at a time corrupt QEMU's memory. Checks that the guest still
 *    bears the log: a device may have been plugged meanwhile. Zaps, then starts the log; in this
 *    order the log finds few mappings to split (docs/4k-cost.md).
 *    STARTING: waits until QEMU says "measuring" and no large entry is mapped, or the deadline.
 *    Both are hints only; step 3 is the proof.
 *    ON: the window may begin, if the log outlasts it.
 * 2. The tracker zaps again and calls wss_fine_begun(). Without a chain the log now belongs to this
 *    window, and the state is OFF: the next window starts its own. In a chain the state stays ON
 *    and further windows share the log until it would end within one of them.
 * 3. wss_fine_seen() gets every reading of KVM's counters. KVM maps no large entry while the log is
 *    on, so one that is seen shows that the log was not on: wss_fine_spoilt() then asks for another
 *    zap within the same log, at most AGAIN_MAX times, and the sample is degraded if that was in vain.
 * 4. wss_fine_settle() watches, after the window, that the calculation ends and that KVM maps large
 *    entries again.
 *
 * The guest is restored by QEMU itself, also when this process is killed: the calculation ends after
 * 60 s at most, and KVM then maps large entries again as the guest touches them. Only for a paused
 * guest does QEMU put the end off until it runs.
 */
#include "track/fine.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/number.h"
#include "base/units.h"
#include "track/control.h"

/* Large entries in a window: so long after arming it is armed again, so often at most. */
#define AGAIN_NS (100 * WSS_NS_PER_MS)
#define AGAIN_MAX 3
/* A guest that has not touched what was mapped large for so long is not waited for. */
#define BACK_NS (3 * WSS_NS_PER_S)

static bool any_large(const struct wss_kvm_counts *counts)
{
	return counts->pages_2m || counts->pages_1g;
}

/* Where the host has none, KVM maps 4 KiB anyway. Not known: as if there were some. */
static bool has_huge_pages(const struct wss_guest *guest)
{
	struct wss_smaps smaps;

	return !guest->ram_known ||
	       wss_smaps_read(&guest->process, &guest->ram, &smaps, NULL) < 0 ||
	       smaps.guest.huge > 0;
}

/* What auto asks besides: is it of any use, and cheap enough? */
static int check_worth(const struct wss_guest *guest, const struct wss_track_options *options,
		       uint64_t stall_ns, struct wss_error *err)
{
	char predicted[16], limit[16];
	uint64_t rss;

	if (!has_huge_pages(guest))
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "no memory of the guest lies on huge pages, so KVM maps 4 KiB anyway");
	if (wss_resident_read(&guest->process, &rss, NULL, err) < 0)
		return -1;
	if (rss / 4096 > options->max_faults)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "4 KiB granularity could cost up to %llu faults, over the limit of %llu",
				     (unsigned long long)(rss / 4096),
				     (unsigned long long)options->max_faults);
	if (stall_ns <= options->max_stall_ns)
		return 0;
	wss_duration_format(stall_ns, predicted, sizeof(predicted));
	wss_duration_format(options->max_stall_ns, limit, sizeof(limit));
	return wss_error_set(err, WSS_ERR_UNSUPPORTED,
			     "4 KiB granularity: starting the dirty log would stall the guest for about %s, over the limit of %s for one stall",
			     predicted, limit);
}

/* How much there is still to be of a chain. */
static uint64_t chain_left_ns(const struct wss_fine *fine)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (!fine->chain_end_ns)
		return fine->chain_ns;
	return fine->chain_end_ns > now_ns ? fine->chain_end_ns - now_ns : 0;
}

/*
 * The log is started for one window, or in a chain for as long as it can last; but not for
 * longer than there are windows, as nothing ends it before its time.
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
	*err = fine->why_native;
	return -1;
}

/*
 * Right before the log is started: since the window was chosen a device may have been plugged
 * that does not bear it, or a job have begun while an earlier log was waited for. 1: it may be
 * started; 0: native from now on; -1.
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

static int start(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		 const struct wss_kvm_counts *counts, struct wss_error *err)
{
	struct wss_span zap = { 0, 0 };

	fine->was_large = any_large(counts);
	if (!wss_fault("skip-zap") && !wss_fault("log-first") &&
	    wss_control_clear(&guest->process, '4', &zap, err) < 0)
		return -1;
	wss_debug("%s: %llu entries, zapped before the dirty log in %.3f ms", guest->config.name,
		  (unsigned long long)wss_kvm_counts_entries(counts),
		  (double)(zap.end_ns - zap.start_ns) / 1e6);
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
 * A log that does not last for the window any more is done with; also one that was asked for
 * by a window that was given up since. But a QEMU that always takes so long is not asked for ever.
 */
static void drop_if_late(struct wss_fine *fine, uint64_t window_ns)
{
	if (wss_clock_now_ns() + window_ns <= fine->log.ends_ns)
		return;
	if (fine->log.state == WSS_DIRTYLOG_STARTING && fine->late++ >= AGAIN_MAX)
		return;
	wss_dirtylog_done(&fine->log);
}

int wss_fine_prepare(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		     const struct wss_kvm_counts *counts, struct wss_error *err)
{
	int r;

	/* Not begun again, but another window. */
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
		return start(fine, guest, window_ns, counts, err);
	}
	r = wss_dirtylog_step(&fine->log, guest, counts, err);
	if (r > 0)
		wss_debug("%s: dirty log on after %.3f ms, %llu entries by then",
			  guest->config.name,
			  (double)(wss_clock_now_ns() - fine->asked_ns) / 1e6,
			  (unsigned long long)wss_kvm_counts_entries(counts));
	return r;
}

void wss_fine_begun(struct wss_fine *fine)
{
	fine->begun_ns = wss_clock_now_ns();
	fine->again += fine->on && fine->coarse_seen;
	fine->coarse_seen = false;
	fine->late = 0;
	fine->ended.ns = 0;
	/* The window that begins now uses the log that is on; but for a chain the next needs its own. */
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

/* The log is off: are the large entries back? True once that is known. */
static bool see_large_back(struct wss_fine *fine, const struct wss_kvm_counts *counts,
			   struct wss_sample *sample)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (!fine->was_large || !counts || any_large(counts))
		return true;
	if (!fine->ended.ns) {
		fine->ended.ns = now_ns;
		fine->ended.faults = counts->pf_fixed;
	}
	if (now_ns < fine->ended.ns + BACK_NS)
		return false;
	if (counts->has_pf_fixed && counts->pf_fixed != fine->ended.faults)
		wss_sample_degrade(sample,
				   "KVM maps this guest by 4 KiB although the dirty log has ended");
	else
		wss_sample_note(sample,
				"whether KVM maps large pages again is not observable: the guest has touched nothing new (of a paused guest QEMU keeps the dirty log on)");
	return true;
}

bool wss_fine_settle(struct wss_fine *fine, struct wss_guest *guest,
		     const struct wss_kvm_counts *counts, struct wss_sample *sample)
{
	if (!fine->on)
		return true;
	switch (wss_dirtylog_ended(&fine->log, guest)) {
	case WSS_DIRTYLOG_LASTS:
		return false;
	case WSS_DIRTYLOG_ENDED:
		return see_large_back(fine, counts, sample);
	case WSS_DIRTYLOG_OVERDUE:
		wss_sample_degrade(sample,
				   "QEMU has not ended its dirty log in time; it does so when the guest runs on");
		return true;
	default:
		wss_sample_note(sample, "whether the dirty log has ended could not be asked");
		return true;
	}
}

void wss_fine_explain(const struct wss_fine *fine, struct wss_sample *sample)
{
	if (fine->on && fine->coarse_seen)
		wss_sample_degrade(sample,
				   "the dirty log was not on throughout: this is native granularity");
	if (fine->again)
		wss_sample_note(sample,
				"armed %u times: KVM mapped large entries though the dirty log was asked for",
				fine->again + 1);
	if (fine->why_native.code)
		wss_sample_note(sample, "native granularity because: %s", fine->why_native.text);
}
