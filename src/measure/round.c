/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "measure/round.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/cond.h"
#include "base/worker.h"

/* How often late workers are looked for. */
#define LATE_STEP_NS (250 * WSS_NS_PER_MS)

/* A sample on its way to the caller. For message_free(). */
struct message {
	STAILQ_ENTRY(message) place;
	struct entry *entry;
	bool last;
	struct wss_sample sample;
};

/*
 * Shared by the round and its workers. Freed when the last worker has ended, including those
 * that were left behind.
 */
struct shared {
	atomic_int references;
	pthread_mutex_t lock;
	STAILQ_HEAD(, message) messages; /* under the lock */
	struct wss_gate *gate;
	struct wss_workers *workers;
	struct wss_measure_options measure;
	enum wss_publish_when publish_when;
	bool persistent;
};

enum entry_step { STEP_OPEN, STEP_MEASURE, STEP_OPEN_AND_MEASURE, STEP_PUBLISH };

/* A target in the round. Once its worker has been left behind, the worker owns it. */
struct entry {
	TAILQ_ENTRY(entry) place;
	struct shared *shared;
	struct wss_target *target;
	struct wss_worker *worker; /* NULL between two steps */
	enum entry_step step;
	struct wss_measure_options measure;
	bool may_be_left_out;
	bool left_out; /* found out by STEP_OPEN_AND_MEASURE */
	/* UUID of its guest; "" until it has been opened */
	char uuid[WSS_UUID_TEXT_MAX];
	bool gone; /* the round has dropped it; protected by the shared lock */
	struct wss_ticket ticket;
	struct message reserve;	    /* for a sample without memory; under the shared lock */
	bool reserve_queued;	    /* likewise */
	struct wss_profile profile; /* profile to publish */
	struct wss_error error;	    /* error of publishing */
};

struct wss_round {
	struct shared *shared;
	struct wss_round_events events;
	void *opaque;
	const struct wss_cancel *cancel;
	bool at_once;
	uint64_t cancel_ns;    /* until workers are left behind after that */
	uint64_t cancelled_ns; /* when the token was first seen requested; 0: not yet */
	uint64_t look_ns;      /* when to look for late workers */
	unsigned finished;     /* workers that were done when those were last looked for */
	TAILQ_HEAD(, entry) entries;
	struct wss_round_progress progress;
};

/* The caller holds the shared lock where the message is of an entry. */
static void message_free(struct message *message)
{
	struct entry *entry = message->entry;

	if (message == &entry->reserve)
		entry->reserve_queued = false;
	else
		free(message);
}

static void shared_unref(struct shared *shared)
{
	if (!shared || atomic_fetch_sub(&shared->references, 1) != 1)
		return;
	wss_gate_free(shared->gate);
	wss_workers_free(shared->workers);
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

static struct shared *shared_new(const struct wss_round_options *options)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->references = 1;
	pthread_mutex_init(&shared->lock, NULL);
	STAILQ_INIT(&shared->messages);
	shared->measure = options->measure;
	shared->publish_when = options->publish_when;
	shared->persistent = options->persistent;
	shared->gate = wss_gate_new(options->jobs, WSS_ROUND_STAGGER_NS);
	shared->workers = wss_workers_new();
	if (shared->gate && shared->workers)
		return shared;
	shared_unref(shared);
	return NULL;
}

static void entry_free(void *opaque)
{
	struct entry *entry = opaque;

	wss_target_free(entry->target);
	shared_unref(entry->shared);
	free(entry);
}

