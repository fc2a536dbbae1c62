/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/controlled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "balloon/plan.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

/* Time limit of a step without any progress. */
#define STEP_TIMEOUT_S 30
/*
 * Number of successive looks that may fail for lack of memory before the guest is left alone.
 */
#define SHORT_LOOKS_MAX 10
/* Shortest time between two refreshes while no step is possible, however short the pause. */
#define REFRESH_NS (5 * WSS_NS_PER_S)

void wss_controlled_trouble(struct controlled *controlled, const struct wss_error *why)
{
	const struct wss_guest *guest = controlled->target->guest;

	wss_controller_trouble(controlled->controller,
			       guest ? guest->config.name : controlled->name, why);
}

void wss_controlled_leave(struct controlled *controlled, const struct wss_error *why)
{
	if (!controlled->end)
		wss_controlled_trouble(controlled, why);
	controlled->end = "left alone";
}

bool wss_controlled_memory_is_short(struct controlled *controlled, const struct wss_error *err)
{
	if (err->code != WSS_ERR_NO_MEMORY || controlled->short_looks >= SHORT_LOOKS_MAX)
		return false;
	controlled->short_looks++;
	wss_debug("%s: put off: %s", controlled->name, err->text);
	return true;
}

static int controlled_refresh(struct controlled *controlled, struct wss_look *ret_look,
			      struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;

	if (wss_guest_refresh(guest, err) < 0 ||
	    wss_look_take(guest, &controlled->target->policy, &controlled->reports, ret_look, err) <
		    0)
		return -1;
	controlled->refreshed_ns = wss_clock_now_ns();
	/* Not during a job or while the guest is paused: it could not answer. */
	controlled->may_step = ret_look->facts.running && !ret_look->facts.job;
	return 0;
}

/*
 * Whether to refresh everything, which costs four libvirt calls: after each pause, and when a
 * step could be next.
 */
static bool refresh_is_due(const struct controlled *controlled)
{
	uint64_t pause_ns = controlled->controller->options.pause_ns;
	uint64_t least_ns = pause_ns > REFRESH_NS ? pause_ns : REFRESH_NS;
	uint64_t now_ns = wss_clock_now_ns();
	uint64_t rested_ns = controlled->balloon.rest_until_s * WSS_NS_PER_S;

	return controlled->balloon.ready || now_ns - controlled->refreshed_ns >= least_ns ||
	       (controlled->refreshed_ns < rested_ns &&
		wss_balloon_rested(&controlled->balloon, now_ns / WSS_NS_PER_S));
}

static void join_need(struct controlled *controlled, struct wss_look *look)
{
	controller_lock(controlled->controller);
	wss_look_join(&controlled->need, look);
	controlled->target->policy = controlled->policy;
	look->facts.opted_out = look->facts.opted_out || controlled->opted_out;
	controller_unlock(controlled->controller);
	look->limits.period_s = controlled->controller->options.period_ns / WSS_NS_PER_S + 1;
}

/*
 * Whether the measuring thread permits a step; it opens no window before the next
 * set_moving().
 */
static bool may_move(struct controlled *controlled)
{
	bool may;

	controller_lock(controlled->controller);
	may = !controlled->measuring;
	/* If a window is waiting for a step to end, moving stays set. */
	if (may)
		controlled->moving = true;
	controller_unlock(controlled->controller);
	return may;
}

static void set_moving(struct controlled *controlled, bool moving)
{
	controller_lock(controlled->controller);
	controlled->moving = moving;
	controller_unlock(controlled->controller);
}

/*
 * Reads the guest's resident memory, on which the next decision rests. QEMU's own share of it
 * also corrects the following looks, until the next window.
 */
static int check_memory(struct controlled *controlled, struct wss_look *look, struct wss_error *err)
{
	struct controller *controller = controlled->controller;
	struct wss_amount qemu_bytes;

	if (wss_look_check_memory(controlled->target->guest,
				  wss_hypervisor_host(controller->targets.hypervisor), look,
				  &qemu_bytes, err) < 0)
		return -1;
	if (qemu_bytes.known) {
		controller_lock(controller);
		controlled->need.qemu_bytes = qemu_bytes;
		controller_unlock(controller);
	}
	return 0;
}

/*
 * Decides on a look, and reads what is expensive only if the decision rests on it. If that
 * fails for lack of memory, the decision remains WSS_BALLOON_CHECK.
 */
