/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All guests that the controller looks after, and what their tenders share. Private to
 * control/. */
#ifndef WSS_CONTROL_TENDING_H
#define WSS_CONTROL_TENDING_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/stop.h"
#include "control/controller.h"
#include "service/target.h"
#include "store/lock.h"

struct tender;

struct tending {
	struct wss_balloon_options options;
	struct wss_targets targets; /* each tender takes over the one that it is given */
	int watchdog;
	uint64_t beat_ns;   /* of the main thread: when the watchdog last heard from it */
	atomic_bool ending; /* everything is to be given back, as after a stop request */
	/*
	 * Another process may keep the history from us for as long as it likes. So nothing
	 * that a guest in need waits for is done under its lock, and steps are journaled by a
	 * connection of their own, which does not wait for long.
	 */
	struct wss_shared_history history, journal;
	pthread_mutex_t events_lock; /* of these two */
	struct wss_control_events events;
	bool muted;	       /* whoever listens to the events is gone */
	pthread_mutex_t lock;  /* of what follows */
	size_t total, missing; /* guests; of these those that nobody misses */
	size_t threads,
		busy; /* threads; guests that have, or may have, something to get back */
	struct tender *tenders;
};

static inline void tending_lock(struct tending *tending)
{
	pthread_mutex_lock(&tending->lock);
}

static inline void tending_unlock(struct tending *tending)
{
	pthread_mutex_unlock(&tending->lock);
}

/* Nothing new is begun from then on. */
static inline bool tending_is_ending(const struct tending *tending)
{
	return wss_stop_requested() || tending->ending;
}

void wss_tending_init(struct tending *tending, const struct wss_balloon_options *options,
		      const struct wss_control_events *events);

/* Before any guest is taken on; closed by wss_tending_free(). */
int wss_tending_open_history(struct tending *tending, const char *path, struct wss_error *err);

/* Takes on a guest that has not been opened; owns the target from now on, also on failure. */
int wss_tending_add(struct tending *tending, struct wss_target *target, struct wss_error *err);

/* Report what has happened to a guest, from any thread. */
void wss_tending_moved(struct tending *tending, const struct wss_control_move *move);
void wss_tending_trouble(struct tending *tending, const char *guest,
			 const struct wss_error *why);

void wss_tending_progress(struct tending *tending, const char *guest, const char *text);

/* Nothing is reported from now on. */
void wss_tending_mute(struct tending *tending);

/* Guests that are missed where they could not be looked after. */
size_t wss_tending_missed(struct tending *tending);

/* Threads that are under way; guests that are, or may be, shrunk. */
size_t wss_tending_threads(struct tending *tending);
size_t wss_tending_busy(struct tending *tending);

/*
 * Reports trouble with each guest that libvirt has not answered for in a minute. Returns how
 * many such guests there are, those that are shrunk but away included.
 */
size_t wss_tending_stuck(struct tending *tending);

/* Once no thread is under way. */
void wss_tending_free(struct tending *tending);

#endif
