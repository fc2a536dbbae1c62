/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The round: measures many guests, any of which may hang, without one delaying the others.
 *
 * Theory of operation. Each target that joins gets a worker (base/worker.h) that opens it and
 * takes it through its windows (measure/measure.h), and another one if the caller wants it
 * published. Workers put samples into a queue. The thread that runs the round takes them from
 * the queue and passes them to the caller, so that all events occur in that thread, one
 * after the other.
 *
 *   joined -> opening -> [opened: wanted?] -> measuring -> [publish?] -> publishing -> done
 *
 * Opening and measuring are two pieces of work for one target, because the caller decides
 * in between, for example whether the guest is due. A caller that has nothing to decide saves
 * the change of threads (at_once). The gate (measure/gate.h) limits the
 * number of open windows, and lets no two guests be armed at the same time.
 *
 * A worker that is late is left behind with its target. The caller gets this as trouble,
 * its place in the gate becomes free, and whatever it still does affects only that guest. Its
 * token has been requested, so when it wakes up it restores the guest and ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "measure/measure.h"
#include "measure/profile.h"
#include "measure/publish.h"
#include "measure/target.h"

/* Default number of windows open at the same time. */
#define WSS_ROUND_JOBS_DEFAULT 8

struct wss_round_options {
	struct wss_measure_options measure;
	unsigned jobs; /* number of windows open at the same time, at least 1 */
	enum wss_publish_when publish_when;
	bool persistent;		 /* also publish in the domain's configuration */
	const struct wss_cancel *cancel; /* token of the whole round; NULL: the stop signal */
	/*
	 * A guest is measured as soon as it is open, in the same worker: opened() is not called, and no two
	 * targets may be the same guest.
	 */
	bool at_once;
	/* How long guests may take to be restored after a request; 0: WSS_WORKER_CANCEL_NS. */
	uint64_t cancel_ns;
};

/* Progress of a round. */
struct wss_round_progress {
	size_t n;    /* number of targets that have joined */
	size_t done; /* number of these that are finished, measured or not */
	/* When the last of the open windows ends, a time of wss_clock_now_ns(); 0: none is open. */
	uint64_t end_ns;
};

/*
 * Events for the caller, called in the thread that runs the round. Any may be NULL. If
 * ret_left is set, trouble() may look only at the target's name, uuid and data, because the
 * worker owns the target.
 */
struct wss_round_events {
	/* The target has been opened; returns whether to measure it. NULL: all are measured. */
	bool (*opened)(struct wss_target *target, void *opaque);
	/*
	 * The target is not measured, which is not a failure: it was left out of "all guests",
	 * or an earlier target is the same guest under another name. Not called for targets
	 * that opened() rejected.
	 */
	void (*left_out)(struct wss_target *target, void *opaque);
	/* A sample, good or bad. last: no other sample of this target follows. */
	void (*sample)(struct wss_target *target, const struct wss_sample *sample, bool last,
		       void *opaque);
	/* Called after the last sample; returns whether to publish *ret_profile. */
	bool (*publish)(struct wss_target *target, struct wss_profile *ret_profile, void *opaque);
	/*
	 * Something other than a window has failed, such as publishing, or the worker was left
	 * behind.
	 */
	void (*trouble)(struct wss_target *target, const struct wss_error *error, void *opaque);
	/* The target is done with, however that came: the last event about it. Only its data may be looked at. */
	void (*done)(struct wss_target *target, void *opaque);
	/* Called repeatedly while the round runs. */
	void (*progress)(const struct wss_round_progress *progress, void *opaque);
};

struct wss_round;

/* Least time between two armings on a host, unless that would make the round too long. */
#define WSS_ROUND_STAGGER_NS WSS_NS_PER_S

/*
 * Returns the time between the armings of n guests: as long as the round's length allows, but
 * not so long that windows would be late.
 */
uint64_t wss_round_stagger_ns(const struct wss_measure_options *measure, size_t n);

/* Estimates the length of a round over n guests if none of them is late, for a countdown. */
uint64_t wss_round_length_ns(const struct wss_round_options *options, size_t n);

/*
 * Makes a round; options and events are copied. Free it with wss_round_free().
 * WSS_ERR_NO_MEMORY.
 */
int wss_round_new(const struct wss_round_options *options, const struct wss_round_events *events,
		  void *opaque, struct wss_round **ret_round, struct wss_error *err);

/*
 * Adds a target, before the round runs or from one of its events. The round owns it from then
 * on. measure, which is copied, says how to measure it; NULL: the round's options do.
 * may_be_left_out: do not measure it if wss_target_is_left_out(). On failure the caller
 * still owns it: WSS_ERR_NO_MEMORY, WSS_ERR_FAILED.
 */
int wss_round_join(struct wss_round *round, struct wss_target *target,
		   const struct wss_measure_options *measure, bool may_be_left_out,
		   struct wss_error *err);

/*
 * For a round without end, which is stepped: sets how many windows there may be at the same
 * time, and the time from one arming to the next. wss_round_run() chooses the latter itself.
 */
void wss_round_set_pace(struct wss_round *round, unsigned jobs, uint64_t stagger_ns);

/*
 * Removes a target: its window is closed as soon as possible, without a sample, and the target
 * is freed.
 */
void wss_round_leave(struct wss_round *round, struct wss_target *target);

/*
 * Waits for a worker, at most WSS_COND_MOMENT_NS, and passes events to the caller. Returns
 * true while there are targets. After its token has been requested, the round ends its targets,
 * and leaves behind those that do not end within WSS_WORKER_CANCEL_NS.
 */
bool wss_round_step(struct wss_round *round);

/*
 * The same, but waits at most wait_ns, which is how late it may notice the token or a late worker; 0: not at all, for
 * a caller that waits for something else between two steps.
 */
bool wss_round_step_for(struct wss_round *round, uint64_t wait_ns);

/*
 * Spreads the targets over the time of the round, and takes steps until all are done.
 * WSS_ERR_INTERRUPTED if the round was cancelled: then every guest has been restored, and all
 * samples taken have been passed on.
 */
int wss_round_run(struct wss_round *round, struct wss_error *err);

/* Frees a round, leaving running workers behind. Accepts NULL. */
void wss_round_free(struct wss_round *round);