static struct wss_balloon_decision decide_on_look(struct controlled *controlled,
						  struct wss_look *look)
{
	const struct wss_balloon before = controlled->balloon;
	struct wss_balloon_decision decision = wss_balloon_next(&controlled->balloon, &look->view);
	struct wss_error err = WSS_ERROR_INIT;

	if (decision.action != WSS_BALLOON_CHECK)
		return decision;
	if (check_memory(controlled, look, &err) < 0) {
		wss_debug("%s: %s", controlled->name, err.text);
		return decision;
	}
	controlled->balloon = before;
	return wss_balloon_next(&controlled->balloon, &look->view);
}

static struct wss_balloon_decision controlled_next(struct controlled *controlled,
						   struct wss_look *look)
{
	struct wss_balloon_decision decision;

	if (!controlled->squeeze)
		return decide_on_look(controlled, look);
	decision = wss_squeeze_next(controlled->squeeze, &look->view);
	controlled->balloon.ready = wss_squeeze_is_ready(controlled->squeeze);
	controlled->balloon.pending = wss_squeeze_is_stepping(controlled->squeeze);
	return decision;
}

static const char *controlled_objection(const struct controlled *controlled,
					const struct wss_look *look)
{
	return controlled->squeeze ? wss_squeeze_objection(&look->facts)
				   : wss_balloon_objection(&look->facts);
}

/* Returns to the state before a decision that was not carried out. */
static void put_off(struct controlled *controlled, const struct wss_balloon *before, uint64_t now_s)
{
	controlled->balloon = *before;
	controlled->balloon.rest_until_s = now_s + before->limits.pause_s;
	if (controlled->squeeze)
		wss_squeeze_put_off(controlled->squeeze);
}

/* Acts if anybody but us has moved the balloon. Returns false if the look leads to nothing
 * else. */
static bool controlled_let_others(struct controlled *controlled, struct wss_look *look)
{
	struct wss_balloon_decision reset = {WSS_BALLOON_RESTORE, 0, "the guest was reset"};
	bool was_there = wss_mover_is_there(&controlled->mover);
	struct wss_error err = WSS_ERROR_INIT;

	if (!controlled->shrunk || !look->view.actual_bytes.known)
		return true;
	switch (wss_give_back_moved_by(controlled, &look->view)) {
	case WSS_MOVED_BY_US:
		if (!was_there && wss_mover_is_there(&controlled->mover))
			wss_step_note_reached(controlled);
		return true;
	case WSS_MOVED_BY_GUEST:
		return true;
	case WSS_MOVED_BY_UNKNOWN:
		wss_debug("%s: its balloon moves by itself", controlled->name);
		return false;
	case WSS_MOVED_BY_OTHERS:
		if (wss_give_back_yield(controlled, &look->view, &err) < 0)
			wss_debug("%s: %s", controlled->name, err.text);
		return false;
	case WSS_MOVED_BY_RESET:
		wss_step_act(controlled, &reset);
		return false;
	}
	return true;
}

static void controlled_decide(struct controlled *controlled, struct wss_look *look, bool fresh)
{
	struct wss_balloon_limits *limits = &controlled->balloon.limits;
	struct wss_balloon_decision decision;
	struct wss_balloon before;
	bool known = look->facts.confidence != WSS_CONFIDENCE_NONE;
	/* A paused guest cannot report. */
	const char *objection =
		fresh && look->facts.running ? controlled_objection(controlled, look) : NULL;

	if (look->view.actual_bytes.known)
		controlled->actual_bytes = look->view.actual_bytes.value;
	if (!controlled_let_others(controlled, look))
		return;
	/*
	 * The floor follows the policy and the history, except a history of too few windows.
	 */
	limits->minimum_bytes = look->limits.minimum_bytes;
	if (known)
		limits->needed_bytes = look->limits.needed_bytes;
	limits->headroom_percent = look->limits.headroom_percent;
	look->view.may_step = fresh && controlled->may_step && (known || controlled->squeeze) &&
			      may_move(controlled);
	before = controlled->balloon;
	decision = controlled_next(controlled, look);
	if (objection)
		decision = (struct wss_balloon_decision){WSS_BALLOON_RESTORE, 0, objection};
	if (!wss_step_act(controlled, &decision))
		put_off(controlled, &before, look->view.now_s);
	set_moving(controlled, controlled->balloon.pending);
}

