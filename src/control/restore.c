/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each guest gets its memory back in a thread of its own with a deadline, several at a time,
 * so that one that hangs does not delay the others. Once its guest has the memory, a thread
 * writes the journal under the lock.
 */
#include "control/restore.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "base/worker.h"
#include "control/give-back.h"
#include "control/look.h"
#include "host/guest.h"
#include "store/history.h"
#include "store/journal.h"
#include "wss/mover.h"

/* libvirt itself waits 30 s for a domain's lock before it gives up. */
#define DEADLINE_NS (60 * WSS_NS_PER_S)
/* Number of threads at the same time. */
#define WORKERS 16

struct restoring {
	struct wss_conn *conn;
	struct wss_journal_open *open;
	size_t n;
	pthread_mutex_t lock; /* protects the members below */
	size_t next;
	struct wss_history *history;
	const struct wss_control_events *events;
	const char *nothing; /* what to say of a guest that is not in the journal */
	size_t refused;	  /* number of references that could not be looked up */
	bool left_behind; /* a late thread may still use the connection */
};

/* What became of one guest. */
struct outcome {
	uint64_t given_bytes;  /* its size now; 0 if it got nothing */
	uint64_t others_bytes; /* size that somebody else set, and that it keeps; 0 if nobody has */
};

/* One guest's turn, allocated separately because a late thread outlives the call. */
struct turn {
	struct wss_conn *conn;
	struct wss_journal_open open;
	struct wss_deadline deadline;
	struct outcome outcome;
	struct wss_error error;
};

/*
 * Says why a guest that libvirt does not know stays in the journal. It may have ended; but it may also have
 * moved away, or be undefined for an hour, or this may be another host or another user's libvirt.
 */
static void explain_gone(struct turn *turn)
{
	const char *uri = turn->open.uri;
	char size[16];

	wss_error_clear(&turn->error);
	wss_size_format(turn->open.original_bytes, size, sizeof(size));
	if (*uri && strcmp(uri, wss_conn_uri(turn->conn)) != 0)
		wss_error_set(&turn->error, WSS_ERR_GONE,
			      "not known here: its balloon was set through '%s', so restore it there", uri);
	else
		wss_error_set(&turn->error, WSS_ERR_GONE,
			      "libvirt does not know it now: its former size, %s, is remembered until it is back",
			      size);
}

/* Whether the guest is as the last step left it, or has all its memory already. */
static bool is_as_left(const struct wss_journal_open *open, uint64_t actual_bytes)
{
	return !open->to_bytes || !open->from_bytes ||
	       (actual_bytes + WSS_MIB >= open->original_bytes &&
		actual_bytes <= open->original_bytes + WSS_MIB);
}

/*
 * Takes account of memory that was plugged in or unplugged since the last step, with which the sizes of the journal
 * move. The journal does not tell how much: it is the difference to the guest's maximum, if the balloon was empty
 * before the first step and the sizes, so moved, explain the present one.
 */
static void heed_plugged(struct wss_journal_open *open, const struct wss_guest *guest, uint64_t actual_bytes)
{
	uint64_t bytes = guest->config.maximum_bytes - open->original_bytes; /* may wrap around, as the sums do */
	uint64_t low = wss_u64_min(open->from_bytes, open->to_bytes), high = wss_u64_max(open->from_bytes, open->to_bytes);

	if (!open->from_bytes || !open->to_bytes || !guest->config.maximum_bytes)
		return;
	if ((actual_bytes + WSS_MIB >= low && actual_bytes <= high + WSS_MIB) ||
	    actual_bytes + WSS_MIB < low + bytes || actual_bytes > high + bytes + WSS_MIB)
		return;
	open->original_bytes += bytes;
	open->from_bytes += bytes;
	open->to_bytes += bytes;
}

/*
 * Returns who has moved the balloon since the last step, and its size. The size is unknown where libvirt
 * does not report it.
 */