int wss_round_new(const struct wss_round_options *options, const struct wss_round_events *events,
		  void *opaque, struct wss_round **ret_round, struct wss_error *err)
{
	struct wss_round *round = calloc(1, sizeof(*round));

	if (!round || !(round->shared = shared_new(options))) {
		free(round);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	TAILQ_INIT(&round->entries);
	round->events = *events;
	round->opaque = opaque;
	round->cancel = options->cancel;
	round->at_once = options->at_once;
	round->cancel_ns = options->cancel_ns ? options->cancel_ns : WSS_WORKER_CANCEL_NS;
	*ret_round = round;
	return 0;
}

/* --- in the workers --- */

static void open_run(void *opaque)
{
	struct entry *entry = opaque;

	wss_target_open(entry->target);
	wss_target_charge(entry->target);
}

/*
 * Without memory a sample takes the entry's reserve. If that still waits, the sample is lost, which is reported.
 * A worker that waits for an answer to its sample loses none.
 */
static void queue_sample(const struct wss_sample *sample, bool last, void *opaque)
{
	struct entry *entry = opaque;
	struct shared *shared = entry->shared;
	struct message *message = malloc(sizeof(*message));

	wss_target_charge(entry->target);
	pthread_mutex_lock(&shared->lock);
	if (!message && !entry->gone && !entry->reserve_queued) {
		message = &entry->reserve;
		entry->reserve_queued = true;
	}
	if (message && !entry->gone) {
		message->entry = entry;
		message->last = last;
		wss_sample_copy(&message->sample, sample);
		STAILQ_INSERT_TAIL(&shared->messages, message, place);
		message = NULL;
	} else if (!message) {
		wss_error_set(&entry->error, WSS_ERR_NO_MEMORY, "out of memory: a sample is lost");
	}
	pthread_mutex_unlock(&shared->lock);
	free(message);
	/* After the last sample the worker has only to let go of the guest, and its end wakes the round, too. */
	if (!last)
		wss_workers_wake(shared->workers);
}

static void measure_run(void *opaque)
{
	struct entry *entry = opaque;
	const struct wss_measure_place place = {entry->shared->gate, &entry->ticket};

	wss_measure_run(entry->target, &entry->measure, &place, queue_sample, entry);
	wss_target_charge(entry->target);
}

static void open_and_measure_run(void *opaque)
{
	struct entry *entry = opaque;

	open_run(entry);
	entry->left_out = entry->may_be_left_out && wss_target_is_left_out(entry->target);
	if (entry->left_out)
		return;
	measure_run(entry);
	/* Here its descriptors are still in the processor's cache, which the thread of the round would have to fill. */
	if (entry->target->guest)
		wss_guest_detach(entry->target->guest);
	wss_target_charge(entry->target);
}

static void publish_run(void *opaque)
{
	struct entry *entry = opaque;

	wss_deadline_renew(&entry->target->deadline);
	wss_publish(entry->target, &entry->profile, entry->shared->publish_when,
		    entry->shared->persistent, &entry->error);
}

/* --- in the thread that runs the round --- */

static int entry_start(struct entry *entry, enum entry_step step, struct wss_error *err)
{
	static void (*const runs[])(void *opaque) = {
		[STEP_OPEN] = open_run,
		[STEP_MEASURE] = measure_run,
		[STEP_OPEN_AND_MEASURE] = open_and_measure_run,
		[STEP_PUBLISH] = publish_run,
	};
	const struct wss_work work = {runs[step], entry_free, entry, &entry->target->deadline};

	entry->step = step;
	return wss_worker_start(entry->shared->workers, &work, &entry->worker, err);
}

int wss_round_join(struct wss_round *round, struct wss_target *target,
		   const struct wss_measure_options *measure, bool may_be_left_out,
		   struct wss_error *err)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	atomic_fetch_add(&round->shared->references, 1);
	entry->shared = round->shared;
	entry->target = target;
	entry->measure = measure ? *measure : round->shared->measure;
	entry->may_be_left_out = may_be_left_out;
	if (entry_start(entry, round->at_once ? STEP_OPEN_AND_MEASURE : STEP_OPEN, err) < 0) {
		entry->target = NULL;
		entry_free(entry);
		return -1;
	}
	TAILQ_INSERT_TAIL(&round->entries, entry, place);
	round->progress.n++;
	return 0;
}

static void round_trouble(const struct wss_round *round, struct entry *entry,
			  const struct wss_error *error)
{
	if (round->events.trouble)
		round->events.trouble(entry->target, error, round->opaque);
}