static void look_after(struct controlled *controlled)
{
	bool fresh = refresh_is_due(controlled);
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_look look = {.limits = {0}};
	int r = fresh ? controlled_refresh(controlled, &look, &err)
		      : wss_look_statistics(controlled->target->guest, &controlled->reports, &look,
					    &err);

	controlled->looked_ns = wss_clock_now_ns();
	if (r < 0 && wss_controlled_memory_is_short(controlled, &err))
		return;
	if (r < 0 || controlled->target->guest->state == WSS_GUEST_SHUTOFF) {
		if (wss_give_back_has_ended(controlled))
			wss_error_set(&err, WSS_ERR_GONE, "the guest is not running any more%s",
				      controlled->shrunk
					      ? ", and its balloon stays shrunk where it resumes"
					      : "");
		wss_controlled_leave(controlled, &err);
		return;
	}
	if (controlled->shrunk && wss_step_check_safeguards(controlled, &err) < 0) {
		wss_controlled_leave(controlled, &err);
		return;
	}
	wss_look_disks(controlled->target->guest, &controlled->reports,
		       controlled->squeeze ? 1 : WSS_LOOK_READS_PERIOD_S, &look);
	if (controlled->is_here)
		wss_look_pressure(wss_hypervisor_host(controlled->controller->targets.hypervisor),
				  &look);
	join_need(controlled, &look);
	controlled_decide(controlled, &look, fresh);
}

/* Whether the guest is controlled already, because two names may mean the same one. */
static bool is_taken(struct controlled *controlled)
{
	bool taken = false;

	memcpy(controlled->uuid, controlled->target->guest->config.uuid, sizeof(controlled->uuid));
	controller_lock(controlled->controller);
	for (struct controlled *t = controlled->controller->guests; t && !taken; t = t->next)
		taken = t != controlled && t->in_charge && !strcmp(t->uuid, controlled->uuid);
	controlled->in_charge = !taken;
	controller_unlock(controlled->controller);
	return taken;
}

static int refuse(struct wss_error *err, const char *reason)
{
	return wss_error_set(err, WSS_ERR_UNSUPPORTED, "refused: %s", reason);
}

static int begin_squeeze(struct controlled *controlled, const struct wss_look *look,
			 struct wss_error *err)
{
	const struct wss_host *host =
		wss_hypervisor_host(controlled->controller->targets.hypervisor);
	struct wss_squeeze_options options = controlled->controller->options.squeeze->options;
	const char *refusal = wss_squeeze_refusal(&look->facts);
	char no_step[WSS_SQUEEZE_TEXT_MAX];
	struct wss_look copy = *look;
	struct wss_amount qemu_bytes;

	options.floor_bytes = wss_squeeze_floor(&controlled->target->policy, options.floor_bytes);
	if (!refusal &&
	    wss_squeeze_no_step(look->view.actual_bytes.value, options.floor_bytes, no_step))
		refusal = no_step;
	if (refusal)
		return refuse(err, refusal);
	if (wss_look_check_memory(controlled->target->guest, host, &copy, &qemu_bytes, err) < 0)
		return -1;
	controlled->is_here = qemu_bytes.known;
	if (!controlled->squeeze)
		controlled->squeeze = malloc(sizeof(*controlled->squeeze));
	if (!controlled->squeeze)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	wss_squeeze_init(controlled->squeeze, &options, look->view.actual_bytes.value,
			 STEP_TIMEOUT_S, look->facts.autodeflate);
	return 0;
}

static int begin_reclaiming(struct controlled *controlled, const struct wss_look *look,
			    struct wss_error *err)
{
	char gain[16], least[16], text[80];
	struct wss_balloon_plan plan;

	wss_balloon_plan_make(look, &plan);
	if (plan.action == WSS_BALLOON_PLAN_REFUSED)
		return refuse(err, plan.reason);
	/* Its resident memory grows while it runs: wss_balloon_next() waits for that. */
	if (plan.action != WSS_BALLOON_PLAN_FUTILE)
		return 0;
	wss_size_format(plan.gain_bytes.value, gain, sizeof(gain));
	wss_size_format(wss_keep_least_gain(look->view.actual_bytes.value), least, sizeof(least));
	snprintf(text, sizeof(text), "would free %s; the minimum is %s", gain, least);
	wss_controller_progress(controlled->controller, controlled->target->guest->config.name,
				text);
	return 0;
}

