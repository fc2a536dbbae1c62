/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/balloon-private.h"

#include <stddef.h>

#include "base/number.h"
#include "sizing/sizing.h"

#define MIB (1ULL << 20)
/*
 * Sizes are set in KiB and reached in pages: a guest this close to its target has reached it.
 */
#define TOLERANCE MIB
/* Number of periods to leave a guest alone after it needed its memory back. */
#define REST_PERIODS 10
/* Number of periods without a window after which a guest's need counts as unknown. */
#define BLIND_PERIODS 10
/* Seconds after its last move in which a balloon may still be on its way to its target. */
#define SETTLE_S 5
/* A guest is short of memory if, at its present rate, it will have none left in this time. */
#define RESERVE_S 5
/* Longest time to keep a guest from a size that was too small for its page cache. */
#define CAREFUL_S_MAX 86400
/* Time that a guest may take to read its page cache back once it has room for it again. */
#define REFILL_S 60
/* Shortest time between two checks of the guest's resident memory. */
#define CHECK_PERIOD_S 30

void wss_balloon_init(struct wss_balloon *balloon, const struct wss_balloon_limits *limits)
{
	*balloon = (struct wss_balloon){.limits = *limits,
					.target_bytes = limits->original_bytes,
					.actual_bytes = limits->original_bytes};
}

/*
 * Raises the roomy size to the largest since memory was first taken from the guest, so that page
 * cache that is already lost counts as well. The view must have statistics that match the guest's
 * size.
 */
static void note_room(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	struct wss_amount roomy = wss_balloon_roomy(view, balloon->limits.headroom_percent);

	if (roomy.known)
		balloon->roomy_bytes = balloon->shrunk
					       ? wss_u64_max(balloon->roomy_bytes, roomy.value)
					       : roomy.value;
}

static bool is_tight(const struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	return balloon->shrunk && view->actual_bytes.value + TOLERANCE < balloon->roomy_bytes;
}

/* Keeps a guest that reads more than usual below its roomy size from getting less than that. */
static void be_careful(struct wss_balloon *balloon, uint64_t now_s)
{
	/* Even with short periods it takes this long to see whether the larger size helps. */
	uint64_t least = wss_u64_max(REST_PERIODS * balloon->limits.period_s, 2 * REFILL_S);

	/* Twice as long each time: a size that was too small once may be too small again. */
	balloon->careful_s = wss_u64_max(2 * balloon->careful_s, least);
	if (balloon->careful_s > CAREFUL_S_MAX)
		balloon->careful_s = wss_u64_max(least, CAREFUL_S_MAX);
	balloon->careful_until_s = now_s + balloon->careful_s;
}

static bool is_careful(const struct wss_balloon *balloon, uint64_t now_s)
{
	return now_s < balloon->careful_until_s;
}

/*
 * A guest that has lost page cache in use neither swaps nor has major faults, because reading
 * a file is not a fault; but it reads from its disks. The usual rate is the largest recent
 * one, reduced by an eighth with each look; rates below the roomy size, and just after that,
 * do not count. Returns a reason to give everything back, or NULL.
 */
static const char *reads_reason(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	struct wss_amount last = balloon->read_bytes, *usual = &balloon->usual_read_bytes;
	uint64_t seconds = view->now_s - balloon->read_s, rate;
	bool careful = balloon->shrunk && is_careful(balloon, view->now_s);
	bool tight = is_tight(balloon, view), was_tight = balloon->read_tight;

	if (!view->read_bytes.known || (last.known && !seconds))
		return NULL;
	balloon->read_bytes = view->read_bytes;
	balloon->read_s = view->now_s;
	balloon->read_tight = tight;
	/* A disk was unplugged. */
	if (!last.known || view->read_bytes.value < last.value)
		return NULL;
	rate = (view->read_bytes.value - last.value) / seconds;
	if (!tight && !was_tight && !careful)
		*usual = wss_amount_of(wss_u64_max(rate, usual->value - usual->value / 8));
	if (!usual->known || rate <= usual->value + usual->value / 4 +
					     WSS_BALLOON_FAULTS_PER_S * WSS_BALLOON_PAGE_BYTES)
		return NULL;
	if (careful && view->now_s - (balloon->careful_until_s - balloon->careful_s) > REFILL_S)
		return "the guest keeps reading its disks";
	if (tight && !careful)
		be_careful(balloon, view->now_s);
	return NULL;
}

/* Returns why the guest must keep its roomy size, or NULL if it may get less. */
static const char *care_reason(const struct wss_balloon *balloon, uint64_t now_s)
{
	if (is_careful(balloon, now_s))
		return "with less memory the guest reads its disks again";
	if (!balloon->usual_read_bytes.known)
		return "how much its disks read is unknown";
	return NULL;
}

