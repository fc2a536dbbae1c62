/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/mover.h"

#include "balloon/edge.h"
#include "base/number.h"
#include "base/units.h"

/* Sizes are set in KiB and reached in pages: a guest this close to a size has reached it. */
#define TOLERANCE WSS_MIB
/* A size that has not changed for this long has settled. QEMU sends an event a second while it changes. */
#define SETTLE_S 5
/* Longest time to wait for a report of a guest that may have taken memory back by itself. */
#define REPORT_S 30
/* A guest that stops on its way for this long was stopped, if it reports memory to give up. */
#define STOPPED_S 25

void wss_mover_init(struct wss_mover *mover, uint64_t from_bytes, uint64_t to_bytes)
{
	*mover = (struct wss_mover){.target_bytes = to_bytes,
				    .low_bytes = wss_u64_min(from_bytes, to_bytes),
				    .high_bytes = wss_u64_max(from_bytes, to_bytes)};
}

void wss_mover_set(struct wss_mover *mover, uint64_t actual_bytes, uint64_t to_bytes)
{
	uint64_t low = wss_u64_min(mover->low_bytes, actual_bytes);
	uint64_t high = wss_u64_max(mover->high_bytes, actual_bytes);

	/* It may still be on the way to the previous size. */
	wss_mover_init(mover, low, to_bytes);
	mover->low_bytes = wss_u64_min(low, to_bytes);
	mover->high_bytes = wss_u64_max(high, to_bytes);
}

void wss_mover_shift(struct wss_mover *mover, int64_t bytes)
{
	mover->target_bytes += (uint64_t)bytes;
	mover->low_bytes += (uint64_t)bytes;
	mover->high_bytes += (uint64_t)bytes;
}

bool wss_mover_is_there(const struct wss_mover *mover)
{
	return mover->low_bytes == mover->high_bytes;
}

static void note_change(struct wss_mover *mover, uint64_t actual, uint64_t now_s)
{
	if (actual != mover->actual_bytes)
		mover->changed_s = now_s;
	mover->actual_bytes = actual;
}

/* Leaves of the explained sizes only those that are still ahead. */
static void follow(struct wss_mover *mover, uint64_t actual)
{
	mover->below = false;
	if (actual > mover->target_bytes + TOLERANCE)
		mover->high_bytes = wss_u64_min(mover->high_bytes, actual);
	else if (actual + TOLERANCE < mover->target_bytes)
		mover->low_bytes = wss_u64_max(mover->low_bytes, actual);
	else
		mover->low_bytes = mover->high_bytes = mover->target_bytes;
}

static uint64_t said_s_of(const struct wss_balloon_view *view)
{
	return view->now_s - wss_u64_min(view->statistics_age_s, view->now_s);
}

/* Notes what the guest could still give up at the size that was set, if it has reported since it reached that. */
static void note_usable(struct wss_mover *mover, const struct wss_balloon_view *view)
{
	if (wss_mover_is_there(mover) && view->usable_bytes.known &&
	    said_s_of(view) > mover->changed_s)
		mover->had_plenty =
			view->usable_bytes.value > 2 * wss_edge_guard(mover->actual_bytes);
}

static void follow_beyond(struct wss_mover *mover, uint64_t actual, uint64_t now_s)
{
	if (!mover->beyond)
		mover->beyond_s = mover->changed_s = now_s;
	note_change(mover, actual, now_s);
	mover->beyond = true;
	/* On the way back, sizes from before the last step are no longer ours. */
	mover->high_bytes = mover->target_bytes;
}

static enum wss_moved_by judge_beyond(const struct wss_mover *mover,
				      const struct wss_balloon_view *view, bool autodeflate)
{
	uint64_t actual = mover->actual_bytes, guard = wss_edge_guard(actual);
	uint64_t said_s = said_s_of(view);
	bool reports = view->usable_bytes.known,
	     settled = view->now_s - mover->changed_s >= SETTLE_S;

	if (autodeflate && reports && said_s > mover->beyond_s && view->usable_bytes.value <= guard)
		return WSS_MOVED_BY_GUEST;
	if (!settled)
		return WSS_MOVED_BY_UNKNOWN;
	if (!autodeflate)
		return WSS_MOVED_BY_OTHERS;
	/* The guest takes no more than it needs, and nothing while it has memory left. */
	if (actual - mover->high_bytes <= guard && !mover->had_plenty)
		return WSS_MOVED_BY_GUEST;
	if (reports && said_s > mover->changed_s)
		return WSS_MOVED_BY_OTHERS;
	return reports && view->now_s - mover->changed_s < REPORT_S ? WSS_MOVED_BY_UNKNOWN
								    : WSS_MOVED_BY_GUEST;
}

bool wss_mover_is_stopped(const struct wss_mover *mover, const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value;

	return !mover->beyond && actual > mover->target_bytes + TOLERANCE &&
	       view->now_s - mover->changed_s >= STOPPED_S && view->usable_bytes.known &&
	       view->usable_bytes.value > actual - mover->target_bytes + wss_edge_guard(actual);
}

enum wss_moved_by wss_mover_judge(struct wss_mover *mover, const struct wss_balloon_view *view,
				  bool autodeflate)
{
	uint64_t actual = view->actual_bytes.value;
	bool was_below = mover->below;

	if (actual + TOLERANCE < mover->low_bytes) {
		/* Memory that is being unplugged is gone a moment before the configuration says so. */
		mover->below = true;
		return was_below ? WSS_MOVED_BY_OTHERS : WSS_MOVED_BY_UNKNOWN;
	}
	if (actual > mover->high_bytes + TOLERANCE) {
		follow_beyond(mover, actual, view->now_s);
		return judge_beyond(mover, view, autodeflate);
	}
	if (mover->beyond)
		return WSS_MOVED_BY_RESET;
	follow(mover, actual);
	note_change(mover, actual, view->now_s);
	note_usable(mover, view);
	return wss_mover_is_stopped(mover, view) ? WSS_MOVED_BY_OTHERS : WSS_MOVED_BY_US;
}