static int begin_balloon(struct controlled *controlled, const struct wss_look *look,
			 struct wss_error *err)
{
	const struct wss_balloon_options *options = &controlled->controller->options;
	struct wss_balloon_limits limits = look->limits;

	if ((options->squeeze ? begin_squeeze : begin_reclaiming)(controlled, look, err) < 0)
		return -1;
	limits.original_bytes = look->view.actual_bytes.value;
	limits.period_s = options->period_ns / WSS_NS_PER_S + 1;
	limits.pause_s = options->pause_ns / WSS_NS_PER_S;
	limits.timeout_s = STEP_TIMEOUT_S;
	controlled->actual_bytes = limits.original_bytes;
	wss_balloon_init(&controlled->balloon, &limits);
	return 0;
}

static int look_journal(struct controlled *controlled, struct wss_look *look, struct wss_error *err)
{
	struct wss_shared_history *shared = &controlled->controller->journal;
	int r;

	if (wss_shared_history_lock(shared, err) < 0)
		return -1;
	r = wss_look_journal(shared->history, controlled->uuid, look, err);
	wss_shared_history_unlock(shared);
	return r;
}

static int check_refusal(struct controlled *controlled, struct wss_error *err)
{
	struct wss_look look;

	if (controlled_refresh(controlled, &look, err) < 0 ||
	    look_journal(controlled, &look, err) < 0 ||
	    wss_controlled_read_need(controlled, &controlled->target->policy, NULL, err) < 0)
		return -1;
	wss_look_join(&controlled->need, &look);
	return begin_balloon(controlled, &look, err);
}

/* Returns 1 if the guest is now in our charge, 0 if it need not be, -1 if it cannot be. */
static int try_to_take_on(struct controlled *controlled, struct wss_error *err)
{
	struct wss_target *target = controlled->target;

	wss_target_open(target);
	controlled->looked_ns = wss_clock_now_ns();
	if ((controlled->controller->targets.all && wss_target_is_left_out(target)) ||
	    (target->guest && is_taken(controlled)))
		return 0;
	if (!target->guest) {
		*err = target->error;
		return -1;
	}
	return check_refusal(controlled, err) < 0 ? -1 : 1;
}

static void forget_guest(struct controlled *controlled)
{
	controlled->in_charge = false;
	wss_guest_free(controlled->target->guest);
	controlled->target->guest = NULL;
}

/* Returns true once the guest is in our charge. */
static bool take_on(struct controlled *controlled)
{
	struct controller *controller = controlled->controller;
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	while ((r = try_to_take_on(controlled, &err)) < 0 &&
	       wss_controlled_memory_is_short(controlled, &err) &&
	       !controller_is_ending(controller)) {
		forget_guest(controlled);
		wss_error_clear(&err);
		wss_clock_sleep_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
	if (r < 0)
		wss_controlled_trouble(controlled, &err);
	if (r == 0) {
		controller_lock(controller);
		controller->missing++;
		controller_unlock(controller);
	}
	return r > 0;
}

/* Returns true if a thread measures the guest; false while none can be started. */
static bool start_measuring(struct controlled *controlled)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (!controlled->controller->options.window_ns ||
	    wss_controlled_start(controlled, wss_controlled_measure, &err) == 0)
		return true;
	err.code = WSS_ERR_NO_MEMORY;
	if (!wss_controlled_memory_is_short(controlled, &err))
		wss_controlled_leave(controlled, &err);
	return false;
}

void wss_controlled_look(void *opaque)
{
	struct controlled *controlled = opaque;
	bool measured = false;

	if (take_on(controlled)) {
		while (!controlled->end && !controller_is_ending(controlled->controller)) {
			uint64_t next_ns = wss_clock_now_ns() + LOOK_NS;

			measured = measured || start_measuring(controlled);
			if (!controlled->end)
				look_after(controlled);
			if (!controlled->end)
				wss_clock_sleep_until_ns(next_ns);
		}
		wss_give_back_until_done(controlled);
	}
	controlled->over = true;
	controller_lock(controlled->controller);
	controlled->controller->busy -= !controlled->shrunk;
	controller_unlock(controlled->controller);
	wss_controlled_thread_ended(controlled->controller);
}