/* Removes an entry from the list; samples that it has queued are not emitted. */
static void round_remove(struct wss_round *round, struct entry *entry)
{
	struct shared *shared = round->shared;
	struct message *message, *next;

	TAILQ_REMOVE(&round->entries, entry, place);
	round->progress.done++;
	if (round->events.done)
		round->events.done(entry->target, round->opaque);
	pthread_mutex_lock(&shared->lock);
	entry->gone = true;
	for (message = STAILQ_FIRST(&shared->messages); message; message = next) {
		next = STAILQ_NEXT(message, place);
		if (message->entry != entry)
			continue;
		STAILQ_REMOVE(&shared->messages, message, message, place);
		message_free(message);
	}
	pthread_mutex_unlock(&shared->lock);
	wss_gate_leave(shared->gate, &entry->ticket);
}

static void round_finish(struct wss_round *round, struct entry *entry)
{
	round_remove(round, entry);
	entry_free(entry);
}

/* Does not read the guest's name, which another thread may be writing. */
static void round_abandon(struct wss_round *round, struct entry *entry)
{
	struct wss_error error = WSS_ERROR_INIT;
	struct wss_worker *worker = entry->worker;

	wss_deadline_error(&entry->target->deadline, &error);
	round_trouble(round, entry, &error);
	round_remove(round, entry);
	if (!wss_worker_leave(worker, &entry->target->cancel)) {
		wss_worker_join(worker);
		entry_free(entry);
	}
}

/*
 * Whether an earlier entry is the same guest under another name; this one would only wait for
 * its lock.
 */
static bool round_has_guest(const struct wss_round *round, const struct entry *entry)
{
	const struct entry *other;

	if (!entry->uuid[0])
		return false;
	TAILQ_FOREACH(other, &round->entries, place)
	if (other != entry && !strcmp(other->uuid, entry->uuid))
		return true;
	return false;
}

static void round_start(struct wss_round *round, struct entry *entry, enum entry_step step)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (entry_start(entry, step, &error) == 0)
		return;
	round_trouble(round, entry, &error);
	round_finish(round, entry);
}

static void entry_leave_out(struct wss_round *round, struct entry *entry)
{
	if (round->events.left_out)
		round->events.left_out(entry->target, round->opaque);
	round_finish(round, entry);
}

static void entry_opened(struct wss_round *round, struct entry *entry)
{
	const struct wss_round_events *events = &round->events;
	struct wss_target *target = entry->target;

	if (target->guest)
		memcpy(entry->uuid, target->guest->config.uuid, sizeof(entry->uuid));
	if ((entry->may_be_left_out && wss_target_is_left_out(target)) ||
	    round_has_guest(round, entry))
		entry_leave_out(round, entry);
	else if (!target->guest || !events->opened || events->opened(target, round->opaque))
		round_start(round, entry, STEP_MEASURE);
	else
		round_finish(round, entry);
}

static void entry_measured(struct wss_round *round, struct entry *entry)
{
	const struct wss_round_events *events = &round->events;
	/* The target may have left the round. */
	bool cancelled =
		wss_cancel_requested(round->cancel) || wss_cancel_requested(&entry->target->cancel);

	if (entry->error.code)
		round_trouble(round, entry, &entry->error);
	wss_error_clear(&entry->error);
	if (events->publish && entry->target->guest && !cancelled &&
	    events->publish(entry->target, &entry->profile, round->opaque))
		round_start(round, entry, STEP_PUBLISH);
	else
		round_finish(round, entry);
}

/* Continues an entry whose worker has ended and whose queued samples have been emitted. */
static void entry_next(struct wss_round *round, struct entry *entry)
{
	wss_worker_join(entry->worker);
	entry->worker = NULL;
	if (entry->step == STEP_OPEN) {
		entry_opened(round, entry);
	} else if (entry->left_out) {
		entry_leave_out(round, entry);
	} else if (entry->step != STEP_PUBLISH) {
		entry_measured(round, entry);
	} else {
		if (entry->error.code)
			round_trouble(round, entry, &entry->error);
		round_finish(round, entry);
	}
}

static struct message *take_message(struct shared *shared)
{
	struct message *message;

