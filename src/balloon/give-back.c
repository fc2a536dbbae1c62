/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "balloon/give-back.h"

#include "balloon/controlled.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

/* Number of looks, a second apart, that a size which keeps changing is watched for. */
#define WATCH_LOOKS 6
/* Number of looks with the same size that show that it stays. */
#define CALM_LOOKS 3

bool wss_give_back_is_calm(struct wss_give_back_watch *watch, const struct wss_balloon_view *view,
			   const struct wss_reports *reports)
{
	uint64_t bytes = view->actual_bytes.value;

	if (!watch->looks || bytes != watch->bytes) {
		watch->bytes = bytes;
		watch->update_s = reports->update_s;
		watch->calm = 1;
	} else if (!view->usable_bytes.known || reports->update_s != watch->update_s) {
		watch->calm++;
	}
	return ++watch->looks >= WATCH_LOOKS || watch->calm >= CALM_LOOKS;
}

uint64_t wss_give_back_due_bytes(const struct wss_guest *guest, uint64_t original_bytes,
				 uint64_t now_bytes)
{
	uint64_t bytes = original_bytes > now_bytes ? original_bytes : now_bytes;

	return bytes < guest->config.maximum_bytes ? bytes : guest->config.maximum_bytes;
}

/*
 * Returns the size to restore: the guest's original size plus memory plugged in since, less
 * the part of that held by its balloon.
 */
static uint64_t due_bytes(const struct controlled *controlled)
{
	const struct wss_guest *guest = controlled->target->guest;
	uint64_t original = controlled->balloon.limits.original_bytes;

	if (guest->config.maximum_bytes > controlled->maximum_bytes)
		original += guest->config.maximum_bytes - controlled->maximum_bytes;
	return wss_give_back_due_bytes(guest, original, controlled->actual_bytes);
}

/* Closes the journal of a guest that has its memory back. Its errors begin with wss_balloon_left_open. */
static int close_journal(struct controlled *controlled, uint64_t bytes, const char *reason,
			 struct wss_error *err)
{
	struct wss_shared_history *shared = &controlled->controller->history;
	const struct wss_journal_step step = wss_step_of(controlled, bytes, reason);
	int r;

	wss_shared_history_lock(shared, NULL);
	wss_journal_write(shared->history, &step, NULL);
	r = wss_journal_done(shared->history, controlled->uuid, err);
	wss_shared_history_unlock(shared);
	/*
	 * Retried at the next look, because an open journal entry would lead to another
	 * restore.
	 */
	controlled->shrunk = r < 0 && err->code == WSS_ERR_NO_MEMORY;
	return r < 0 ? wss_error_prefix(err, "%s", wss_balloon_left_open) : 0;
}

int wss_give_back(struct controlled *controlled, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;
	uint64_t bytes = due_bytes(controlled);
	const struct wss_control_move move = {guest->config.name, WSS_CONTROL_GAVE_BACK, bytes,
					      reason, 0};

	if (!controlled->shrunk)
		return 0;
	wss_mover_set(&controlled->mover, controlled->actual_bytes, bytes);
	/*
	 * The balloon comes before the journal: if the process dies in between, the journal
	 * lists too much, not too little.
	 */
	if (guest->ops->set_balloon(guest, bytes, err) < 0)
		return -1;
	wss_controller_moved(controlled->controller, &move);
	return close_journal(controlled, bytes, reason, err);
}

void wss_give_back_ask_size(struct wss_guest *guest, struct wss_balloon_view *view)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t bytes;

	if (!guest->ops->balloon_size)
		return;
	if (guest->ops->balloon_size(guest, &bytes, &err) == 0)
		view->actual_bytes = wss_amount_of(bytes);
	else
		wss_debug("%s: %s", guest->config.name, err.text);
}

enum wss_moved_by wss_give_back_moved_by(struct controlled *controlled,
					 struct wss_balloon_view *view)
{
	struct wss_guest *guest = controlled->target->guest;
	bool autodeflate = guest->config.balloon_autodeflate;
	const struct wss_mover before = controlled->mover;
	struct wss_error ignored = WSS_ERROR_INIT;
	enum wss_moved_by by = wss_mover_judge(&controlled->mover, view, autodeflate);

