/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/controlled.h"
#include "balloon/give-back.h"
#include "balloon/journal.h"
#include "balloon/watchdog.h"
#include "base/clock.h"
#include "base/log.h"

/* How long a look waits for the disk of the journal, beside the time for others who have it locked. */
#define DISK_PATIENCE_NS (2 * WSS_NS_PER_S)

struct wss_journal_step wss_step_of(const struct controlled *controlled, uint64_t bytes,
				    const char *reason)
{
	return (struct wss_journal_step){
		.uuid = controlled->uuid,
		.name = controlled->target->guest->config.name,
		.time = wss_clock_wall_seconds(),
		.original_bytes = controlled->balloon.limits.original_bytes,
		.from_bytes = controlled->actual_bytes,
		.to_bytes = bytes,
		.reason = reason,
		.uri = wss_hypervisor_uri(controlled->controller->targets.hypervisor),
		.maximum_bytes = controlled->target->guest->config.maximum_bytes,
	};
}

/* In the background. */
static void journal_run(void *opaque)
{
	struct controlled *controlled = opaque;
	struct wss_shared_history *shared = &controlled->controller->journal;

	if (wss_shared_history_lock(shared, &controlled->step_error) < 0)
		return;
	if (controlled->is_first_step)
		wss_journal_begin(shared->history, &controlled->step, &controlled->step_error);
	else
		wss_journal_write(shared->history, &controlled->step, &controlled->step_error);
	wss_shared_history_unlock(shared);
}

static bool is_journaling(struct controlled *controlled)
{
	return controlled->background && !wss_background_is_idle(controlled->background);
}

/*
 * Writes a decision to the journal before it is carried out. WSS_ERR_BUSY if it must be put
 * off; then it may be written later, if is_journaling().
 */
static int journal_decision(struct controlled *controlled,
			    const struct wss_balloon_decision *decision, struct wss_error *err)
{
	if (is_journaling(controlled))
		return wss_error_set(err, WSS_ERR_BUSY, "the history's disk does not answer");
	if (!controlled->background && !(controlled->background = wss_background_new()))
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	controlled->step = wss_step_of(controlled, decision->target_bytes, decision->reason);
	controlled->is_first_step = !controlled->shrunk;
	wss_error_clear(&controlled->step_error);
	if (wss_background_start(controlled->background, journal_run, controlled, err) < 0)
		return -1;
	if (!wss_background_wait(controlled->background, DISK_PATIENCE_NS))
		return wss_error_set(err, WSS_ERR_BUSY, "the history's disk does not answer");
	if (controlled->step_error.code)
		*err = controlled->step_error;
	return controlled->step_error.code ? -1 : 0;
}

void wss_step_note_reached(struct controlled *controlled)
{
	const struct wss_balloon_decision reached = {.target_bytes = controlled->actual_bytes,
						     .reason = "it has reached its target"};
	struct wss_error err = WSS_ERROR_INIT;

	/* Without this record a restore takes all sizes within the last step for ours. */
	if (journal_decision(controlled, &reached, &err) < 0)
		wss_debug("%s: %s", controlled->name, err.text);
}

static int check_unfinished(struct controlled *controlled, struct wss_error *err)
{
	struct wss_shared_history *shared = &controlled->controller->journal;
	int r;

	if (wss_shared_history_lock(shared, err) < 0)
		return -1;
	r = wss_journal_check(shared->history, controlled->uuid, err);
	wss_shared_history_unlock(shared);
	return r;
}

/*
 * Called at every look, because a guest may stay at its floor for days without taking a step
 * that would notice.
 */
int wss_step_check_safeguards(struct controlled *controlled, struct wss_error *err)
{
	struct controller *controller = controlled->controller;

	if (!wss_controller_history_in_place(controller))
		return wss_error_set(err, WSS_ERR_FAILED, "the history was removed or replaced");
	return wss_watchdog_guard(controller->watchdog,
				  controlled->watched ? NULL : controlled->uuid, err);
}

/* The journal has its first step, or will have. */
static void begin_shrunk(struct controlled *controlled)
{
	if (controlled->shrunk)
		return;
	controlled->maximum_bytes = controlled->mover_maximum_bytes =
		controlled->target->guest->config.maximum_bytes;
	wss_mover_init(&controlled->mover, controlled->actual_bytes, controlled->actual_bytes);
	controlled->shrunk = true;
}