bool wss_balloon_rested(const struct wss_balloon *balloon, uint64_t now_s)
{
	return !balloon->over && !balloon->pending && now_s >= balloon->rest_until_s;
}

/*
 * Whether the statistics belong to the guest's present size. Statistics from before the balloon
 * moved would show room that the balloon has taken since.
 */
static bool statistics_match(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	if (view->actual_bytes.value != balloon->actual_bytes) {
		balloon->actual_bytes = view->actual_bytes.value;
		balloon->changed_s = view->now_s;
		balloon->held_bytes.known = false;
	}
	return view->now_s - balloon->changed_s > view->statistics_age_s;
}

/*
 * Adopts, as the size to give back, a size that somebody else set while nothing was taken from
 * the guest. Ignores sizes on the way back to the original one, unless the guest turns round.
 */
static void adopt_size(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	uint64_t *original = &balloon->limits.original_bytes;
	uint64_t actual = view->actual_bytes.value;

	if (!balloon->looked)
		balloon->changed_s = view->now_s;
	balloon->looked = true;
	/* It may still have followed the last step for a moment. */
	balloon->risen = balloon->risen || actual > balloon->actual_bytes + TOLERANCE;
	if (balloon->shrunk || (balloon->returning && actual + TOLERANCE < *original &&
				!(balloon->risen && actual + TOLERANCE < balloon->actual_bytes)))
		return;
	balloon->returning = false;
	*original = actual;
}

static struct wss_balloon_decision decide_hold(const char *reason)
{
	return (struct wss_balloon_decision){WSS_BALLOON_HOLD, 0, reason};
}

static struct wss_balloon_decision decide_return(struct wss_balloon *balloon, uint64_t now_s,
						 const char *reason)
{
	balloon->target_bytes = balloon->limits.original_bytes;
	balloon->shrunk = balloon->pending = false;
	balloon->returning = true;
	balloon->risen = false;
	balloon->steps = 0;
	balloon->rest_until_s = now_s + REST_PERIODS * balloon->limits.period_s;
	return (struct wss_balloon_decision){WSS_BALLOON_RETURN, balloon->target_bytes, reason};
}

static struct wss_balloon_decision decide_end(struct wss_balloon *balloon, const char *reason)
{
	balloon->over = true;
	return (struct wss_balloon_decision){WSS_BALLOON_RESTORE, balloon->limits.original_bytes,
					     reason};
}

/*
 * Returns a reason if the guest has begun to swap, or to read back dropped pages, since its last
 * report; NULL otherwise.
 */
static const char *distress_reason(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	uint64_t said_s = view->now_s - view->statistics_age_s;
	uint64_t seconds = said_s > balloon->said_s ? said_s - balloon->said_s : 1;
	const char *reason = NULL;

	if (view->swapped_bytes.known && balloon->swapped_bytes.known &&
	    view->swapped_bytes.value > balloon->swapped_bytes.value)
		reason = "the guest is swapping";
	if (view->major_faults.known && balloon->major_faults.known &&
	    view->major_faults.value >
		    balloon->major_faults.value + WSS_BALLOON_FAULTS_PER_S * seconds)
		reason = "the guest's major faults are rising";
	if (view->swapped_bytes.known)
		balloon->swapped_bytes = view->swapped_bytes;
	if (view->major_faults.known) {
		balloon->major_faults = view->major_faults;
		balloon->said_s = said_s;
	}
	return reason;
}

/*
 * Returns a reason if the guest's statistics show that it is short of memory or soon will be;
 * NULL otherwise. During a step its size is not known to the second, so the step's target
 * counts.
 */
static const char *shortage_reason(struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	uint64_t size = balloon->pending ? balloon->target_bytes : view->actual_bytes.value;
	uint64_t said_s = view->now_s - view->statistics_age_s, held, grown, seconds;

	if (!view->usable_bytes.known || view->usable_bytes.value >= size)
		return NULL;
	held = size - view->usable_bytes.value;
	if (held + wss_balloon_spare(view, held, balloon->limits.headroom_percent) / 2 >= size)
		return "the guest reports that half of its headroom is used up";
	if (balloon->pending || said_s <= balloon->held_s)
		return NULL;
	grown = balloon->held_bytes.known && held > balloon->held_bytes.value
			? held - balloon->held_bytes.value
			: 0;
	seconds = said_s - balloon->held_s;
	balloon->held_bytes = wss_amount_of(held);
	balloon->held_s = said_s;
	if (grown / seconds * RESERVE_S > view->usable_bytes.value)
		return "the guest is allocating memory fast";
	return NULL;
}