	pthread_mutex_lock(&shared->lock);
	message = STAILQ_FIRST(&shared->messages);
	if (message)
		STAILQ_REMOVE_HEAD(&shared->messages, place);
	pthread_mutex_unlock(&shared->lock);
	return message;
}

static void round_tell_samples(struct wss_round *round)
{
	struct message *message;

	while ((message = take_message(round->shared))) {
		if (round->events.sample)
			round->events.sample(message->entry->target, &message->sample,
					     message->last, round->opaque);
		pthread_mutex_lock(&round->shared->lock);
		message_free(message);
		pthread_mutex_unlock(&round->shared->lock);
	}
}

static bool entry_late(const struct wss_round *round, const struct entry *entry)
{
	return wss_worker_late(entry->worker) ||
	       (round->cancelled_ns &&
		wss_clock_now_ns() - round->cancelled_ns >= round->cancel_ns);
}

/* Seldom: a round over many guests is woken every few milliseconds. */
static bool round_looks_for_late_ones(struct wss_round *round)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (now_ns < round->look_ns)
		return false;
	round->look_ns = now_ns + LATE_STEP_NS;
	return true;
}

/* Stops at the last of those that have finished, which most often is the oldest one. */
static void step_entries(struct wss_round *round)
{
	unsigned finished = wss_workers_finished(round->shared->workers);
	unsigned n = finished - round->finished;
	bool look = round_looks_for_late_ones(round);
	struct entry *entry, *next;

	round->finished = finished;
	for (entry = TAILQ_FIRST(&round->entries); entry && (n || look); entry = next) {
		bool done = wss_worker_done(entry->worker);

		next = TAILQ_NEXT(entry, place);
		if (!done && look && entry_late(round, entry)) {
			round_abandon(round, entry);
			continue;
		}
		if (!done)
			continue;
		n -= n > 0;
		/* Samples that the worker queued are emitted before its end is handled. */
		round_tell_samples(round);
		next = TAILQ_NEXT(entry, place);
		entry_next(round, entry);
	}
}

static void round_tell_progress(struct wss_round *round)
{
	if (!round->events.progress)
		return;
	round->progress.end_ns = wss_gate_end_ns(round->shared->gate);
	round->events.progress(&round->progress, round->opaque);
}

bool wss_round_step(struct wss_round *round)
{
	return wss_round_step_for(round, WSS_COND_MOMENT_NS);
}

bool wss_round_step_for(struct wss_round *round, uint64_t wait_ns)
{
	if (TAILQ_EMPTY(&round->entries))
		return false;
	if (wait_ns)
		wss_workers_wait_ns(round->shared->workers, wait_ns);
	if (!round->cancelled_ns && wss_cancel_requested(round->cancel))
		round->cancelled_ns = wss_clock_now_ns();
	round_tell_samples(round);
	step_entries(round);
	round_tell_progress(round);
	return !TAILQ_EMPTY(&round->entries);
}

void wss_round_leave(struct wss_round *round, struct wss_target *target)
{
	struct entry *entry;

	TAILQ_FOREACH(entry, &round->entries, place)
	if (entry->target == target)
		wss_cancel_request(&target->cancel);
}

void wss_round_free(struct wss_round *round)
{
	if (!round)
		return;
	round->events = (struct wss_round_events){.progress = NULL};
	while (!TAILQ_EMPTY(&round->entries))
		round_abandon(round, TAILQ_FIRST(&round->entries));
	shared_unref(round->shared);
	free(round);
}

void wss_round_set_pace(struct wss_round *round, unsigned jobs, uint64_t stagger_ns)
{
	wss_gate_set_jobs(round->shared->gate, jobs);
	wss_gate_set_stagger(round->shared->gate, stagger_ns);
}

int wss_round_run(struct wss_round *round, struct wss_error *err)
{
	if (round->progress.n)
		wss_gate_set_stagger(
			round->shared->gate,
			wss_round_stagger_ns(&round->shared->measure, round->progress.n));
	while (wss_round_step(round))
		;
	if (wss_cancel_requested(round->cancel))
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	return 0;
}
