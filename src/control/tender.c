/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/tender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "control/plan.h"

/* Time limit of a step without any progress. */
#define STEP_TIMEOUT_S 30
/*
 * Number of successive looks that may fail for lack of memory before the guest is left alone.
 */
#define SHORT_LOOKS_MAX 10
/* Shortest time between two refreshes while no step is possible, however short the pause. */
#define REFRESH_NS (5 * WSS_NS_PER_S)

void wss_tender_trouble(struct tender *tender, const struct wss_error *why)
{
	const struct wss_guest *guest = tender->target->guest;

	wss_tending_trouble(tender->tending, guest ? guest->config.name : tender->name, why);
}

void wss_tender_leave(struct tender *tender, const struct wss_error *why)
{
	if (!tender->end)
		wss_tender_trouble(tender, why);
	tender->end = "left alone";
}

bool wss_tender_memory_is_short(struct tender *tender, const struct wss_error *err)
{
	if (err->code != WSS_ERR_NO_MEMORY || tender->short_looks >= SHORT_LOOKS_MAX)
		return false;
	tender->short_looks++;
	wss_debug("%s: put off: %s", tender->name, err->text);
	return true;
}

static int tender_refresh(struct tender *tender, struct wss_look *ret_look,
			  struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;

	if (wss_guest_refresh(guest, err) < 0 ||
	    wss_look_take(guest, &tender->target->policy, &tender->reports, ret_look, err) < 0)
		return -1;
	tender->refreshed_ns = wss_clock_now_ns();
	/* Not during a job or while the guest is paused: it could not answer. */
	tender->may_step = ret_look->facts.running && !ret_look->facts.job;
	return 0;
}

/*
 * Whether to refresh everything, which costs four libvirt calls: after each pause, and when a
 * step could be next.
 */
static bool refresh_is_due(const struct tender *tender)
{
	uint64_t pause_ns = tender->tending->options.pause_ns;
	uint64_t least_ns = pause_ns > REFRESH_NS ? pause_ns : REFRESH_NS;
	uint64_t now_ns = wss_clock_now_ns();
	uint64_t rested_ns = tender->balloon.rest_until_s * WSS_NS_PER_S;

	return tender->balloon.ready || now_ns - tender->refreshed_ns >= least_ns ||
	       (tender->refreshed_ns < rested_ns &&
		wss_balloon_rested(&tender->balloon, now_ns / WSS_NS_PER_S));
}

static void join_need(struct tender *tender, struct wss_look *look)
{
	tending_lock(tender->tending);
	wss_look_join(&tender->need, look);
	tender->target->policy = tender->policy;
	look->facts.opted_out = look->facts.opted_out || tender->opted_out;
	tending_unlock(tender->tending);
	look->limits.period_s = tender->tending->options.period_ns / WSS_NS_PER_S + 1;
}

/*
 * Whether the measuring thread permits a step; it opens no window before the next
 * set_moving().
 */
static bool may_move(struct tender *tender)
{
	bool may;

	tending_lock(tender->tending);
	may = !tender->measuring;
	/* If a window is waiting for a step to end, moving stays set. */
	if (may)
		tender->moving = true;
	tending_unlock(tender->tending);
	return may;
}

static void set_moving(struct tender *tender, bool moving)
{
	tending_lock(tender->tending);
	tender->moving = moving;
	tending_unlock(tender->tending);
}

/*
 * Reads the guest's resident memory, on which the next decision rests. QEMU's own share of it also
 * corrects the following looks, until the next window.
 */
static int check_memory(struct tender *tender, struct wss_look *look, struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct wss_amount qemu_bytes;

	if (wss_look_check_memory(tender->target->guest,
				  wss_hypervisor_host(tending->targets.hypervisor), look,
				  &qemu_bytes, err) < 0)
		return -1;
	if (qemu_bytes.known) {
		tending_lock(tending);
		tender->need.qemu_bytes = qemu_bytes;
		tending_unlock(tending);
	}
	return 0;
}

