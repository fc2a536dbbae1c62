/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * balloon --restore: gives back what an --apply that was killed has left taken. Each guest in a
 * thread with a deadline, several at a time, so that one that hangs holds up no other.
 */
#include "control/look.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/worker.h"
#include "base/log.h"
#include "base/units.h"
#include "store/journal.h"

/* libvirt itself waits 30 s for a domain's lock before it gives up. */
#define DEADLINE_NS (60 * WSS_NS_PER_S)
/* At a time. */
#define WORKERS 16

struct restoring {
	struct wss_conn *conn;
	struct wss_journal_open *open;
	size_t n;
	pthread_mutex_t lock; /* of what follows */
	size_t next;
	struct wss_history *history;
	struct wss_tally tally;
	size_t refused; /* words that fit two guests */
	bool left_behind; /* some thread may still use the connection */
};

/* Its own memory, as a thread that is late outlives the turn. */
struct turn {
	struct wss_conn *conn;
	struct wss_journal_open open;
	struct wss_deadline deadline;
	bool given; /* it was there to take it */
	struct wss_error error;
};

/* A guest that has ended has given everything back. But this may be another host, or user. */
static void judge_gone(struct turn *turn)
{
	const char *uri = turn->open.uri;

	wss_error_clear(&turn->error);
	if (*uri && strcmp(uri, wss_conn_uri(turn->conn)) != 0)
		wss_error_set(&turn->error, WSS_ERR_GONE,
			      "not known here; its memory was taken through -c '%s'", uri);
}

static void give_step(void *opaque)
{
	struct turn *turn = opaque;
	const struct wss_domain_ref ref = { turn->open.name, turn->open.uuid };
	struct wss_guest *guest = NULL;
	uint64_t bytes;

	if (wss_conn_guest(turn->conn, &ref, &turn->deadline, &guest, &turn->error) < 0) {
		if (turn->error.code == WSS_ERR_GONE)
			judge_gone(turn);
		return;
	}
	bytes = wss_balloon_due(guest, turn->open.original_bytes,
				guest->balloon_bytes.known ? guest->balloon_bytes.value : 0);
	if (guest->kept)
		wss_error_set(&turn->error, WSS_ERR_FAILED,
			      "it is %s, and shrunk: what it has to get back it gets when it runs here",
			      guest->state_text);
	else if (guest->state != WSS_GUEST_SHUTOFF)
		turn->given = guest->ops->set_balloon(guest, bytes, &turn->error) == 0;
	wss_guest_free(guest);
}

/* Without the journal, and without the lock. */
static int give(struct restoring *all, const struct wss_journal_open *open, bool *ret_given,
		struct wss_error *err)
{
	struct turn *turn = calloc(1, sizeof(*turn));
	struct wss_work work = { give_step, free, turn, NULL };

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
	*ret_given = turn->given;
	free(turn);
	return err->code ? -1 : 0;
}

/* Under the lock. */
static void conclude(struct restoring *all, const struct wss_journal_open *open, bool given,
		     struct wss_error *err)
{
	char size[16];

	all->left_behind = all->left_behind || err->code == WSS_ERR_TIMEOUT;
	wss_size_format(open->original_bytes, size, sizeof(size));
	if (given)
		wss_log(WSS_LOG_INFO, "%s: given back to %s", open->name, size);
	if (err->code || wss_journal_done(all->history, open->uuid, err) < 0)
		wss_tally_bad(&all->tally, open->name, err);
}

