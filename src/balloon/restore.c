/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each guest gets its memory back in a thread of its own with a deadline, several at a time,
 * so that one that hangs does not delay the others. The journal is read before and written
 * once all guests have had their turn: a guest that has its memory and stays in it loses nothing.
 */
#include "balloon/restore.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "balloon/balloon.h"
#include "balloon/give-back.h"
#include "balloon/journal.h"
#include "balloon/look.h"
#include "balloon/mover.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/units.h"
#include "base/worker.h"
#include "host/guest.h"
#include "host/inventories.h"

/* libvirt itself waits 30 s for a domain's lock before it gives up. */
#define DEADLINE_NS (60 * WSS_NS_PER_S)
/* Number of threads at the same time. */
#define WORKERS 16

struct restoring {
	struct wss_conn *conn;
	const char *history;
	struct wss_journal_open *open;
	bool *finished; /* for each of them, whether its steps are to be closed */
	size_t n;
	pthread_mutex_t lock; /* protects the members below */
	size_t next;
	const struct wss_control_events *events;
	const char *nothing; /* what to say of a guest that is not in the journal */
	size_t refused;	     /* number of references that could not be looked up */
	bool left_behind;    /* a late thread may still use the connection */
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
		wss_error_set(
			&turn->error, WSS_ERR_GONE,
			"not known here: its balloon was set through '%s', so restore it there",
			uri);
	else
		wss_error_set(
			&turn->error, WSS_ERR_GONE,
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

/* Returns a size after the guest's maximum went from one value to another. */
static uint64_t size_moved(uint64_t bytes, uint64_t maximum_bytes, uint64_t now_bytes)
{
	return now_bytes >= maximum_bytes ? wss_u64_add(bytes, now_bytes - maximum_bytes)
					  : bytes - wss_u64_min(bytes, maximum_bytes - now_bytes);
}

/* Memory that was plugged in or unplugged since a step moves the sizes of the journal: the balloon keeps what it has. */
static void open_move_sizes(struct wss_journal_open *open, const struct wss_guest *guest)
{
	uint64_t now_bytes = guest->config.maximum_bytes;

	if (!now_bytes || !open->maximum_bytes || !open->first_maximum_bytes || !open->from_bytes ||
	    !open->to_bytes)
		return;
	open->original_bytes =
		size_moved(open->original_bytes, open->first_maximum_bytes, now_bytes);
	open->from_bytes = size_moved(open->from_bytes, open->maximum_bytes, now_bytes);
	open->to_bytes = size_moved(open->to_bytes, open->maximum_bytes, now_bytes);
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
			open_move_sizes(&turn->open, guest);
			wss_mover_init(&mover, turn->open.from_bytes, turn->open.to_bytes);
			watching = true;
		}
		if (is_as_left(&turn->open, look.view.actual_bytes.value))
			return WSS_MOVED_BY_US;
		*ret_actual_bytes = look.view.actual_bytes;
		by = wss_mover_judge(&mover, &look.view, guest->config.balloon_autodeflate);
		if (by == WSS_MOVED_BY_US && !wss_give_back_is_calm(&watch, &look.view, &reports))
			by = WSS_MOVED_BY_UNKNOWN;
		if (by == WSS_MOVED_BY_UNKNOWN && wss_deadline_check(&turn->deadline, &err) < 0)
			break;
		if (by == WSS_MOVED_BY_UNKNOWN)
			wss_clock_rest_until_ns(wss_clock_now_ns() + WSS_NS_PER_S);
	}
	return by;
}