static enum wss_moved_by find_mover(struct turn *turn, struct wss_guest *guest,
				    struct wss_amount *ret_actual_bytes)
{
	enum wss_moved_by by = WSS_MOVED_BY_UNKNOWN;
	struct wss_reports reports = {0};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_look look = {.limits = {0}};
	struct wss_give_back_watch watch = {0};
	struct wss_mover mover;
	bool watching = false;

	*ret_actual_bytes = guest->balloon_bytes;
	while (by == WSS_MOVED_BY_UNKNOWN) {
		if (wss_look_statistics(guest, &reports, &look, &err) < 0)
			return WSS_MOVED_BY_US;
		wss_give_back_ask_size(guest, &look.view);
		if (!look.view.actual_bytes.known)
			return WSS_MOVED_BY_US;
		if (!watching) {
			heed_plugged(&turn->open, guest, look.view.actual_bytes.value);
			wss_mover_init(&mover, turn->open.from_bytes, turn->open.to_bytes);
			watching = true;
		}
		if (is_as_left(&turn->open, look.view.actual_bytes.value))
			return WSS_MOVED_BY_US;
		*ret_actual_bytes = look.view.actual_bytes;
		by = wss_mover_judge(&mover, &look.view, guest->config.balloon_autodeflate);
		if (by == WSS_MOVED_BY_US && !wss_give_back_is_calm(&watch, ret_actual_bytes->value))
			by = WSS_MOVED_BY_UNKNOWN;
		if (by == WSS_MOVED_BY_UNKNOWN && wss_deadline_check(&turn->deadline, &err) < 0)
			break;
		if (by == WSS_MOVED_BY_UNKNOWN)
			wss_clock_sleep_until_ns(wss_clock_now_ns() + WSS_NS_PER_S);
	}
	return by;
}

static void give_to(struct turn *turn, struct wss_guest *guest)
{
	struct wss_amount actual_bytes;
	enum wss_moved_by by = find_mover(turn, guest, &actual_bytes);
	uint64_t bytes = wss_give_back_due_bytes(guest, turn->open.original_bytes, actual_bytes.value);

	if (by == WSS_MOVED_BY_UNKNOWN) {
		wss_error_set(&turn->error, WSS_ERR_BUSY, "something else is changing its balloon: try again later");
	} else if (by == WSS_MOVED_BY_OTHERS) {
		if (!wss_give_back_is_empty(guest, actual_bytes.value) ||
		    guest->ops->set_balloon(guest, actual_bytes.value, &turn->error) == 0)
			turn->outcome.others_bytes = actual_bytes.value;
	} else if (guest->ops->set_balloon(guest, bytes, &turn->error) == 0) {
		turn->outcome.given_bytes = bytes;
	}
}

static void give_step(void *opaque)
{
	struct turn *turn = opaque;
	const struct wss_domain_ref ref = {turn->open.name, turn->open.uuid};
	struct wss_guest *guest = NULL;

	if (wss_conn_guest(turn->conn, &ref, &turn->deadline, &guest, &turn->error) < 0) {
		if (turn->error.code == WSS_ERR_GONE)
			explain_gone(turn);
		return;
	}
	if (guest->kept)
		wss_error_set(&turn->error, WSS_ERR_FAILED,
			      "the guest is %s, so its balloon stays shrunk: restore it once it runs here",
			      guest->state_text);
	else if (guest->state != WSS_GUEST_SHUTOFF)
		give_to(turn, guest);
	wss_guest_free(guest);
}

/* Gives memory back, without touching the journal or holding the lock. */
static int restore_give(struct restoring *all, const struct wss_journal_open *open,
			struct outcome *ret_outcome, struct wss_error *err)
{
	struct turn *turn = calloc(1, sizeof(*turn));
	struct wss_work work = {give_step, free, turn, NULL};