/*
 * Decides on a look, and reads what is expensive only if the decision rests on it. If that fails
 * for lack of memory, the decision remains WSS_BALLOON_CHECK.
 */
static struct wss_balloon_decision decide_on_look(struct tender *tender, struct wss_look *look)
{
	const struct wss_balloon before = tender->balloon;
	struct wss_balloon_decision decision = wss_balloon_next(&tender->balloon, &look->view);
	struct wss_error err = WSS_ERROR_INIT;

	if (decision.action != WSS_BALLOON_CHECK)
		return decision;
	if (check_memory(tender, look, &err) < 0) {
		wss_debug("%s: %s", tender->name, err.text);
		return decision;
	}
	tender->balloon = before;
	return wss_balloon_next(&tender->balloon, &look->view);
}

static struct wss_balloon_decision tender_next(struct tender *tender, struct wss_look *look)
{
	struct wss_balloon_decision decision;

	if (!tender->squeeze)
		return decide_on_look(tender, look);
	decision = wss_squeeze_next(tender->squeeze, &look->view);
	tender->balloon.ready = wss_squeeze_is_ready(tender->squeeze);
	tender->balloon.pending = wss_squeeze_is_stepping(tender->squeeze);
	return decision;
}

static const char *tender_objection(const struct tender *tender, const struct wss_look *look)
{
	return tender->squeeze ? wss_squeeze_objection(&look->facts)
			       : wss_balloon_objection(&look->facts);
}

/* Returns to the state before a decision that was not carried out. */
static void put_off(struct tender *tender, const struct wss_balloon *before, uint64_t now_s)
{
	tender->balloon = *before;
	tender->balloon.rest_until_s = now_s + before->limits.pause_s;
	if (tender->squeeze)
		wss_squeeze_put_off(tender->squeeze);
}

/* Acts if anybody but us has moved the balloon. Returns false if the look leads to nothing else. */
static bool heed_others(struct tender *tender, struct wss_look *look)
{
	struct wss_balloon_decision reset = {WSS_BALLOON_RESTORE, 0, "the guest was reset"};
	bool was_there = wss_mover_is_there(&tender->mover);
	struct wss_error err = WSS_ERROR_INIT;

	if (!tender->shrunk || !look->view.actual_bytes.known)
		return true;
	switch (wss_give_back_moved_by(tender, &look->view)) {
	case WSS_MOVED_BY_US:
		if (!was_there && wss_mover_is_there(&tender->mover))
			wss_step_note_reached(tender);
		return true;
	case WSS_MOVED_BY_GUEST:
		return true;
	case WSS_MOVED_BY_UNKNOWN:
		wss_debug("%s: its balloon moves by itself", tender->name);
		return false;
	case WSS_MOVED_BY_OTHERS:
		if (wss_give_back_yield(tender, &look->view, &err) < 0)
			wss_debug("%s: %s", tender->name, err.text);
		return false;
	case WSS_MOVED_BY_RESET:
		wss_step_act(tender, &reset);
		return false;
	}
	return true;
}

static void tender_decide(struct tender *tender, struct wss_look *look, bool fresh)
{
	struct wss_balloon_limits *limits = &tender->balloon.limits;
	struct wss_balloon_decision decision;
	struct wss_balloon before;
	bool known = look->facts.confidence != WSS_CONFIDENCE_NONE;
	/* A paused guest cannot report. */
	const char *objection =
		fresh && look->facts.running ? tender_objection(tender, look) : NULL;

	if (look->view.actual_bytes.known)
		tender->actual_bytes = look->view.actual_bytes.value;
	if (!heed_others(tender, look))
		return;
	/*
	 * The floor follows the policy and the history, except a history of too few windows.
	 */
	limits->minimum_bytes = look->limits.minimum_bytes;
	if (known)
		limits->needed_bytes = look->limits.needed_bytes;
	limits->headroom_percent = look->limits.headroom_percent;
	look->view.may_step = fresh && tender->may_step && (known || tender->squeeze) &&
			      may_move(tender);
	before = tender->balloon;
	decision = tender_next(tender, look);
	if (objection)
		decision = (struct wss_balloon_decision){WSS_BALLOON_RESTORE, 0, objection};
	if (!wss_step_act(tender, &decision))
		put_off(tender, &before, look->view.now_s);
	set_moving(tender, tender->balloon.pending);
}