static void give_to(struct turn *turn, struct wss_guest *guest)
{
	struct wss_amount actual_bytes;
	enum wss_moved_by by;
	uint64_t bytes;

	if (!turn->open.original_bytes) {
		wss_error_set(
			&turn->error, WSS_ERR_FAILED,
			"its former size in the journal is damaged: set its balloon with virsh setmem, then forget it");
		return;
	}
	by = find_mover(turn, guest, &actual_bytes);
	bytes = wss_give_back_due_bytes(guest, turn->open.original_bytes, actual_bytes.value);
	if (by == WSS_MOVED_BY_UNKNOWN) {
		wss_error_set(&turn->error, WSS_ERR_BUSY,
			      "something else is changing its balloon: try again later");
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
		wss_error_set(
			&turn->error, WSS_ERR_FAILED,
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

/* Says what became of a guest. The caller holds the lock. */
static void restore_tell(struct restoring *all, const struct wss_journal_open *open,
			 const struct outcome *outcome, const struct wss_error *err)
{
	const struct wss_control_move move = {open->name, WSS_CONTROL_GAVE_BACK,
					      outcome->given_bytes, NULL, 0};
	char size[16], text[80];

	all->left_behind = all->left_behind || err->code == WSS_ERR_TIMEOUT;
	if (outcome->given_bytes)
		all->events->moved(&move, all->events->opaque);
	if (outcome->others_bytes) {
		wss_size_format(outcome->others_bytes, size, sizeof(size));
		snprintf(text, sizeof(text),
			 "somebody else set its balloon (now %s): nothing given back", size);
		all->events->progress(open->name, text, all->events->opaque);
	}
	if (err->code)
		all->events->trouble(open->name, err, all->events->opaque);
	all->finished[open - all->open] = !err->code;
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
		restore_tell(all, open, &outcome, &err);
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

/* Closes the steps of the guests that are finished, and reports those of which that fails. */
static void restore_close(struct restoring *all)
{
	wss_auto_free struct wss_journal_open *done = calloc(all->n + 1, sizeof(*done));
	wss_auto_free struct wss_error *errors = calloc(all->n + 1, sizeof(*errors));
	struct wss_error err = WSS_ERROR_INIT;
	size_t n = 0;

	for (size_t i = 0; done && i < all->n; i++)
		if (all->finished[i])
			done[n++] = all->open[i];
	if (!done || !errors)
		wss_error_set(&err, WSS_ERR_NO_MEMORY, "out of memory");
	else if (n)
		wss_journal_close_in_time(all->history, done, n, errors, &err);
	for (size_t i = 0, k = 0; i < all->n; i++) {
		const struct wss_error *why;

		if (!all->finished[i])
			continue;
		why = err.code ? &err : &errors[k++];
		if (!why->code)
			continue;
		all->finished[i] = false;
		all->events->trouble(all->open[i].name, why, all->events->opaque);
	}
}

/* --- the scope --- */

/*
 * Whether a reference means this guest. Listed guests, and those typed as a UUID, are compared
 * by UUID alone.
 */
static bool restore_matches(const struct wss_domain_ref *ref, const struct wss_journal_open *open)
{
	if (ref->uuid)
		return !strcasecmp(ref->uuid, open->uuid);
	return !strcasecmp(ref->name, open->uuid) || !strcmp(ref->name, open->name);
}

static void refuse_two(struct restoring *all, const char *word, size_t first, size_t second)
{
	struct wss_error err = WSS_ERROR_INIT;

	wss_error_set(&err, WSS_ERR_AMBIGUOUS,
		      "matches two guests in the journal, '%.80s' (UUID %s) and '%.80s' (UUID %s)",
		      all->open[first].name, all->open[first].uuid, all->open[second].name,
		      all->open[second].uuid);
	all->events->trouble(word, &err, all->events->opaque);
	all->refused++;
}

/* Marks the guest that a reference means. */
static void restore_choose(struct restoring *all, const struct wss_domain_ref *ref, bool *chosen)
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
	int r = wss_journal_read_in_time(scope->history, &all->open, &all->n, err);
	bool missing = r < 0 && err->code == WSS_ERR_GONE;

	all->history = scope->history;
	if (missing && !scope->n_guests) {
		wss_error_clear(err);
		return wss_error_set(err, WSS_ERR_GONE, "there is no history %s", scope->history);
	}
	if (missing) {
		wss_error_clear(err);
		refuse_all(all, scope);
		r = 0;
	}
	if (r == 0 && !(all->finished = calloc(all->n + 1, sizeof(*all->finished))))
		r = wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	return r < 0 || missing ? r : drop_unnamed(all, scope, err);
}

static void restore_free(struct restoring *all)
{
	free(all->open);
	free(all->finished);
}

int wss_restore_forget(const struct wss_control_scope *scope,
		       const struct wss_control_events *events, size_t *ret_guests,
		       struct wss_error *err)
{
	struct restoring all = {.events = events, .nothing = "nothing to forget"};
	int r = restore_read(&all, scope, err);
	char size[16], text[80];

	for (size_t i = 0; r == 0 && i < all.n; i++)
		all.finished[i] = true;
	if (r == 0)
		restore_close(&all);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		wss_size_format(all.open[i].original_bytes, size, sizeof(size));
		snprintf(text, sizeof(text), "forgotten; it had %s", size);
		if (all.finished[i])
			events->progress(all.open[i].name, text, events->opaque);
	}
	*ret_guests = all.n + all.refused;
	restore_free(&all);
	return r;
}

/* As a dry run does. */
static void refuse_fixed(struct restoring *all)
{
	struct wss_error err = WSS_ERROR_INIT;

	wss_error_set(&err, WSS_ERR_UNSUPPORTED, "%s", wss_balloon_fixed);
	for (size_t i = 0; i < all->n; i++)
		all->events->trouble(all->open[i].name, &err, all->events->opaque);
}

int wss_restore_run(const struct wss_control_scope *scope, const struct wss_control_events *events,
		    size_t *ret_guests, struct wss_error *err)
{
	struct restoring all = {.events = events, .nothing = "nothing to restore"};
	bool fixed = wss_inventory_find(scope->uri) != NULL;
	int r = restore_read(&all, scope, err);

	if (r == 0 && all.n && !fixed)
		r = wss_conn_open(scope->uri, &all.conn, err);
	if (r == 0 && fixed)
		refuse_fixed(&all);
	else if (r == 0) {
		restore_all(&all);
		restore_close(&all);
	}
	if (!all.left_behind)
		wss_conn_close(all.conn);
	*ret_guests = all.n + all.refused;
	restore_free(&all);
	return r;
}
