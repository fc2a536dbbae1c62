/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "control/tender-private.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "store/journal.h"

/* Of a step without any progress. */
#define STEP_TIMEOUT_S 30
/*
 * A host that is short of memory is where the balloon is needed most: the guest is not left alone
 * until so many looks in a row have failed for lack of memory.
 */
#define SHORT_LOOKS_MAX 10
/* While no step could be next, at the most so often, however short the pause. */
#define REFRESH_NS (5 * WSS_NS_PER_S)

static void say(const struct tender *tender, const char *what, uint64_t bytes, const char *why)
{
	char size[16];

	wss_size_format(bytes, size, sizeof(size));
	wss_log(WSS_LOG_INFO, "%s: %s %s: %s", tender->target->guest->config.name, what, size, why);
}

static void bad(struct tender *tender, const struct wss_error *why)
{
	const struct wss_guest *guest = tender->target->guest;

	tending_lock(tender->tending);
	wss_tally_bad(&tender->tending->tally, guest ? guest->config.name : tender->name, why);
	tending_unlock(tender->tending);
}

static int write_journal(struct tender *tender, struct wss_history *history, uint64_t to,
			 const char *reason, struct wss_error *err)
{
	struct wss_journal_step step = {
		.uuid = tender->uuid,
		.name = tender->target->guest->config.name,
		.time = wss_clock_wall_seconds(),
		.original_bytes = tender->balloon.limits.original_bytes,
		.from_bytes = tender->actual_bytes,
		.to_bytes = to,
		.reason = reason,
		.uri = wss_hypervisor_uri(tender->tending->targets.hypervisor),
	};

	return tender->shrunk ? wss_journal_write(history, &step, err)
			      : wss_journal_begin(history, &step, err);
}

/* Before it is done. WSS_ERR_BUSY where it must be put off. */
static int journal_step(struct tender *tender, const struct wss_balloon_decision *decision,
			struct wss_error *err)
{
	struct tending *tending = tender->tending;
	int r;

	if (!tending_lock_steps(tending))
		return wss_error_set(err, WSS_ERR_BUSY, "the history is busy");
	r = write_journal(tender, tending->steps, decision->target_bytes, decision->reason, err);
	tending_unlock_steps(tending);
	return r;
}

/* Steps of an earlier controller that was killed, or of one that runs beside this one. */
static int check_unfinished(struct tender *tender, struct wss_error *err)
{
	struct tending *tending = tender->tending;
	int r;

	if (!tending_lock_steps(tending))
		return wss_error_set(err, WSS_ERR_BUSY, "the history is busy");
	r = wss_journal_check(tending->steps, tender->uuid, err);
	tending_unlock_steps(tending);
	return r;
}

/* The guest has its memory. */
static int finish_journal(struct tender *tender, uint64_t bytes, const char *reason,
			  struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct wss_error ignored = WSS_ERROR_INIT;
	int r;

	tending_lock_history(tending);
	write_journal(tender, tending->history, bytes, reason, &ignored);
	r = wss_journal_done(tending->history, tender->uuid, err);
	tending_unlock_history(tending);
	/* Tried again at the next look: an open journal would have somebody restore the guest. */
	tender->shrunk = r < 0 && err->code == WSS_ERR_NO_MEMORY;
	return r;
}

/* What it had, and what was plugged in since: its balloon keeps of that what it had taken. */
static uint64_t due_bytes(const struct tender *tender)
{
	const struct wss_guest *guest = tender->target->guest;
	uint64_t original = tender->balloon.limits.original_bytes;

	if (guest->config.maximum_bytes > tender->maximum_bytes)
		original += guest->config.maximum_bytes - tender->maximum_bytes;
	return wss_balloon_due(guest, original, tender->actual_bytes);
}

/* Gives back first and writes afterwards: the guest goes before the journal. */
static int give_back(struct tender *tender, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;
	uint64_t bytes = due_bytes(tender);

	if (!tender->shrunk)
		return 0;
	if (guest->ops->set_balloon(guest, bytes, err) < 0)
		return -1;
	say(tender, "gives back to", bytes, reason);
	return finish_journal(tender, bytes, reason, err);
}