/*
 * Decides on whatever ends shrinking or undoes it, even during a step; reason is NULL if
 * nothing does.
 */
static struct wss_balloon_decision alarm_of(struct wss_balloon *balloon,
					    const struct wss_balloon_view *view)
{
	const struct wss_balloon_limits *limits = &balloon->limits;
	uint64_t actual = view->actual_bytes.value;
	const char *reason = distress_reason(balloon, view), *reads = reads_reason(balloon, view);

	if (!balloon->shrunk)
		return decide_hold(NULL);
	/* It grew unasked: the guest's own defence against running out of memory. */
	if (actual > balloon->best_bytes + TOLERANCE)
		return decide_end(balloon, "the guest took memory back by itself");
	if (reason)
		return decide_return(balloon, view->now_s, reason);
	/* Half of the headroom is used up. */
	if (view->wss_bytes.known &&
	    wss_balloon_with_reserve(view->wss_bytes.value, limits->headroom_percent / 2,
				     balloon->reserve_bytes) >= actual)
		return decide_return(balloon, view->now_s,
				     "the working set has used up half of its headroom");
	reason = shortage_reason(balloon, view);
	if (!reason)
		reason = reads;
	if (reason)
		return decide_return(balloon, view->now_s, reason);
	/* No window is opened during a step, however long the step takes. */
	if (balloon->pending)
		balloon->pending_s = view->now_s;
	if (view->wss_age_s > BLIND_PERIODS * limits->period_s &&
	    view->now_s - balloon->pending_s > BLIND_PERIODS * limits->period_s)
		return decide_end(balloon, "the guest has not been measured for ten periods");
	return decide_hold(NULL);
}

static uint64_t step_of(uint64_t size)
{
	return size / 100 * WSS_BALLOON_STEP_PERCENT;
}

struct wss_amount wss_balloon_gain(const struct wss_balloon_view *view, uint64_t to_bytes)
{
	return wss_keep_gain(view->actual_bytes, view->rss_bytes, to_bytes);
}

bool wss_balloon_is_futile(const struct wss_balloon_view *view, uint64_t to_bytes)
{
	struct wss_amount gain = wss_balloon_gain(view, to_bytes);

	return gain.known && gain.value < wss_keep_least_gain(view->actual_bytes.value);
}

/* Waits for a step that is under way. reason is NULL once it is done. */
static struct wss_balloon_decision await_step(struct wss_balloon *balloon,
					      const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value;

	if (actual + TOLERANCE < balloon->best_bytes) {
		balloon->best_bytes = actual;
		balloon->progress_s = view->now_s;
	}
	if (actual > balloon->target_bytes + TOLERANCE) {
		if (view->now_s - balloon->progress_s >= balloon->limits.timeout_s)
			return decide_end(balloon, "the guest does not release memory");
		return decide_hold("a step is in progress");
	}
	balloon->best_bytes = actual < balloon->best_bytes ? actual : balloon->best_bytes;
	balloon->pending = false;
	balloon->steps++;
	balloon->rest_until_s = view->now_s + balloon->limits.pause_s;
	return decide_hold(NULL);
}

/*
 * Whether the look's resident memory has to be checked before a decision may rest on it. Unless it
 * was checked, it is that of the whole process less the share of QEMU itself as last measured, and
 * that share may have changed: the translation buffer of a TCG guest grows by hundreds of MiB.
 */
static bool check_is_due(const struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	return !view->rss_checked && view->now_s >= balloon->check_at_s;
}

static struct wss_balloon_decision decide_check(void)
{
	return (struct wss_balloon_decision){WSS_BALLOON_CHECK, 0,
					     "its resident memory has to be checked"};
}

/*
 * Whether the host gained nothing from the memory taken. Of the memory that the guest gave up
 * and the host had held, the host must get back at least half. Less than one step proves
 * nothing, because without a check QEMU itself may have allocated that much meanwhile.
 */
static bool is_fruitless(const struct wss_balloon *balloon, const struct wss_balloon_view *view)
{
	uint64_t before = balloon->rss_before_bytes.value, given, due;

	if (balloon->steps < WSS_BALLOON_PROOF_STEPS || !balloon->rss_before_bytes.known ||
	    !view->rss_bytes.known ||
	    before < balloon->target_bytes + step_of(balloon->size_before_bytes))
		return false;
	given = balloon->size_before_bytes - balloon->target_bytes;
	due = before - balloon->target_bytes;
	due = (due < given ? due : given) / 2;
	return view->rss_bytes.value + due > before;
}

