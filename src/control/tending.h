/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One guest under balloon --apply, in two threads of its own: one looks at it every second and
 * does what wss/balloon.h decides, the other measures it every period. libvirt may let either
 * wait for as long as it likes: that holds up no other guest, and what a thread that is left
 * behind still uses stays where it is.
 */
#ifndef WSS_CONTROL_TENDING_H
#define WSS_CONTROL_TENDING_H

#include <pthread.h>
#include <stdatomic.h>

#include "control/look.h"
#include "store/history.h"

struct tender;

/* What all of them share. */
struct tending {
	struct balloon_options options;
	/* Of these a tender takes over the one that it is given. */
	struct wss_targets targets;
	int watchdog;
	uint64_t beat_ns;	  /* of the main thread: when the watchdog last heard from it */
	atomic_bool ending;	  /* everything is to be given back, as after a stop request */
	/*
	 * Another process may keep the history from us for as long as it likes. So nothing that a
	 * guest in need waits for is done under its lock, and steps are journaled by a connection
	 * of their own, which does not wait for long.
	 */
	pthread_mutex_t history_lock, steps_lock;
	struct wss_history *history, *steps;
	pthread_mutex_t lock; /* of what follows */
	struct wss_tally tally;
	size_t total, missing;	  /* guests; of these those that nobody misses */
	size_t threads, busy;	  /* threads; guests that have, or may have, something to get back */
	struct tender *tenders;
};

void wss_tending_init(struct tending *tending, const struct balloon_options *options);

/* Before any guest is taken on; closed by wss_tending_free(). */
int wss_tending_open_history(struct tending *tending, const char *path, struct wss_error *err);

/* Takes on a guest that has not been opened, and the target, also on failure. */
int wss_tending_add(struct tending *tending, struct wss_target *target, struct wss_error *err);

/* Threads that are under way; guests that are, or may be, shrunk. */
size_t wss_tending_threads(struct tending *tending);
size_t wss_tending_busy(struct tending *tending);

/*
 * Warns of each guest that libvirt has not answered for in a minute: how many there are, and of
 * those that are shrunk but away.
 */
size_t wss_tending_stuck(struct tending *tending);

/* Once no thread is under way. */
void wss_tending_free(struct tending *tending);

#endif
