/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cmd/balloon-tender.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "store/journal.h"

/* Between two looks at the statistics. */
#define LOOK_NS WSS_NS_PER_S
/* Of a step without any progress. */
#define STEP_TIMEOUT_S 30
/* Without an answer of libvirt for so long, somebody ought to know. */
#define STUCK_NS (60 * WSS_NS_PER_S)

struct tender {
	struct tending *tending;
	const char *name; /* as it was asked for */
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_round_guest entry; /* of the thread that looks */
	struct wss_balloon balloon;
	uint64_t original_bytes, actual_bytes;
	uint64_t refreshed_ns;
	bool shrunk;	 /* something is to be given back */
	bool watched;	 /* in the watchdog's charge, too */
	bool may_step;	 /* as the last refresh had it */
	const char *end; /* why it is left alone, once that is so */
	struct tender *next;
	size_t number;

	atomic_bool over;
	atomic_bool in_charge;	     /* taken on, and perhaps shrunk */
	_Atomic uint64_t looked_ns; /* when it last had an answer */
	bool stuck;		     /* of the main thread: that it has been said */

	/* From the thread that measures, under the lock. */
	struct balloon_record record;
	struct wss_policy policy;
	bool opted_out;
};

static void lock(struct tending *tending)
{
	pthread_mutex_lock(&tending->lock);
}

static void unlock(struct tending *tending)
{
	pthread_mutex_unlock(&tending->lock);
}

/* Nothing new is begun from then on. */
static bool is_ending(const struct tending *tending)
{
	return wss_stop_requested() || tending->ending;
}

static void say(const struct tender *tender, const char *what, uint64_t bytes, const char *why)
{
	char size[16];

	wss_size_format(bytes, size, sizeof(size));
	wss_log(WSS_LOG_INFO, "%s: %s %s: %s", tender->entry.guest->config.name, what, size, why);
}

static void bad(struct tender *tender, const struct wss_error *why)
{
	const struct wss_guest *guest = tender->entry.guest;

	lock(tender->tending);
	wss_tally_bad(&tender->tending->tally, guest ? guest->config.name : tender->name, why);
	unlock(tender->tending);
}

static int write_journal(struct tender *tender, uint64_t to, const char *reason,
			 struct wss_error *err)
{
	struct wss_journal_step step = {
		.uuid = tender->uuid,
		.name = tender->entry.guest->config.name,
		.time = wss_clock_wall_seconds(),
		.original_bytes = tender->original_bytes,
		.from_bytes = tender->actual_bytes,
		.to_bytes = to,
		.reason = reason,
	};
	int r;

	lock(tender->tending);
	r = wss_journal_write(tender->tending->history, &step, err);
	unlock(tender->tending);
	return r;
}

/* Steps of an earlier controller that was killed, or of one that runs beside this one. */
static int check_unfinished(struct tender *tender, struct wss_error *err)
{
	wss_auto_free struct wss_journal_open *open = NULL;
	size_t n = 0;
	int r;

	lock(tender->tending);
	r = wss_journal_unfinished(tender->tending->history, tender->uuid, &open, &n, err);
	unlock(tender->tending);
	if (r == 0 && n)
		r = wss_error_set(err, WSS_ERR_FAILED,
				  "it has unfinished steps: balloon --restore gives them back");
	return r;
}

static int finish_journal(struct tender *tender, struct wss_error *err)
{
	int r;

	lock(tender->tending);
	r = wss_journal_done(tender->tending->history, tender->uuid, err);
	unlock(tender->tending);
	return r;
}

/* Gives back first and writes afterwards: the guest goes before the journal. */
static int give_back(struct tender *tender, const char *reason, struct wss_error *err)
{
	struct wss_guest *guest = tender->entry.guest;
	struct wss_error ignored = WSS_ERROR_INIT;
	uint64_t bytes = tender->original_bytes;

	if (!tender->shrunk)
		return 0;
	/* More than it had is what somebody else has given it. */
	if (tender->actual_bytes > bytes)
		bytes = tender->actual_bytes;
	if (guest->ops->set_balloon(guest, bytes, err) < 0)
		return -1;
	say(tender, "gives back to", bytes, reason);
	tender->shrunk = false;
	write_journal(tender, bytes, reason, &ignored);
	return finish_journal(tender, err);
}

static int set_size(struct tender *tender, const struct wss_balloon_decision *decision,
		    struct wss_error *err)
{
	struct wss_guest *guest = tender->entry.guest;