	if (!turn)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	turn->conn = all->conn;
	turn->open = *open;
	work.deadline = &turn->deadline;
	wss_deadline_allow(&turn->deadline, DEADLINE_NS - WSS_WORKER_GRACE_NS);
	wss_deadline_run(&turn->deadline, 0);
	if (wss_work_run(&work, WSS_WORKER_CANCEL_NS, err) < 0) {
		if (err->code != WSS_ERR_TIMEOUT)
			free(turn);
		return -1;
	}
	*err = turn->error;
	*ret_outcome = turn->outcome;
	free(turn);
	return err->code ? -1 : 0;
}

/* Records a result. The caller holds the lock. */
static void restore_conclude(struct restoring *all, const struct wss_journal_open *open,
			     const struct outcome *outcome, struct wss_error *err)
{
	const struct wss_control_move move = {open->name, WSS_CONTROL_GAVE_BACK,
					      outcome->given_bytes, NULL, 0};
	char size[16], text[80];

	all->left_behind = all->left_behind || err->code == WSS_ERR_TIMEOUT;
	if (outcome->given_bytes)
		all->events->moved(&move, all->events->opaque);
	if (outcome->others_bytes) {
		wss_size_format(outcome->others_bytes, size, sizeof(size));
		snprintf(text, sizeof(text), "somebody else set its balloon (now %s): nothing given back", size);
		all->events->progress(open->name, text, all->events->opaque);
	}
	if (err->code || wss_journal_done(all->history, open->uuid, err) < 0)
		all->events->trouble(open->name, err, all->events->opaque);
}