/*
 * What gives the guest its memory back when we cannot: a watchdog, and a journal where that looks
 * for one. At its floor a guest may stay for days, without a step that would miss them.
 */
static int check_safeguards(struct tender *tender, struct wss_error *err)
{
	struct tending *tending = tender->tending;

	if (!wss_history_is_in_place(tending->history))
		return wss_error_set(err, WSS_ERR_FAILED, "its history was removed or replaced");
	return wss_balloon_watch(tending->watchdog, tender->watched ? NULL : tender->uuid, err);
}

static int set_size(struct tender *tender, const struct wss_balloon_decision *decision,
		    struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;

	if ((!tender->shrunk && check_unfinished(tender, err) < 0) ||
	    check_safeguards(tender, err) < 0)
		return -1;
	/* Also where the step is put off: one word of it is enough. */
	tender->watched = true;
	if (journal_step(tender, decision, err) < 0)
		return -1;
	if (!tender->shrunk)
		tender->maximum_bytes = guest->config.maximum_bytes;
	tender->shrunk = true;
	say(tender, decision->action == WSS_BALLOON_GROW ? "grows to" : "shrinks to",
	    decision->target_bytes, decision->reason);
	return guest->ops->set_balloon(guest, decision->target_bytes, err);
}

/* The guest is left alone from now on, once it has its memory. */
static void leave(struct tender *tender, const struct wss_error *why)
{
	if (!tender->end)
		bad(tender, why);
	tender->end = "it is left alone";
}

/* Is this but a lack of memory, which may be over by the next look? */
static bool memory_is_short(struct tender *tender, const struct wss_error *err)
{
	if (err->code != WSS_ERR_NO_MEMORY || tender->short_looks >= SHORT_LOOKS_MAX)
		return false;
	tender->short_looks++;
	wss_debug("%s: put off: %s", tender->name, err->text);
	return true;
}

/* False where it has to be put off. */
static bool act(struct tender *tender, const struct wss_balloon_decision *decision)
{
	struct wss_error err = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;
	int r = 0;

	switch (decision->action) {
	case WSS_BALLOON_HOLD:
		wss_debug("%s: %s", tender->name, decision->reason);
		break;
	case WSS_BALLOON_GROW:
	case WSS_BALLOON_SHRINK:
		r = set_size(tender, decision, &err);
		if (r < 0 && err.code == WSS_ERR_BUSY) {
			wss_debug("%s: put off: %s", tender->name, err.text);
			return false;
		}
		break;
	case WSS_BALLOON_RETURN:
		r = give_back(tender, decision->reason, &err);
		break;
	case WSS_BALLOON_RESTORE:
		wss_error_set(&err, WSS_ERR_FAILED, "%s: left alone", decision->reason);
		leave(tender, &err);
		wss_error_clear(&err);
		/* What looks like its own doing may be memory that was plugged in. */
		tender->target->guest->ops->refresh(tender->target->guest, &ignored);
		r = give_back(tender, decision->reason, &err);
		break;
	}
	if (r < 0 && memory_is_short(tender, &err))
		return false;
	if (r < 0)
		leave(tender, &err);
	else
		tender->short_looks = 0;
	return true;
}

static int refresh(struct tender *tender, struct balloon_look *ret_look, struct wss_error *err)
{
	struct wss_guest *guest = tender->target->guest;

	if (guest->ops->refresh(guest, err) < 0 ||
	    wss_balloon_look(tender->target, &tender->reports, ret_look, err) < 0)
		return -1;
	tender->refreshed_ns = wss_clock_now_ns();
	/* Not while a job is under way, or the guest is paused: it could not answer. */
	tender->may_step = ret_look->facts.running && !ret_look->facts.job;
	return 0;
}

