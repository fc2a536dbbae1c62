/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by tender.c (a guest is looked at), measure.c (it is measured) and
 * tending.c (all of them).
 */
#ifndef WSS_CONTROL_TENDER_PRIVATE_H
#define WSS_CONTROL_TENDER_PRIVATE_H

#include "base/stop.h"
#include "control/tending.h"

/* A step that the history keeps waiting for longer is put off. */
#define STEPS_PATIENCE_MS 1000
/* Between two looks at the statistics. */
#define LOOK_NS WSS_NS_PER_S

struct tender {
	struct tending *tending;
	const char *name; /* the target's */
	char uuid[WSS_UUID_TEXT_MAX]; /* once it is opened */
	struct wss_target *target; /* of the thread that looks */
	struct wss_balloon balloon;
	struct balloon_reports reports;
	uint64_t actual_bytes;
	uint64_t maximum_bytes; /* that the guest could have when the first step was taken */
	uint64_t refreshed_ns;
	bool shrunk;	 /* something is to be given back */
	bool watched;	 /* in the watchdog's charge, too */
	bool may_step;	 /* as the last refresh had it */
	const char *end; /* why it is left alone, once that is so */
	unsigned short_looks; /* that failed for lack of memory, since one that did not */
	struct tender *next;
	size_t number;

	atomic_bool over;
	atomic_bool in_charge;	     /* taken on, and perhaps shrunk */
	atomic_bool away;	     /* shrunk, and saved or moved: may be back one day */
	_Atomic uint64_t looked_ns; /* when it last had an answer */
	bool stuck;		     /* of the main thread: that it has been said */

	/*
	 * Under the lock. No step is begun while a window is open or about to be, and none is opened
	 * while a step is under way: what the guest touches to free memory is none of its set.
	 */
	bool measuring; /* changed by the thread that measures, */
	bool moving;	/* and by the one that looks */

	/* From the thread that measures, under the lock. */
	struct balloon_record record;
	struct wss_policy policy;
	bool opted_out;

	int64_t measured_s; /* of that thread: the end of the newest window */
};

static inline void tending_lock(struct tending *tending)
{
	pthread_mutex_lock(&tending->lock);
}

static inline void tending_unlock(struct tending *tending)
{
	pthread_mutex_unlock(&tending->lock);
}

static inline void tending_lock_history(struct tending *tending)
{
	pthread_mutex_lock(&tending->history_lock);
}

static inline void tending_unlock_history(struct tending *tending)
{
	pthread_mutex_unlock(&tending->history_lock);
}

/* By a clock that nobody sets, a call that the ThreadSanitizer of GCC 12 does not know. */
#ifdef __SANITIZE_THREAD__
#define LOCK_CLOCK CLOCK_REALTIME
#define lock_until(lock, deadline) pthread_mutex_timedlock(lock, deadline)
#else
#define LOCK_CLOCK CLOCK_MONOTONIC
#define lock_until(lock, deadline) pthread_mutex_clocklock(lock, LOCK_CLOCK, deadline)
#endif

/* False where others, who may be waiting themselves, do not let go of it in time. */
static inline bool tending_lock_steps(struct tending *tending)
{
	struct timespec deadline;

	clock_gettime(LOCK_CLOCK, &deadline);
	deadline.tv_sec += STEPS_PATIENCE_MS / 1000;
	return lock_until(&tending->steps_lock, &deadline) == 0;
}

static inline void tending_unlock_steps(struct tending *tending)
{
	pthread_mutex_unlock(&tending->steps_lock);
}

/* Nothing new is begun from then on. */
static inline bool tending_is_ending(const struct tending *tending)
{
	return wss_stop_requested() || tending->ending;
}

/* Runs a thread of a tender, which is counted until it calls the second of these. */
int wss_tender_start(struct tender *tender, void (*run)(void *), struct wss_error *err);
void wss_tender_thread_ended(struct tending *tending);

/* What the two threads run. */
void wss_tender_look(void *tender);
void wss_tender_measure(void *tender);

/*
 * Reads anew what the history knows of the guest, by this policy; newest: a window that was just
 * taken, or NULL.
 */
int wss_tender_read_record(struct tender *tender, const struct wss_policy *policy,
			   const struct wss_sample *newest, struct wss_error *err);

#endif