static void look_after(struct tender *tender)
{
	bool fresh = refresh_is_due(tender);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_look look = {.limits = {0}};
	int r = fresh ? tender_refresh(tender, &look, &err)
		      : wss_look_statistics(tender->target->guest, &tender->reports, &look,
					    &err);

	tender->looked_ns = wss_clock_now_ns();
	if (r < 0 && wss_tender_memory_is_short(tender, &err))
		return;
	if (r < 0 || tender->target->guest->state == WSS_GUEST_SHUTOFF) {
		if (wss_give_back_has_ended(tender))
			wss_error_set(
				&err, WSS_ERR_GONE, "the guest is not running any more%s",
				tender->shrunk ? ", and its balloon stays shrunk where it resumes" : "");
		wss_tender_leave(tender, &err);
		return;
	}
	if (tender->shrunk && wss_step_check_safeguards(tender, &err) < 0) {
		wss_tender_leave(tender, &err);
		return;
	}
	wss_look_disks(tender->target->guest, &tender->reports,
		       tender->squeeze ? 1 : WSS_LOOK_READS_PERIOD_S, &look);
	if (tender->is_here)
		wss_look_pressure(wss_hypervisor_host(tender->tending->targets.hypervisor), &look);
	join_need(tender, &look);
	tender_decide(tender, &look, fresh);
}

/* Whether another tender has the guest, because two names may mean the same one. */
static bool is_taken(struct tender *tender)
{
	bool taken = false;

	memcpy(tender->uuid, tender->target->guest->config.uuid, sizeof(tender->uuid));
	tending_lock(tender->tending);
	for (struct tender *t = tender->tending->tenders; t && !taken; t = t->next)
		taken = t != tender && t->in_charge && !strcmp(t->uuid, tender->uuid);
	tender->in_charge = !taken;
	tending_unlock(tender->tending);
	return taken;
}

static int refuse(struct wss_error *err, const char *reason)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "refused: %s", reason);
}

static int begin_squeeze(struct tender *tender, const struct wss_look *look,
			 struct wss_error *err)
{
	const struct wss_host *host = wss_hypervisor_host(tender->tending->targets.hypervisor);
	struct wss_squeeze_options options = tender->tending->options.squeeze->options;
	const char *refusal = wss_squeeze_refusal(&look->facts);
	struct wss_look copy = *look;
	struct wss_amount qemu_bytes;

	if (refusal)
		return refuse(err, refusal);
	if (wss_look_check_memory(tender->target->guest, host, &copy, &qemu_bytes, err) < 0)
		return -1;
	tender->is_here = qemu_bytes.known;
	options.floor_bytes = wss_squeeze_floor(&tender->target->policy, options.floor_bytes);
	if (!tender->squeeze)
		tender->squeeze = malloc(sizeof(*tender->squeeze));
	if (!tender->squeeze)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_squeeze_init(tender->squeeze, &options, look->view.actual_bytes.value,
			 STEP_TIMEOUT_S, look->facts.autodeflate);
	return 0;
}

static int begin_reclaiming(struct tender *tender, const struct wss_look *look,
			    struct wss_error *err)
{
	char gain[16], least[16], text[80];
	struct wss_plan plan;

	wss_plan_make(look, &plan);
	if (plan.action == WSS_PLAN_REFUSED)
		return refuse(err, plan.reason);
	/* Its resident memory grows while it runs: wss_balloon_next() waits for that. */
	if (plan.action != WSS_PLAN_FUTILE)
		return 0;
	wss_size_format(plan.gain_bytes.value, gain, sizeof(gain));
	wss_size_format(wss_balloon_least_gain(look->view.actual_bytes.value), least, sizeof(least));
	snprintf(text, sizeof(text), "would free %s; the minimum is %s", gain, least);
	wss_tending_progress(tender->tending, tender->target->guest->config.name, text);
	return 0;
}