/* Everything anew costs libvirt four calls: each pause, and when a step could be next. */
static bool refresh_is_due(const struct tender *tender)
{
	uint64_t pause_ns = tender->tending->options.pause_ns;
	uint64_t least_ns = pause_ns > REFRESH_NS ? pause_ns : REFRESH_NS;
	uint64_t now_ns = wss_clock_now_ns();
	uint64_t rested_ns = tender->balloon.rest_until_s * WSS_NS_PER_S;

	return tender->balloon.ready ||
	       now_ns - tender->refreshed_ns >= least_ns ||
	       (tender->refreshed_ns < rested_ns &&
		wss_balloon_rested(&tender->balloon, now_ns / WSS_NS_PER_S));
}

/*
 * A guest that does not run any more has nothing that is to be given back; unless it goes on one
 * day where it was: then that is the watchdog's, or that of whoever reads the journal.
 */
static bool has_ended(struct tender *tender)
{
	struct wss_guest *guest = tender->target->guest;
	struct wss_error err = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;

	if (guest->ops->refresh(guest, &err) < 0 ? err.code != WSS_ERR_GONE
						 : guest->state != WSS_GUEST_SHUTOFF)
		return false;
	if (tender->shrunk && !guest->kept)
		finish_journal(tender, tender->balloon.limits.original_bytes, "the guest has ended",
			       &ignored);
	return true;
}

static void join_record(struct tender *tender, struct balloon_look *look)
{
	tending_lock(tender->tending);
	wss_balloon_join(&tender->record, look);
	tender->target->policy = tender->policy;
	look->facts.opted_out = look->facts.opted_out || tender->opted_out;
	tending_unlock(tender->tending);
	look->limits.period_s = tender->tending->options.period_ns / WSS_NS_PER_S + 1;
}

