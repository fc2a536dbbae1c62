/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Each guest gets its memory back in a thread of its own with a deadline, several at a time,
 * so that one that hangs does not delay the others. Once its guest has the memory, a thread
 * writes the journal under the lock.
 */
#include "control/restore.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/worker.h"
#include "control/give-back.h"
#include "host/guest.h"
#include "store/history.h"
#include "store/journal.h"

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
	size_t refused;	  /* number of references that match two guests */
	bool left_behind; /* a late thread may still use the connection */
};

/* One guest's turn, allocated separately because a late thread outlives the call. */
struct turn {
	struct wss_conn *conn;
	struct wss_journal_open open;
	struct wss_deadline deadline;
	uint64_t given_bytes; /* current size of the guest; 0 if it was not found */
	struct wss_error error;
};

/*
 * Decides about a guest that is gone. If it has ended, there is nothing to give back; but this
 * may be another host, or another user's libvirt.
 */
static void judge_gone(struct turn *turn)
{
	const char *uri = turn->open.uri;

	wss_error_clear(&turn->error);
	if (*uri && strcmp(uri, wss_conn_uri(turn->conn)) != 0)
		wss_error_set(&turn->error, WSS_ERR_GONE,
			      "not known here: its memory was taken through '%s'", uri);
}

static void give_step(void *opaque)
{
	struct turn *turn = opaque;
	const struct wss_domain_ref ref = {turn->open.name, turn->open.uuid};
	struct wss_guest *guest = NULL;
	uint64_t bytes;

	if (wss_conn_guest(turn->conn, &ref, &turn->deadline, &guest, &turn->error) < 0) {
		if (turn->error.code == WSS_ERR_GONE)
			judge_gone(turn);
		return;
	}
	bytes = wss_give_back_due_bytes(guest, turn->open.original_bytes,
					guest->balloon_bytes.known ? guest->balloon_bytes.value
								   : 0);
	if (guest->kept)
		wss_error_set(&turn->error, WSS_ERR_FAILED,
			      "the guest is %s and still shrunk: restore it once it runs here",
			      guest->state_text);
	else if (guest->state != WSS_GUEST_SHUTOFF &&
		 guest->ops->set_balloon(guest, bytes, &turn->error) == 0)
		turn->given_bytes = bytes;
	wss_guest_free(guest);
}

/* Gives memory back, without touching the journal or holding the lock. */
static int restore_give(struct restoring *all, const struct wss_journal_open *open,
			uint64_t *ret_given_bytes, struct wss_error *err)
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
	*ret_given_bytes = turn->given_bytes;
	free(turn);
	return err->code ? -1 : 0;
}

/* Records a result. The caller holds the lock. */
static void restore_conclude(struct restoring *all, const struct wss_journal_open *open,
			     uint64_t given_bytes, struct wss_error *err)
{
	const struct wss_control_move move = {open->name, WSS_CONTROL_GAVE_BACK, given_bytes,
					      NULL};

	all->left_behind = all->left_behind || err->code == WSS_ERR_TIMEOUT;
	if (given_bytes)
		all->events->moved(&move, all->events->opaque);
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
		uint64_t given_bytes = 0;

		pthread_mutex_unlock(&all->lock);
		restore_give(all, open, &given_bytes, &err);
		pthread_mutex_lock(&all->lock);
		restore_conclude(all, open, given_bytes, &err);
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
		all->events->progress(ref->name, "nothing to restore", all->events->opaque);
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

int wss_restore_run(const struct wss_control_scope *scope,
		    const struct wss_control_events *events, size_t *ret_guests,
		    struct wss_error *err)
{
	struct restoring all = {.events = events};
	int r = restore_open_history(scope->history, &all.history, err);

	if (r == 0 && all.history)
		r = wss_journal_unfinished(all.history, NULL, &all.open, &all.n, err);
	if (r == 0)
		r = drop_unnamed(&all, scope, err);
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