static int begin_balloon(struct tender *tender, const struct wss_look *look,
			 struct wss_error *err)
{
	const struct wss_balloon_options *options = &tender->tending->options;
	struct wss_balloon_limits limits = look->limits;

	if ((options->squeeze ? begin_squeeze : begin_reclaiming)(tender, look, err) < 0)
		return -1;
	limits.original_bytes = look->view.actual_bytes.value;
	limits.period_s = options->period_ns / WSS_NS_PER_S + 1;
	limits.pause_s = options->pause_ns / WSS_NS_PER_S;
	limits.timeout_s = STEP_TIMEOUT_S;
	tender->actual_bytes = limits.original_bytes;
	wss_balloon_init(&tender->balloon, &limits);
	return 0;
}

static int look_journal(struct tender *tender, struct wss_look *look, struct wss_error *err)
{
	struct wss_shared_history *shared = &tender->tending->journal;
	int r;

	if (wss_shared_history_lock(shared, err) < 0)
		return -1;
	r = wss_look_journal(shared->history, tender->uuid, look, err);
	wss_shared_history_unlock(shared);
	return r;
}

static int check_refusal(struct tender *tender, struct wss_error *err)
{
	struct wss_look look;

	if (tender_refresh(tender, &look, err) < 0 || look_journal(tender, &look, err) < 0 ||
	    wss_tender_read_need(tender, &tender->target->policy, NULL, err) < 0)
		return -1;
	wss_look_join(&tender->need, &look);
	return begin_balloon(tender, &look, err);
}

/* Returns 1 if the guest is now in our charge, 0 if it need not be, -1 if it cannot be. */
static int try_to_take_on(struct tender *tender, struct wss_error *err)
{
	struct wss_target *target = tender->target;

	wss_target_open(target);
	tender->looked_ns = wss_clock_now_ns();
	if ((tender->tending->targets.all && wss_target_is_left_out(target)) ||
	    (target->guest && is_taken(tender)))
		return 0;
	if (!target->guest) {
		*err = target->error;
		return -1;
	}
	return check_refusal(tender, err) < 0 ? -1 : 1;
}

static void forget_guest(struct tender *tender)
{
	tender->in_charge = false;
	wss_guest_free(tender->target->guest);
	tender->target->guest = NULL;
}

/* Returns true once the guest is in our charge. */
static bool take_on(struct tender *tender)
{
	struct tending *tending = tender->tending;
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	while ((r = try_to_take_on(tender, &err)) < 0 &&
	       wss_tender_memory_is_short(tender, &err) && !tending_is_ending(tending)) {
		forget_guest(tender);
		wss_error_clear(&err);
		wss_clock_sleep_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
	if (r < 0)
		wss_tender_trouble(tender, &err);
	if (r == 0) {
		tending_lock(tending);
		tending->missing++;
		tending_unlock(tending);
	}
	return r > 0;
}

/* Returns true if a thread measures the guest; false while none can be started. */
static bool start_measuring(struct tender *tender)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (!tender->tending->options.window_ns ||
	    wss_tender_start(tender, wss_tender_measure, &err) == 0)
		return true;
	err.code = WSS_ERR_NO_MEMORY;
	if (!wss_tender_memory_is_short(tender, &err))
		wss_tender_leave(tender, &err);
	return false;
}

void wss_tender_look(void *opaque)
{
	struct tender *tender = opaque;
	bool measured = false;

	if (take_on(tender)) {
		while (!tender->end && !tending_is_ending(tender->tending)) {
			uint64_t next_ns = wss_clock_now_ns() + LOOK_NS;

			measured = measured || start_measuring(tender);
			if (!tender->end)
				look_after(tender);
			if (!tender->end)
				wss_clock_sleep_until_ns(next_ns);
		}
		wss_give_back_insist(tender);
	}
	tender->over = true;
	tending_lock(tender->tending);
	tender->tending->busy -= !tender->shrunk;
	tending_unlock(tender->tending);
	wss_tender_thread_ended(tender->tending);
}
