/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All guests that the controller looks after, and the data that their threads share. Private
 * to balloon/.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "balloon/controller.h"
#include "base/background.h"
#include "base/stop.h"
#include "history/lock.h"
#include "measure/target.h"

struct controlled;

struct controller {
	struct wss_balloon_options options;
	struct wss_targets targets; /* each controlled guest takes over its own */
	int watchdog;
	uint64_t beat_ns; /* of the main thread: time of the last beat to the watchdog */
	/* Everything is to be given back, for example after a stop request. */
	atomic_bool ending;
	/*
	 * Another process may lock the history for any length of time. Nothing that a guest in
	 * need waits for is therefore done under its lock, and steps are journaled through a
	 * connection of their own, which waits only briefly.
	 */
	struct wss_shared_history history, journal;
	/* Looks whether the history is in its place, as its disk may hang: under the lock. NULL: not yet. */
	struct wss_background *place;
	atomic_bool displaced;	     /* what came of the last look */
	pthread_mutex_t events_lock; /* protects the next two members */
	struct wss_control_events events;
	bool muted;	      /* nobody listens to the events any longer */
	pthread_mutex_t lock; /* protects the members below */
	/* Number of guests, and how many of them need no looking after. */
	size_t total, missing;
	size_t threads, busy; /* threads; guests that (may) have memory to get back */
	struct controlled *guests;
};

static inline void controller_lock(struct controller *controller)
{
	pthread_mutex_lock(&controller->lock);
}

static inline void controller_unlock(struct controller *controller)
{
	pthread_mutex_unlock(&controller->lock);
}

/* Whether the controller is ending, after which nothing new begins. */
static inline bool controller_is_ending(const struct controller *controller)
{
	return wss_stop_requested() || controller->ending;
}

void wss_controller_init(struct controller *controller, const struct wss_balloon_options *options,
			 const struct wss_control_events *events);

/* Opens the history before any guest is taken on; wss_controller_free() closes it. */
int wss_controller_open_history(struct controller *controller, const char *path,
				struct wss_error *err);

/* Whether the history is in its place: by the last look that has ended where its disk does not answer now. */
bool wss_controller_history_in_place(struct controller *controller);

/* Adds a guest that has not been opened. Owns the target from then on, on failure as well. */
int wss_controller_add(struct controller *controller, struct wss_target *target,
		       struct wss_error *err);

/* Report an event of a guest. Any thread may call these. */
void wss_controller_moved(struct controller *controller, const struct wss_control_move *move);
void wss_controller_trouble(struct controller *controller, const char *guest,
			    const struct wss_error *why);

void wss_controller_progress(struct controller *controller, const char *guest, const char *text);
void wss_controller_squeezed(struct controller *controller, const struct wss_target *target,
			     const struct wss_squeeze *squeeze);

/* Ends all reports. */
void wss_controller_mute(struct controller *controller);

/* Returns the number of guests that should have been looked after and could not be. */
size_t wss_controller_missed(struct controller *controller);

/* Returns the number of running threads and of guests that are, or may be, shrunk. */
size_t wss_controller_threads(struct controller *controller);
size_t wss_controller_busy(struct controller *controller);

/*
 * Reports trouble for each guest that libvirt has not answered for in a minute. Returns the
 * number of such guests, including those that are shrunk but away.
 */
size_t wss_controller_stuck(struct controller *controller);

/*
 * Frees everything. No thread of a guest may still be running. False: the disk of the journal hangs, and work that was
 * left behind uses all of it until the process ends.
 */
bool wss_controller_free(struct controller *controller);