	if (by == WSS_MOVED_BY_US)
		return by;
	wss_give_back_ask_size(guest, view);
	controlled->actual_bytes = view->actual_bytes.value;
	controlled->mover = before;
	by = wss_mover_judge(&controlled->mover, view, autodeflate);
	if (by == WSS_MOVED_BY_US || guest->ops->refresh(guest, &ignored) < 0 ||
	    guest->config.maximum_bytes == controlled->mover_maximum_bytes)
		return by;
	/* Memory was plugged or unplugged, which moves the size as well. */
	controlled->mover = before;
	wss_mover_shift(&controlled->mover,
			(int64_t)(guest->config.maximum_bytes - controlled->mover_maximum_bytes));
	controlled->mover_maximum_bytes = guest->config.maximum_bytes;
	return wss_mover_judge(&controlled->mover, view, autodeflate);
}

bool wss_give_back_is_empty(const struct wss_guest *guest, uint64_t actual_bytes)
{
	return actual_bytes + WSS_MIB >= guest->config.maximum_bytes;
}

int wss_give_back_yield(struct controlled *controlled, const struct wss_balloon_view *view,
			struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;
	struct wss_error why = WSS_ERROR_INIT;
	char size[16];

	wss_size_format(controlled->actual_bytes, size, sizeof(size));
	wss_error_set(&why, WSS_ERR_FAILED, "somebody else set its balloon (now %s): left alone",
		      size);
	if (controlled->end || controller_is_ending(controlled->controller))
		wss_controller_progress(controlled->controller, guest->config.name, why.text);
	else
		wss_controlled_leave(controlled, &why);
	/* It must not go on to our size later, when nobody looks after it. */
	if ((wss_mover_is_stopped(&controlled->mover, view) ||
	     wss_give_back_is_empty(guest, controlled->actual_bytes)) &&
	    guest->ops->set_balloon(guest, controlled->actual_bytes, err) < 0)
		return -1;
	return close_journal(controlled, controlled->actual_bytes, "somebody else set its balloon",
			     err);
}

/* Gives everything back, unless somebody else has set the balloon since the last look. */
static int give_back_or_yield(struct controlled *controlled, const char *reason,
			      struct wss_give_back_watch *watch, bool *ret_moving,
			      struct wss_error *err)
{
	struct wss_guest *guest = controlled->target->guest;
	struct wss_look look = {.limits = {0}};
	enum wss_moved_by by = WSS_MOVED_BY_US;

	*ret_moving = false;
	if (wss_look_statistics(guest, &controlled->reports, &look, err) == 0 &&
	    look.view.actual_bytes.known) {
		wss_give_back_ask_size(guest, &look.view);
		controlled->actual_bytes = look.view.actual_bytes.value;
		by = wss_give_back_moved_by(controlled, &look.view);
		*ret_moving = by == WSS_MOVED_BY_UNKNOWN ||
			      (by == WSS_MOVED_BY_US &&
			       !wss_give_back_is_calm(watch, &look.view, &controlled->reports));
	}
	wss_error_clear(err);
	if (*ret_moving)
		return wss_error_set(err, WSS_ERR_BUSY, "its balloon may be moving");
	return by == WSS_MOVED_BY_OTHERS ? wss_give_back_yield(controlled, &look.view, err)
					 : wss_give_back(controlled, reason, err);
}

bool wss_give_back_has_ended(struct controlled *controlled)
{
	struct wss_guest *guest = controlled->target->guest;
	struct wss_error err = WSS_ERROR_INIT, why = WSS_ERROR_INIT;
	bool unknown = guest->ops->refresh(guest, &err) < 0;

	if (unknown ? err.code != WSS_ERR_GONE : guest->state != WSS_GUEST_SHUTOFF)
		return false;
	if (controlled->shrunk && !guest->kept && (!unknown || guest->ended) &&
	    close_journal(controlled, controlled->balloon.limits.original_bytes,
			  "the guest has ended", &why) < 0)
		wss_controlled_trouble(controlled, &why);
	return true;
}

void wss_give_back_until_done(struct controlled *controlled)
{
	struct controller *controller = controlled->controller;
	const char *reason = controller_is_ending(controller) ? "stopped" : controlled->end;
	struct wss_give_back_watch watch = {0};

	while (controlled->shrunk) {
		struct wss_error err = WSS_ERROR_INIT;
		bool moving;

		if (give_back_or_yield(controlled, reason, &watch, &moving, &err) == 0)
			break;
		controlled->looked_ns = wss_clock_now_ns();
		controlled->away = wss_give_back_has_ended(controlled);
		/* At the end of the controller, its main thread limits this wait. */
		if (!controlled->shrunk || err.code == WSS_ERR_CONNECT ||
		    (controller_is_ending(controller) && !moving)) {
			if (!controlled->away)
				wss_controlled_trouble(controlled, &err);
			break;
		}
		wss_debug("%s: %s", controlled->name, err.text);
		wss_clock_rest_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
}