static void *work(void *opaque)
{
	struct restoring *all = opaque;

	pthread_mutex_lock(&all->lock);
	while (all->next < all->n) {
		const struct wss_journal_open *open = &all->open[all->next++];
		struct wss_error err = WSS_ERROR_INIT;
		bool given = false;

		pthread_mutex_unlock(&all->lock);
		give(all, open, &given, &err);
		pthread_mutex_lock(&all->lock);
		conclude(all, open, given, &err);
	}
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

/* Where there are no threads to be had it takes longer. */
static void restore_all(struct restoring *all)
{
	pthread_t workers[WORKERS - 1];
	size_t n = 0;

	pthread_mutex_init(&all->lock, NULL);
	while (n < WORKERS - 1 && n + 1 < all->n &&
	       pthread_create(&workers[n], NULL, work, all) == 0)
		n++;
	work(all);
	while (n > 0)
		pthread_join(workers[--n], NULL);
	pthread_mutex_destroy(&all->lock);
}

/* Where it cannot be written, on a full disk for one, memory is given back all the same. */
static int open_history(const char *path, struct wss_history **ret_history, struct wss_error *err)
{
	struct wss_error ignored = WSS_ERROR_INIT;

	if (wss_history_open(path, ret_history, err) == 0)
		return 0;
	if (wss_history_open_readonly(path, ret_history, &ignored) < 0)
		return -1;
	wss_error_clear(err);
	return 0;
}

static bool fits(const struct wss_cli *cli, const char *word, const struct wss_journal_open *open)
{
	return !strcasecmp(word, open->uuid) || (!cli->by_uuid && !strcmp(word, open->name));
}

static void refuse_two(struct restoring *all, const char *word, size_t first, size_t second)
{
	struct wss_error err = WSS_ERROR_INIT;

	wss_error_set(&err, WSS_ERR_FAILED,
		      "fits two guests in the journal, '%.80s' (UUID %s) and '%.80s' (UUID %s): "
		      "use the UUID, with --uuid",
		      all->open[first].name, all->open[first].uuid, all->open[second].name,
		      all->open[second].uuid);
	wss_tally_bad(&all->tally, word, &err);
	all->refused++;
}

/* Marks the guest that a word of the command line names. */
static void choose(const struct wss_cli *cli, struct restoring *all, const char *word,
		   bool *chosen)
{
	size_t found = all->n;

	for (size_t i = 0; i < all->n; i++) {
		if (!fits(cli, word, &all->open[i]))
			continue;
		if (found < all->n) {
			refuse_two(all, word, found, i);
			return;
		}
		found = i;
	}
	if (found < all->n)
		chosen[found] = true;
	else /* Who has misspelt a name must not believe that it was done. */
		wss_log(WSS_LOG_INFO, "%s: the journal has nothing that was taken from it", word);
}

/* Leaves those that the command line names. */
static int drop_unnamed(const struct wss_cli *cli, struct restoring *all, struct wss_error *err)
{
	wss_auto_free bool *chosen = calloc(all->n + 1, sizeof(*chosen));
	size_t kept = 0;

	if (!cli->n_domains)
		return 0;
	if (!chosen)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	for (int i = 0; i < cli->n_domains; i++)
		choose(cli, all, cli->domains[i], chosen);
	for (size_t i = 0; i < all->n; i++)
		if (chosen[i])
			all->open[kept++] = all->open[i];
	all->n = kept;
	return 0;
}

int wss_balloon_restore(const struct wss_cli *cli, const struct balloon_options *options)
{
	wss_auto_free char *path = wss_store_path(&options->sizing.history);
	struct restoring all = { .conn = NULL };
	struct wss_error err = WSS_ERROR_INIT;
	int r = path ? open_history(path, &all.history, &err) : -1;

	if (r == 0)
		r = wss_journal_unfinished(all.history, NULL, &all.open, &all.n, &err);
	if (r == 0)
		r = drop_unnamed(cli, &all, &err);
	if (r == 0 && all.n)
		r = wss_conn_open(cli->uri, &all.conn, &err);
	if (r == 0)
		restore_all(&all);
	if (!all.left_behind)
		wss_conn_close(all.conn);
	wss_history_close(all.history);
	free(all.open);
	return r < 0 ? wss_cli_error(&err) : wss_tally_exit_code(&all.tally, all.n + all.refused);
}
