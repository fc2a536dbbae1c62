/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/clock.h"
#include "base/log.h"
#include "control/tender.h"
#include "control/watchdog.h"
#include "store/journal.h"

int wss_step_journal(struct tender *tender, struct wss_history *history, uint64_t bytes,
		     const char *reason, struct wss_error *err)
{
	struct wss_journal_step step = {
		.uuid = tender->uuid,
		.name = tender->target->guest->config.name,
		.time = wss_clock_wall_seconds(),
		.original_bytes = tender->balloon.limits.original_bytes,
		.from_bytes = tender->actual_bytes,
		.to_bytes = bytes,
		.reason = reason,
		.uri = wss_hypervisor_uri(tender->tending->targets.hypervisor),
	};

	return tender->shrunk ? wss_journal_write(history, &step, err)
			      : wss_journal_begin(history, &step, err);
}

/*
 * Writes a decision to the journal before it is carried out. WSS_ERR_BUSY if it must be put
 * off.
 */
static int journal_decision(struct tender *tender, const struct wss_balloon_decision *decision,
			    struct wss_error *err)
{
	struct wss_shared_history *shared = &tender->tending->journal;
	int r;

	if (wss_shared_history_lock(shared, err) < 0)
		return -1;
	r = wss_step_journal(tender, shared->history, decision->target_bytes, decision->reason,
			     err);
	wss_shared_history_unlock(shared);
	return r;
}

void wss_step_note_reached(struct tender *tender)
{
	const struct wss_balloon_decision reached = {
		.target_bytes = tender->actual_bytes, .reason = "it has reached its target"};
	struct wss_error err = WSS_ERROR_INIT;

	/* Without this record a restore takes all sizes within the last step for ours. */
	if (journal_decision(tender, &reached, &err) < 0)
		wss_debug("%s: %s", tender->name, err.text);
}

static int check_unfinished(struct tender *tender, struct wss_error *err)
{
	struct wss_shared_history *shared = &tender->tending->journal;
	int r;

	if (wss_shared_history_lock(shared, err) < 0)
		return -1;
	r = wss_journal_check(shared->history, tender->uuid, err);
	wss_shared_history_unlock(shared);
	return r;
}

/*
 * Called at every look, because a guest may stay at its floor for days without taking a step
 * that would notice.
 */
int wss_step_check_safeguards(struct tender *tender, struct wss_error *err)
{
	struct tending *tending = tender->tending;

	if (!wss_history_is_in_place(tending->history.history))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the history was removed or replaced");
	return wss_watchdog_charge(tending->watchdog, tender->watched ? NULL : tender->uuid,
				   err);
}

/* Takes a step, in the order that tender.h describes. */
static int step_take(struct tender *tender, const struct wss_balloon_decision *decision,
		     struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;
	const struct wss_control_move move = {
		guest->config.name,
		decision->action == WSS_BALLOON_GROW ? WSS_CONTROL_GROWS : WSS_CONTROL_SHRINKS,
		decision->target_bytes, decision->reason, tender->actual_bytes};

	if ((!tender->shrunk && check_unfinished(tender, err) < 0) ||
	    wss_step_check_safeguards(tender, err) < 0)
		return -1;
	/*
	 * Set even if the step is put off: the watchdog remembers each UUID that it is sent.
	 */
	tender->watched = true;
	if (journal_decision(tender, decision, err) < 0)
		return -1;
	if (!tender->shrunk) {
		tender->maximum_bytes = tender->mover_maximum_bytes = guest->config.maximum_bytes;
		wss_mover_init(&tender->mover, tender->actual_bytes, tender->actual_bytes);
	}
	tender->shrunk = true;
	wss_mover_set(&tender->mover, tender->actual_bytes, decision->target_bytes);
	wss_tending_moved(tender->tending, &move);
	return guest->ops->set_balloon(guest, decision->target_bytes, err);
}

/* Gives all memory back for good. */
static int end_with(struct tender *tender, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;
	struct wss_error why = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;

	wss_error_set(&why, WSS_ERR_FAILED, "%s: left alone", reason);
	wss_tender_leave(tender, &why);
	/* An apparent action of the guest may really be memory that was plugged in. */
	guest->ops->refresh(guest, &ignored);
	return wss_give_back(tender, reason, err);
}

bool wss_step_act(struct tender *tender, const struct wss_balloon_decision *decision)
{
	struct wss_error err = WSS_ERROR_INIT;
	int r = 0;

	switch (decision->action) {
	case WSS_BALLOON_HOLD:
		wss_debug("%s: %s", tender->name, decision->reason);
		break;
	case WSS_BALLOON_CHECK:
		wss_debug("%s: put off: %s", tender->name, decision->reason);
		return false;
	case WSS_BALLOON_GROW:
	case WSS_BALLOON_SHRINK:
		r = step_take(tender, decision, &err);
		if (r < 0 && err.code == WSS_ERR_BUSY) {
			wss_debug("%s: put off: %s", tender->name, err.text);
			return false;
		}
		break;
	case WSS_BALLOON_RETURN:
		r = wss_give_back(tender, decision->reason, &err);
		break;
	case WSS_BALLOON_RESTORE:
		r = end_with(tender, decision->reason, &err);
		break;
	case WSS_BALLOON_DONE:
		r = wss_give_back(tender, decision->reason, &err);
		if (r == 0) {
			tender->end = decision->reason;
			wss_tending_squeezed(tender->tending, tender->target,
					     tender->squeeze);
		}
		break;
	}
	if (r < 0 && wss_tender_memory_is_short(tender, &err))
		return false;
	if (r < 0)
		wss_tender_leave(tender, &err);
	else
		tender->short_looks = 0;
	return true;
}