static struct wss_balloon_decision decide_step(struct wss_balloon *balloon,
					       const struct wss_balloon_view *view)
{
	uint64_t actual = view->actual_bytes.value;
	uint64_t floor = wss_balloon_floor(&balloon->limits, view, balloon->reserve_bytes);
	uint64_t target = actual - step_of(actual);
	const char *reason =
		floor < balloon->roomy_bytes ? care_reason(balloon, view->now_s) : NULL;

	floor = reason ? balloon->roomy_bytes : floor;
	target = wss_u64_max(target, floor);
	if (target + TOLERANCE >= actual)
		return decide_hold(reason ? reason : "at its floor");
	if (!balloon->shrunk && wss_balloon_is_futile(view, floor))
		return decide_hold("the host would reclaim too little");
	if (!balloon->shrunk && view->now_s - balloon->changed_s < SETTLE_S)
		return decide_hold("its balloon is still moving");
	balloon->ready = !view->may_step;
	if (balloon->ready)
		return decide_hold("no step is possible at the moment");
	if (!balloon->shrunk && check_is_due(balloon, view))
		return decide_check();
	if (!balloon->shrunk) {
		balloon->rss_before_bytes = view->rss_bytes;
		balloon->size_before_bytes = actual;
		/* The proof that the host gains need not wait after this check. */
		balloon->check_at_s = 0;
	}
	balloon->shrunk = balloon->pending = true;
	balloon->target_bytes = target;
	balloon->best_bytes = actual;
	balloon->progress_s = view->now_s;
	return (struct wss_balloon_decision){WSS_BALLOON_SHRINK, target, "it needs less memory"};
}

/* Lets the guest grow to a floor that was raised by policy, history or caution. */
static struct wss_balloon_decision decide_grow(struct wss_balloon *balloon,
					       const struct wss_balloon_view *view, uint64_t floor,
					       const char *reason)
{
	if (floor + TOLERANCE >= balloon->limits.original_bytes)
		return decide_return(balloon, view->now_s,
				     "its floor has risen to its original size");
	/* The guest may not have shrunk to that floor yet. */
	balloon->pending = view->actual_bytes.value > floor + TOLERANCE;
	balloon->target_bytes = floor;
	balloon->best_bytes = wss_u64_max(floor, view->actual_bytes.value);
	balloon->progress_s = view->now_s;
	balloon->rest_until_s = view->now_s + balloon->limits.pause_s;
	return (struct wss_balloon_decision){WSS_BALLOON_GROW, floor, reason};
}

struct wss_balloon_decision wss_balloon_next(struct wss_balloon *balloon,
					     const struct wss_balloon_view *given)
{
	struct wss_balloon_view copy = *given, *view = &copy;
	struct wss_balloon_decision decision;
	const char *reason;
	uint64_t floor;
	bool match;

	balloon->ready = false;
	if (view->rss_checked)
		balloon->check_at_s = view->now_s + CHECK_PERIOD_S;
	if (balloon->over)
		return decide_hold("it is left alone");
	if (!view->actual_bytes.known)
		return decide_hold("the size of its balloon is unknown");
	adopt_size(balloon, view);
	match = statistics_match(balloon, view) || !view->usable_bytes.known;
	if (match) {
		balloon->reserve_bytes =
			wss_u64_max(balloon->reserve_bytes, wss_balloon_reserve(view));
		note_room(balloon, view);
	} else if (!balloon->pending) {
		view->usable_bytes.known = false;
	}
	decision = alarm_of(balloon, view);
	if (decision.reason)
		return decision;
	floor = wss_balloon_history_floor(&balloon->limits, balloon->reserve_bytes);
	if (balloon->shrunk && floor > balloon->target_bytes + TOLERANCE)
		return decide_grow(balloon, view, floor, "its floor has risen");
	reason = care_reason(balloon, view->now_s);
	if (balloon->shrunk && reason && balloon->roomy_bytes > balloon->target_bytes + TOLERANCE)
		return decide_grow(balloon, view, balloon->roomy_bytes, reason);
	if (balloon->pending) {
		decision = await_step(balloon, view);
		if (decision.reason)
			return decision;
	}
	if (is_fruitless(balloon, view)) {
		if (check_is_due(balloon, view))
			return decide_check();
		if (view->rss_checked)
			return decide_end(balloon, "the host reclaims nothing from the guest");
	}
	if (!view->wss_bytes.known || view->wss_age_s > 2 * balloon->limits.period_s)
		return decide_hold(wss_balloon_outdated);
	if (view->now_s < balloon->rest_until_s)
		return decide_hold("resting after the last step");
	if (!match)
		return decide_hold("its statistics are older than the last step");
	return decide_step(balloon, view);
}
