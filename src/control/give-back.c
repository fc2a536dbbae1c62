/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/give-back.h"

#include "base/clock.h"
#include "base/log.h"
#include "control/tender.h"
#include "store/journal.h"

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
static uint64_t due_bytes(const struct tender *tender)
{
	const struct wss_guest *guest = tender->target->guest;
	uint64_t original = tender->balloon.limits.original_bytes;

	if (guest->config.maximum_bytes > tender->maximum_bytes)
		original += guest->config.maximum_bytes - tender->maximum_bytes;
	return wss_give_back_due_bytes(guest, original, tender->actual_bytes);
}

/* Closes the journal of a guest that has its memory back. */
static int close_journal(struct tender *tender, uint64_t bytes, const char *reason,
			 struct wss_error *err)
{
	struct wss_shared_history *shared = &tender->tending->history;
	struct wss_error ignored = WSS_ERROR_INIT;
	int r;

	wss_shared_history_lock(shared, NULL);
	wss_step_journal(tender, shared->history, bytes, reason, &ignored);
	r = wss_journal_done(shared->history, tender->uuid, err);
	wss_shared_history_unlock(shared);
	/*
	 * Retried at the next look, because an open journal entry would lead to another
	 * restore.
	 */
	tender->shrunk = r < 0 && err->code == WSS_ERR_NO_MEMORY;
	return r;
}

int wss_give_back(struct tender *tender, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;
	uint64_t bytes = due_bytes(tender);
	const struct wss_control_move move = {guest->config.name, WSS_CONTROL_GAVE_BACK, bytes,
					      reason};

	if (!tender->shrunk)
		return 0;
	/*
	 * The balloon comes before the journal: if the process dies in between, the journal
	 * lists too much, not too little.
	 */
	if (guest->ops->set_balloon(guest, bytes, err) < 0)
		return -1;
	wss_tending_moved(tender->tending, &move);
	return close_journal(tender, bytes, reason, err);
}

bool wss_give_back_has_ended(struct tender *tender)
{
	struct wss_guest *guest = tender->target->guest;
	struct wss_error err = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;

	if (guest->ops->refresh(guest, &err) < 0 ? err.code != WSS_ERR_GONE
						 : guest->state != WSS_GUEST_SHUTOFF)
		return false;
	if (tender->shrunk && !guest->kept)
		close_journal(tender, tender->balloon.limits.original_bytes,
			      "the guest has ended", &ignored);
	return true;
}

void wss_give_back_insist(struct tender *tender)
{
	struct tending *tending = tender->tending;
	const char *reason = tending_is_ending(tending) ? "the controller ends" : tender->end;

	while (tender->shrunk) {
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_give_back(tender, reason, &err) == 0)
			break;
		tender->looked_ns = wss_clock_now_ns();
		tender->away = wss_give_back_has_ended(tender);
		if (!tender->shrunk || err.code == WSS_ERR_CONNECT ||
		    tending_is_ending(tending)) {
			if (!tender->away)
				wss_tender_trouble(tender, &err);
			break;
		}
		wss_debug("%s: %s", tender->name, err.text);
		wss_clock_sleep_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
}
