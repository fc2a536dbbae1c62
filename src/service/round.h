/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The round: measures many guests, of which each may hang, without one holding up the others.
 *
 * Theory of operation. Each target that joins gets a worker (base/worker.h) that opens it and takes it
 * through its windows (service/measure.h); a second one, if the front end wants it published. What a
 * worker has to say goes into a queue, from which the thread that runs the round takes it and tells the
 * front end: all events come in that thread, one after the other.
 *
 *   joined -> opening -> [opened: wanted?] -> measuring -> [publish?] -> publishing -> done
 *
 * Opening and measuring are two works of one target, as what the front end decides in between, such as
 * whether the guest is due, is not the worker's to know. The gate (service/gate.h) lets no more than so
 * many windows be open at once, and no two guests be armed at the same time.
 *
 * A worker that is late is left behind with its target: the front end hears of it as trouble, its place
 * in the gate is free, and whatever it still does, it does to that guest alone. Its token has been
 * requested, so when it wakes it restores the guest and ends.
 */
#ifndef WSS_SERVICE_ROUND_H
#define WSS_SERVICE_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "service/measure.h"
#include "service/publish.h"
#include "service/target.h"
#include "wss/profile.h"

/* Windows at the same time, where nothing else is said. */
#define WSS_ROUND_JOBS_DEFAULT 8

struct wss_round_options {
	struct wss_measure_options measure;
	unsigned jobs; /* windows at the same time, at least 1 */
	enum wss_publish_when publish_when;
	bool persistent; /* publish in the configuration, too */
	const struct wss_cancel *cancel; /* of the round as a whole; NULL: the stop signal */
};

/* How far a round is. */
struct wss_round_progress {
	size_t n;	 /* targets that have joined */
	size_t done;	 /* of them, measured or not */
	uint64_t end_ns; /* when the last of the open windows ends, wss_clock_now_ns(); 0: none is */
};

/*
 * What a front end is told, in the thread that runs the round. Any may be NULL. In trouble() only
 * name, uuid and data of the target may be looked at where ret_left is set: its worker has it.
 */
struct wss_round_events {
	/* It could be opened: true to measure it. NULL: all are measured. */
	bool (*opened)(struct wss_target *target, void *opaque);
	/*
	 * It is not measured, and not missed: one of all guests that is left out, or the guest of a
	 * target before under another name. Not called for one that opened() did not want.
	 */
	void (*left_out)(struct wss_target *target, void *opaque);
	/* A sample, good or bad. last: no other follows for this target. */
	void (*sample)(struct wss_target *target, const struct wss_sample *sample, bool last,
		       void *opaque);
	/* After the last sample: true to have *ret_profile published. */
	bool (*publish)(struct wss_target *target, struct wss_profile *ret_profile, void *opaque);
	/* Something other than a window went wrong, such as publishing, or its worker was left. */
	void (*trouble)(struct wss_target *target, const struct wss_error *error, void *opaque);
	/* Now and then. */
	void (*progress)(const struct wss_round_progress *progress, void *opaque);
};

struct wss_round;

/* No two guests of a host are armed within this, unless the round would take too long by it. */
#define WSS_ROUND_STAGGER_NS WSS_NS_PER_S

/*
 * How far apart n guests are armed: as far as the round's length allows, and not so far that windows
 * would come late.
 */
uint64_t wss_round_stagger_ns(const struct wss_measure_options *measure, size_t n);

/* About how long a round over n guests takes, if none of them is late: what a countdown starts from. */
uint64_t wss_round_length_ns(const struct wss_round_options *options, size_t n);

/* options and events are copied. For wss_round_free(). WSS_ERR_NO_MEMORY. */
int wss_round_new(const struct wss_round_options *options, const struct wss_round_events *events,
		  void *opaque, struct wss_round **ret_round, struct wss_error *err);

/*
 * A target joins, before the round runs or from one of its events; it belongs to the round from then on.
 * may_be_left_out: where wss_target_is_left_out() it is not measured. On failure it is still the caller's:
 * WSS_ERR_NO_MEMORY, WSS_ERR_FAILED.
 */
int wss_round_join(struct wss_round *round, struct wss_target *target, bool may_be_left_out,
		   struct wss_error *err);

/* A target leaves: its window is closed as soon as possible, without a sample, and it is freed. */
void wss_round_leave(struct wss_round *round, struct wss_target *target);

/*
 * Waits a moment (50 ms at most) and tells the front end what has happened meanwhile. True while there
 * are targets. A round whose token is requested has its targets end, and leaves those that do not within
 * WSS_WORKER_CANCEL_NS.
 */
bool wss_round_step(struct wss_round *round);

/*
 * Spreads the targets that have joined over the time that the round has, and steps until all are done.
 * WSS_ERR_INTERRUPTED when the round was cancelled: every guest is as it was, and what had been measured
 * has been told.
 */
int wss_round_run(struct wss_round *round, struct wss_error *err);

/* Leaves behind what still runs. Takes NULL. */
void wss_round_free(struct wss_round *round);

#endif