	if ((!tender->shrunk && check_unfinished(tender, err) < 0) ||
	    wss_balloon_watch(tender->tending->watchdog, tender->watched ? NULL : tender->uuid,
			      err) < 0 ||
	    write_journal(tender, decision->target_bytes, decision->reason, err) < 0)
		return -1;
	tender->watched = tender->shrunk = true;
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

static void act(struct tender *tender, const struct wss_balloon_decision *decision)
{
	struct wss_error err = WSS_ERROR_INIT;
	int r = 0;

	switch (decision->action) {
	case WSS_BALLOON_HOLD:
		wss_debug("%s: %s", tender->name, decision->reason);
		return;
	case WSS_BALLOON_GROW:
	case WSS_BALLOON_SHRINK:
		r = set_size(tender, decision, &err);
		break;
	case WSS_BALLOON_RETURN:
		r = give_back(tender, decision->reason, &err);
		break;
	case WSS_BALLOON_RESTORE:
		wss_error_set(&err, WSS_ERR_FAILED, "%s: left alone", decision->reason);
		leave(tender, &err);
		wss_error_clear(&err);
		r = give_back(tender, decision->reason, &err);
		break;
	}
	if (r < 0)
		leave(tender, &err);
}

static int refresh(struct tender *tender, struct balloon_look *ret_look, struct wss_error *err)
{
	struct wss_guest *guest = tender->entry.guest;

	if (guest->ops->refresh(guest, err) < 0 || wss_balloon_look(&tender->entry, ret_look, err) < 0)
		return -1;
	tender->refreshed_ns = wss_clock_now_ns();
	/* Not while a job is under way, or the guest is paused: it could not answer. */
	tender->may_step = ret_look->facts.running && !ret_look->facts.job;
	return 0;
}

/* Everything anew costs libvirt four calls: each pause, and when a step could be next. */
static bool refresh_is_due(const struct tender *tender)
{
	uint64_t now_ns = wss_clock_now_ns();
	uint64_t rested_ns = tender->balloon.rest_until_s * WSS_NS_PER_S;

	return now_ns - tender->refreshed_ns >= tender->tending->options.pause_ns ||
	       (tender->refreshed_ns < rested_ns &&
		wss_balloon_rested(&tender->balloon, now_ns / WSS_NS_PER_S));
}

/* A guest that does not run any more has nothing that is to be given back. */
static bool has_ended(struct tender *tender)
{
	struct wss_guest *guest = tender->entry.guest;
	struct wss_error err = WSS_ERROR_INIT, ignored = WSS_ERROR_INIT;

	if (guest->ops->refresh(guest, &err) < 0 ? err.code != WSS_ERR_GONE
						 : guest->state != WSS_GUEST_SHUTOFF)
		return false;
	if (tender->shrunk) {
		tender->shrunk = false;
		finish_journal(tender, &ignored);
	}
	return true;
}

static void join_record(struct tender *tender, struct balloon_look *look)
{
	lock(tender->tending);
	wss_balloon_join(&tender->record, look);
	tender->entry.policy = tender->policy;
	look->facts.opted_out = look->facts.opted_out || tender->opted_out;
	unlock(tender->tending);
	look->limits.period_s = tender->tending->options.period_ns / WSS_NS_PER_S + 1;
}

static void decide(struct tender *tender, struct balloon_look *look, bool fresh)
{
	struct wss_balloon_limits *limits = &tender->balloon.limits;
	struct wss_balloon_decision decision;
	/* A guest that is paused cannot say anything. */
	const char *objection =
		fresh && look->facts.running ? wss_balloon_objection(&look->facts) : NULL;

	if (look->view.actual_bytes.known)
		tender->actual_bytes = look->view.actual_bytes.value;
	/* The floor moves with the history and the policy. */
	limits->floor_bytes = look->limits.floor_bytes;
	limits->headroom_percent = look->limits.headroom_percent;
	look->view.may_step = fresh && tender->may_step;
	decision = wss_balloon_next(&tender->balloon, &look->view);
	if (objection)
		decision = (struct wss_balloon_decision){ WSS_BALLOON_RESTORE, 0, objection };
	act(tender, &decision);
}

static void look_after(struct tender *tender)
{
	bool fresh = refresh_is_due(tender);
	struct wss_error err = WSS_ERROR_INIT;
	struct balloon_look look = { .limits = { 0 } };
	int r = fresh ? refresh(tender, &look, &err)
		      : wss_balloon_look_statistics(tender->entry.guest, &look, &err);

	tender->looked_ns = wss_clock_now_ns();
	if (r < 0 || tender->entry.guest->state == WSS_GUEST_SHUTOFF) {
		if (has_ended(tender))
			wss_error_set(&err, WSS_ERR_GONE, "it does not run any more");
		leave(tender, &err);
		return;
	}
	join_record(tender, &look);
	decide(tender, &look, fresh);
}

/* Until it works, or the process ends: what is then still taken is the watchdog's. */
static void insist(struct tender *tender)
{
	const char *reason = is_ending(tender->tending) ? "the controller ends" : tender->end;

	while (tender->shrunk) {
		struct wss_error err = WSS_ERROR_INIT;

		if (give_back(tender, reason, &err) == 0 || has_ended(tender))
			break;
		if (!tender->shrunk || err.code == WSS_ERR_CONNECT ||
		    is_ending(tender->tending)) {
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

	memcpy(tender->uuid, tender->entry.guest->config.uuid, sizeof(tender->uuid));
	lock(tender->tending);
	for (struct tender *t = tender->tending->tenders; t && !taken; t = t->next)
		taken = t != tender && t->in_charge && !strcmp(t->uuid, tender->uuid);
	tender->in_charge = !taken;
	unlock(tender->tending);
	return taken;
}

static int read_record(struct tender *tender, const struct wss_policy *policy,
		       struct wss_error *err)
{
	struct tending *tending = tender->tending;
	struct balloon_record record;
	int r;

	lock(tending);
	r = wss_balloon_read(&tending->options, tending->history, tender->uuid, policy, &record,
			     err);
	if (r == 0) {
		tender->record = record;
		tender->policy = *policy;
	}
	unlock(tending);
	return r;
}

static int check_refusal(struct tender *tender, struct wss_error *err)
{
	struct balloon_look look;
	const char *refusal;

	if (refresh(tender, &look, err) < 0 ||
	    read_record(tender, &tender->entry.policy, err) < 0)
		return -1;
	wss_balloon_join(&tender->record, &look);
	refusal = wss_balloon_refusal(&look.facts);
	if (!refusal && (!look.view.actual_bytes.known || !tender->entry.guest->ops->set_balloon))
		refusal = "the size of its balloon is not known";
	if (refusal)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED, "refused: %s", refusal);
	look.limits.original_bytes = look.view.actual_bytes.value;
	look.limits.period_s = tender->tending->options.period_ns / WSS_NS_PER_S + 1;
	look.limits.pause_s = tender->tending->options.pause_ns / WSS_NS_PER_S;
	look.limits.timeout_s = STEP_TIMEOUT_S;
	tender->original_bytes = tender->actual_bytes = look.limits.original_bytes;
	wss_balloon_init(&tender->balloon, &look.limits);
	return 0;
}

static bool is_missed_by_none(const struct tender *tender)
{
	const struct wss_round_guest *entry = &tender->entry;

	if (!tender->tending->all)
		return false;
	return entry->guest ? entry->guest->state == WSS_GUEST_SHUTOFF
			    : entry->error.code == WSS_ERR_GONE || entry->policy.opt_out;
}

static void do_not_miss(struct tender *tender)
{
	lock(tender->tending);
	tender->tending->missing++;
	unlock(tender->tending);
}

/* True once the guest is in our charge. */
static bool take_on(struct tender *tender)
{
	struct wss_round_guest *entry = &tender->entry;
	struct wss_error err = WSS_ERROR_INIT;

	entry->name = tender->name;
	wss_guests_open_one(&tender->tending->guests, entry);
	tender->looked_ns = wss_clock_now_ns();
	if (is_missed_by_none(tender) || (entry->guest && is_taken(tender))) {
		do_not_miss(tender);
		return false;
	}
	if (!entry->guest)
		err = entry->error;
	else if (check_unfinished(tender, &err) == 0 && check_refusal(tender, &err) == 0)
		return true;
	bad(tender, &err);
	return false;
}

static void keep_sample(const struct wss_sample *sample, struct wss_round_guest *entry, bool last,
			void *opaque)
{
	struct tender *tender = opaque;
	struct tending *tending = tender->tending;
	struct wss_error err = WSS_ERROR_INIT;
	int r = 0;

	(void)last;
	if (!wss_sample_measured(sample)) {
		if (!wss_stop_requested())
			wss_warn("%s: %s", sample->domain, sample->error.text);
		return;
	}
	lock(tending);
	r = wss_history_add(tending->history, sample, &err);
	unlock(tending);
	if (r < 0 || read_record(tender, &entry->policy, &err) < 0)
		wss_warn("%s: %s", entry->name, err.text);
	/* The newest window is this one, whichever series the history has most of. */
	lock(tending);
	tender->record.wss_bytes = sample->wss_bytes;
	tender->record.qemu_bytes = sample->memory.qemu_bytes;
	tender->record.time = sample->wall;
	unlock(tending);
}

/* With a guest of its own: the other thread goes on with the one that it has. */
static void measure(struct tender *tender)
{
	struct tending *tending = tender->tending;
	const struct balloon_options *options = &tending->options;
	struct wss_round_guest entry = { .name = tender->uuid };
	struct wss_round_options round = {
		.window = { .window_ns = options->window_ns,
			    .max_stall_ns = WSS_MAX_STALL_DEFAULT_NS,
			    .max_faults = UINT64_MAX },
		.count = 1,
		.interval_ns = options->window_ns,
	};

	wss_guests_open_one(&tending->guests, &entry);
	if (entry.guest) {
		wss_round_run(&tending->guests.host, &entry, 1, &round, keep_sample, tender, NULL);
		wss_guest_free(entry.guest);
	} else {
		wss_warn("%s: %s", tender->name, entry.error.text);
		lock(tending);
		tender->opted_out = entry.policy.opt_out;
		unlock(tending);
	}
}

static void thread_ended(struct tending *tending)
{
	lock(tending);
	tending->threads--;
	unlock(tending);
}

static void *measure_thread(void *opaque)
{
	struct tender *tender = opaque;
	uint64_t period_ns = tender->tending->options.period_ns;
	uint64_t due_ns = wss_clock_now_ns();

	/* Not all guests at once. */
	due_ns += period_ns / (tender->number + 1) * tender->number;
	while (!tender->over && !is_ending(tender->tending)) {
		if (wss_clock_now_ns() < due_ns) {
			wss_stop_wait_ns(LOOK_NS / 2);
			continue;
		}
		due_ns = wss_clock_now_ns() + period_ns;
		measure(tender);
	}
	thread_ended(tender->tending);
	return NULL;
}

static int start_thread(struct tender *tender, void *(*run)(void *), struct wss_error *err)
{
	struct tending *tending = tender->tending;
	pthread_t thread;

	lock(tending);
	tending->threads++;
	unlock(tending);
	if (pthread_create(&thread, NULL, run, tender) != 0) {
		thread_ended(tending);
		return wss_error_set(err, WSS_ERR_FAILED, "cannot start a thread");
	}
	pthread_detach(thread);
	return 0;
}

static void *look_thread(void *opaque)
{
	struct tender *tender = opaque;
	struct wss_error err = WSS_ERROR_INIT;

	if (take_on(tender)) {
		if (start_thread(tender, measure_thread, &err) < 0)
			leave(tender, &err);
		while (!tender->end && !is_ending(tender->tending)) {
			uint64_t next_ns = wss_clock_now_ns() + LOOK_NS;

			look_after(tender);
			if (!tender->end)
				wss_clock_sleep_until_ns(next_ns);
		}
		insist(tender);
	}
	tender->over = true;
	lock(tender->tending);
	tender->tending->busy -= !tender->shrunk;
	unlock(tender->tending);
	thread_ended(tender->tending);
	return NULL;
}

void wss_tending_init(struct tending *tending, const struct balloon_options *options)
{
	*tending = (struct tending){ .options = *options,
				     .guests = WSS_GUESTS_INIT,
				     .watchdog = -1 };
	pthread_mutex_init(&tending->lock, NULL);
}

int wss_tending_add(struct tending *tending, const char *name, struct wss_error *err)
{
	struct tender *tender = calloc(1, sizeof(*tender));

	if (!tender)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	tender->tending = tending;
	tender->name = name;
	tender->looked_ns = wss_clock_now_ns();
	lock(tending);
	tender->next = tending->tenders;
	tending->tenders = tender;
	tender->number = tending->total++;
	tending->busy++;
	unlock(tending);
	if (start_thread(tender, look_thread, err) == 0)
		return 0;
	tender->over = true;
	lock(tending);
	tending->busy--;
	unlock(tending);
	return -1;
}

size_t wss_tending_threads(struct tending *tending)
{
	size_t n;

	lock(tending);
	n = tending->threads;
	unlock(tending);
	return n;
}

size_t wss_tending_busy(struct tending *tending)
{
	size_t n;

	lock(tending);
	n = tending->busy;
	unlock(tending);
	return n;
}

size_t wss_tending_stuck(struct tending *tending)
{
	uint64_t now_ns = wss_clock_now_ns();
	size_t n = 0;

	for (struct tender *tender = tending->tenders; tender; tender = tender->next) {
		uint64_t looked_ns = tender->looked_ns;
		bool stuck = !tender->over && now_ns > looked_ns && now_ns - looked_ns > STUCK_NS;

		if (stuck && !tender->stuck) {
			struct wss_error err = WSS_ERROR_INIT;

			wss_error_set(&err, WSS_ERR_TIMEOUT, "libvirt has not answered for a minute");
			lock(tending);
			wss_tally_bad(&tending->tally, tender->name, &err);
			unlock(tending);
		}
		tender->stuck = stuck;
		n += stuck;
	}
	return n;
}

void wss_tending_free(struct tending *tending)
{
	struct tender *next;

	for (struct tender *tender = tending->tenders; tender; tender = next) {
		next = tender->next;
		wss_guest_free(tender->entry.guest);
		free(tender);
	}
	wss_guests_close(&tending->guests);
	pthread_mutex_destroy(&tending->lock);
}