static void *restore_worker(void *opaque)
{
	struct restoring *all = opaque;

	pthread_mutex_lock(&all->lock);
	while (all->next < all->n) {
		const struct wss_journal_open *open = &all->open[all->next++];
		struct wss_error err = WSS_ERROR_INIT;
		struct outcome outcome = {0};

		pthread_mutex_unlock(&all->lock);
		restore_give(all, open, &outcome, &err);
		pthread_mutex_lock(&all->lock);
		restore_conclude(all, open, &outcome, &err);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Restores all guests, one after the other if no thread can be started. */
static void restore_all(struct restoring *all)
{
	pthread_t workers[WORKERS - 1];
	size_t n = 0;

	pthread_mutex_init(&all->lock, NULL);
	while (n < WORKERS - 1 && n + 1 < all->n &&
	       pthread_create(&workers[n], NULL, restore_worker, all) == 0)
		n++;
	restore_worker(all);
	while (n > 0)
		pthread_join(workers[--n], NULL);
	pthread_mutex_destroy(&all->lock);
}

/* Whether there is a history, which opening it would otherwise create. */
static bool restore_has_history(const char *path)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history = NULL;

	if (wss_history_open_readonly(path, &history, &err) < 0)
		return err.code != WSS_ERR_GONE;
	wss_history_close(history);
	return true;
}

/*
 * Opens the history. Memory is given back even if that cannot be written, for example on a full
 * disk. *ret_history stays NULL if there is none.
 */
static int restore_open_history(const char *path, struct wss_history **ret_history,
				struct wss_error *err)
{
	struct wss_error ignored = WSS_ERROR_INIT;

	if (!restore_has_history(path) || wss_history_open(path, ret_history, err) == 0)
		return 0;
	if (wss_history_open_readonly(path, ret_history, &ignored) < 0)
		return -1;
	wss_error_clear(err);
	return 0;
}

/*
 * Whether a reference means this guest. Listed guests, and those typed as a UUID, are compared
 * by UUID alone.
 */
static bool restore_matches(const struct wss_domain_ref *ref,
			    const struct wss_journal_open *open)
{
	if (ref->uuid)
		return !strcasecmp(ref->uuid, open->uuid);
	return !strcasecmp(ref->name, open->uuid) || !strcmp(ref->name, open->name);
}

static void refuse_two(struct restoring *all, const char *word, size_t first, size_t second)
{
	struct wss_error err = WSS_ERROR_INIT;

	wss_error_set(
		&err, WSS_ERR_AMBIGUOUS,
		"matches two guests in the journal, '%.80s' (UUID %s) and '%.80s' (UUID %s)",
		all->open[first].name, all->open[first].uuid, all->open[second].name,
		all->open[second].uuid);
	all->events->trouble(word, &err, all->events->opaque);
	all->refused++;
}

/* Marks the guest that a reference means. */
static void restore_choose(struct restoring *all, const struct wss_domain_ref *ref,
			   bool *chosen)
{
	size_t found = all->n;

	for (size_t i = 0; i < all->n; i++) {
		if (!restore_matches(ref, &all->open[i]))
			continue;
		if (found < all->n) {
			refuse_two(all, ref->name, found, i);
			return;
		}
		found = i;
	}
	if (found < all->n)
		chosen[found] = true;
	/* Reported, so that nobody who misspells a name believes that guest to be restored. */
	else
		all->events->progress(ref->name, all->nothing, all->events->opaque);
}

/* Drops the guests that are not in the scope. */
static int drop_unnamed(struct restoring *all, const struct wss_control_scope *scope,
			struct wss_error *err)
{
	wss_auto_free bool *chosen = calloc(all->n + 1, sizeof(*chosen));
	size_t kept = 0;

	if (!scope->n_guests)
		return 0;
	if (!chosen)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (size_t i = 0; i < scope->n_guests; i++)
		restore_choose(all, &scope->guests[i], chosen);
	for (size_t i = 0; i < all->n; i++)
		if (chosen[i])
			all->open[kept++] = all->open[i];
	all->n = kept;
	return 0;
}

/* A history that is missing now, for example on a disk that is not mounted, proves nothing about a guest. */
static void refuse_all(struct restoring *all, const struct wss_control_scope *scope)
{
	struct wss_error err = WSS_ERROR_INIT;

	wss_error_set(&err, WSS_ERR_FAILED, "there is no history %s", scope->history);
	for (size_t i = 0; i < scope->n_guests; i++)
		all->events->trouble(scope->guests[i].name, &err, all->events->opaque);
	all->refused = scope->n_guests;
}

/* Reads the journal of the guests in the scope. */
static int restore_read(struct restoring *all, const struct wss_control_scope *scope,
			struct wss_error *err)
{
	if (restore_open_history(scope->history, &all->history, err) < 0)
		return -1;
	if (!all->history) {
		refuse_all(all, scope);
		return 0;
	}
	if (wss_journal_unfinished(all->history, NULL, &all->open, &all->n, err) < 0)
		return -1;
	return drop_unnamed(all, scope, err);
}

int wss_restore_forget(const struct wss_control_scope *scope,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err)
{
	struct restoring all = {.events = events, .nothing = "nothing to forget"};
	int r = restore_read(&all, scope, err);
	char size[16], text[80];

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		r = wss_journal_done(all.history, all.open[i].uuid, err);
		wss_size_format(all.open[i].original_bytes, size, sizeof(size));
		snprintf(text, sizeof(text), "forgotten; it had %s", size);
		if (r == 0)
			events->progress(all.open[i].name, text, events->opaque);
	}
	wss_history_close(all.history);
	free(all.open);
	*ret_guests = all.n + all.refused;
	return r;
}

int wss_restore_run(const struct wss_control_scope *scope,
		    const struct wss_control_events *events, size_t *ret_guests,
		    struct wss_error *err)
{
	struct restoring all = {.events = events, .nothing = "nothing to restore"};
	int r = restore_read(&all, scope, err);
	if (r == 0 && all.n)
		r = wss_conn_open(scope->uri, &all.conn, err);
	if (r == 0)
		restore_all(&all);
	if (!all.left_behind)
		wss_conn_close(all.conn);
	wss_history_close(all.history);
	free(all.open);
	*ret_guests = all.n + all.refused;
	return r;
}