/*
 * Whether to leave the balloon as it is now: somebody else has set it since the look, as far as that shows
 * already, or the controller ends. The journal may have been waited for meanwhile.
 */
static bool step_is_too_late(const struct controlled *controlled)
{
	struct wss_guest *guest = controlled->target->guest;
	struct wss_balloon_view view = {.now_s = (uint64_t)wss_clock_now_seconds()};
	struct wss_mover mover = controlled->mover;
	enum wss_moved_by by;

	if (controller_is_ending(controlled->controller))
		return true;
	wss_give_back_ask_size(guest, &view);
	if (!view.actual_bytes.known)
		return false;
	by = wss_mover_judge(&mover, &view, guest->config.balloon_autodeflate);
	return by != WSS_MOVED_BY_US && by != WSS_MOVED_BY_GUEST;
}

/* Takes a step, in the order that controlled.h describes. */
static int step_take(struct controlled *controlled, const struct wss_balloon_decision *decision,
		     struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;
	const struct wss_control_move move = {
		guest->config.name,
		decision->action == WSS_BALLOON_GROW ? WSS_CONTROL_GROWS : WSS_CONTROL_SHRINKS,
		decision->target_bytes, decision->reason, controlled->actual_bytes};

	if ((!controlled->shrunk && check_unfinished(controlled, err) < 0) ||
	    wss_step_check_safeguards(controlled, err) < 0)
		return -1;
	/*
	 * Set even if the step is put off: the watchdog remembers each UUID that it is sent.
	 */
	controlled->watched = true;
	if (journal_decision(controlled, decision, err) < 0) {
		if (is_journaling(controlled))
			begin_shrunk(controlled);
		return -1;
	}
	begin_shrunk(controlled);
	/* Growth is what the guest needs, whoever has set its size. */
	if (decision->action == WSS_BALLOON_SHRINK && step_is_too_late(controlled))
		return wss_error_set(err, WSS_ERR_BUSY, "it is too late for this step");
	wss_mover_set(&controlled->mover, controlled->actual_bytes, decision->target_bytes);
	wss_controller_moved(controlled->controller, &move);
	return guest->ops->set_balloon(guest, decision->target_bytes, err);
}

/* Gives all memory back for good. */
static int end_with(struct controlled *controlled, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;
	struct wss_error why = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;

	wss_error_set(&why, WSS_ERR_FAILED, "%s: left alone", reason);
	wss_controlled_leave(controlled, &why);
	/* An apparent action of the guest may really be memory that was plugged in. */
	guest->ops->refresh(guest, &ignored);
	return wss_give_back(controlled, reason, err);
}

bool wss_step_act(struct controlled *controlled, const struct wss_balloon_decision *decision)
{
	struct wss_error err = WSS_ERROR_INIT;
	int r = 0;

	switch (decision->action) {
	case WSS_BALLOON_HOLD:
		wss_debug("%s: %s", controlled->name, decision->reason);
		break;
	case WSS_BALLOON_CHECK:
		wss_debug("%s: put off: %s", controlled->name, decision->reason);
		return false;
	case WSS_BALLOON_GROW:
	case WSS_BALLOON_SHRINK:
		r = step_take(controlled, decision, &err);
		if (r < 0 && err.code == WSS_ERR_BUSY) {
			wss_debug("%s: put off: %s", controlled->name, err.text);
			return false;
		}
		break;
	case WSS_BALLOON_RETURN:
		r = wss_give_back(controlled, decision->reason, &err);
		break;
	case WSS_BALLOON_RESTORE:
		r = end_with(controlled, decision->reason, &err);
		break;
	case WSS_BALLOON_DONE:
		r = wss_give_back(controlled, decision->reason, &err);
		if (r == 0) {
			controlled->end = decision->reason;
			wss_controller_squeezed(controlled->controller, controlled->target,
						controlled->squeeze);
		}
		break;
	}
	if (r < 0 && wss_controlled_memory_is_short(controlled, &err))
		return false;
	if (r < 0)
		wss_controlled_leave(controlled, &err);
	else
		controlled->short_looks = 0;
	return true;
}