/* Where the thread that measures lets it: until set_moving() it opens no window. */
static bool may_move(struct tender *tender)
{
	bool may;

	tending_lock(tender->tending);
	may = !tender->measuring;
	/* A step that is under way while a window waits for it still is. */
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

static void decide(struct tender *tender, struct balloon_look *look, bool fresh)
{
	struct wss_balloon_limits *limits = &tender->balloon.limits;
	struct wss_balloon_decision decision;
	struct wss_balloon before;
	bool known = look->facts.confidence != WSS_CONFIDENCE_NONE;
	/* A guest that is paused cannot say anything. */
	const char *objection =
		fresh && look->facts.running ? wss_balloon_objection(&look->facts) : NULL;

	if (look->view.actual_bytes.known)
		tender->actual_bytes = look->view.actual_bytes.value;
	/* The floor moves with the policy and the history: not with one of too few windows. */
	limits->minimum_bytes = look->limits.minimum_bytes;
	if (known)
		limits->needed_bytes = look->limits.needed_bytes;
	limits->headroom_percent = look->limits.headroom_percent;
	look->view.may_step = fresh && tender->may_step && known && may_move(tender);
	before = tender->balloon;
	decision = wss_balloon_next(&tender->balloon, &look->view);
	if (objection)
		decision = (struct wss_balloon_decision){ WSS_BALLOON_RESTORE, 0, objection };
	if (!act(tender, &decision)) {
		tender->balloon = before;
		tender->balloon.rest_until_s = look->view.now_s + limits->pause_s;
	}
	set_moving(tender, tender->balloon.pending);
}

static void look_after(struct tender *tender)
{
	bool fresh = refresh_is_due(tender);
	struct wss_error err = WSS_ERROR_INIT;
	struct balloon_look look = { .limits = { 0 } };
	int r = fresh ? refresh(tender, &look, &err)
		      : wss_balloon_look_statistics(tender->target->guest, &tender->reports, &look,
						    &err);

	tender->looked_ns = wss_clock_now_ns();
	if (r < 0 && memory_is_short(tender, &err))
		return;
	if (r < 0 || tender->target->guest->state == WSS_GUEST_SHUTOFF) {
		if (has_ended(tender))
			wss_error_set(&err, WSS_ERR_GONE, "it does not run any more%s",
				      tender->shrunk ? ", and is shrunk where it goes on" : "");
		leave(tender, &err);
		return;
	}
	if (tender->shrunk && check_safeguards(tender, &err) < 0) {
		leave(tender, &err);
		return;
	}
	wss_balloon_look_disks(tender->target->guest, &tender->reports, &look);
	join_record(tender, &look);
	decide(tender, &look, fresh);
}

/*
 * Until it works, or the process ends: what is then still taken is the watchdog's. A guest that was
 * saved, or has moved, is waited for as well, while there are others to look after.
 */
static void insist(struct tender *tender)
{
	const char *reason = tending_is_ending(tender->tending) ? "the controller ends" : tender->end;

	while (tender->shrunk) {
		struct wss_error err = WSS_ERROR_INIT;

		if (give_back(tender, reason, &err) == 0)
			break;
		tender->looked_ns = wss_clock_now_ns();
		tender->away = has_ended(tender);
		if (!tender->shrunk || err.code == WSS_ERR_CONNECT ||
		    tending_is_ending(tender->tending)) {
			if (!tender->away)
				bad(tender, &err);
			break;
		}
		wss_debug("%s: %s", tender->name, err.text);
		wss_clock_sleep_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
}

/* Two names may be of one guest. */
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

static int check_refusal(struct tender *tender, struct wss_error *err)
{
	struct balloon_look look;
	const char *refusal;

	if (refresh(tender, &look, err) < 0 ||
	    wss_tender_read_record(tender, &tender->target->policy, NULL, err) < 0)
		return -1;
	wss_balloon_join(&tender->record, &look);
	refusal = wss_balloon_refusal(&look.facts);
	if (!refusal && (!look.view.actual_bytes.known || !tender->target->guest->ops->set_balloon))
		refusal = "the size of its balloon is not known";
	if (refusal)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "refused: %s", refusal);
	look.limits.original_bytes = look.view.actual_bytes.value;
	look.limits.period_s = tender->tending->options.period_ns / WSS_NS_PER_S + 1;
	look.limits.pause_s = tender->tending->options.pause_ns / WSS_NS_PER_S;
	look.limits.timeout_s = STEP_TIMEOUT_S;
	tender->actual_bytes = look.limits.original_bytes;
	wss_balloon_init(&tender->balloon, &look.limits);
	return 0;
}

static void do_not_miss(struct tender *tender)
{
	tending_lock(tender->tending);
	tender->tending->missing++;
	tending_unlock(tender->tending);
}

/* 1 once the guest is in our charge, 0 where it need not be, -1 where it cannot. */
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
	return check_unfinished(tender, err) < 0 || check_refusal(tender, err) < 0 ? -1 : 1;
}

static void forget_guest(struct tender *tender)
{
	tender->in_charge = false;
	wss_guest_free(tender->target->guest);
	tender->target->guest = NULL;
}

/* True once the guest is in our charge. */
static bool take_on(struct tender *tender)
{
	struct wss_error err = WSS_ERROR_INIT;
	int r;

	while ((r = try_to_take_on(tender, &err)) < 0 && memory_is_short(tender, &err) &&
	       !tending_is_ending(tender->tending)) {
		forget_guest(tender);
		wss_error_clear(&err);
		wss_clock_sleep_until_ns(wss_clock_now_ns() + LOOK_NS);
	}
	if (r == 0)
		do_not_miss(tender);
	if (r < 0)
		bad(tender, &err);
	return r > 0;
}

/* True once its windows are taken; tried again at the next look where no thread was to be had. */
static bool start_measuring(struct tender *tender)
{
	struct wss_error err = WSS_ERROR_INIT;

	if (wss_tender_start(tender, wss_tender_measure, &err) == 0)
		return true;
	err.code = WSS_ERR_NO_MEMORY;
	if (!memory_is_short(tender, &err))
		leave(tender, &err);
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
		insist(tender);
	}
	tender->over = true;
	tending_lock(tender->tending);
	tender->tending->busy -= !tender->shrunk;
	tending_unlock(tender->tending);
	wss_tender_thread_ended(tender->tending);
}
