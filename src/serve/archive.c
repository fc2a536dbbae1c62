/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/archive.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/background.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "history/lock.h"
#include "serve/trouble.h"

/* How often what is too old is deleted. */
#define PRUNE_NS (3600 * WSS_NS_PER_S)
/* How often the history is told how cold the guests' memory is. */
#define COLDNESS_NS (300 * WSS_NS_PER_S)
/* How often a history is opened again that was removed and could not be opened again. */
#define REOPEN_NS (10 * WSS_NS_PER_S)
/* How long to wait for another process that has locked the history, and how long if the last attempt was in vain. */
#define PATIENCE_MS 500
#define RETRY_MS 20
/* How often the log says how many samples wait or were lost, while they do. */
#define TELL_NS (60 * WSS_NS_PER_S)
/* Its disk should have answered by then, and at the end of the service. */
#define LATE_NS (30 * WSS_NS_PER_S)
#define END_NS (6 * WSS_NS_PER_S)

/* How cold a guest's memory is. */
struct cold_guest {
	char uuid[WSS_UUID_TEXT_MAX];
	struct wss_cold_report report;
};

/* What is to be done with the history, and what came of it: the background's while that is under way. */
struct archive_job {
	size_t n, added;
	struct wss_sample samples[WSS_ARCHIVE_SAMPLES_MAX];
	struct cold_guest *cold; /* malloc()ed */
	size_t n_cold;
	bool prune;
	struct wss_history_limits limits;
	bool stored;		/* the samples: added of them */
	char left_out[37];	/* UUID of the last one that was not, "": all were */
	struct wss_error error; /* the first one */
};

struct wss_archive {
	/* Used by the background while that is under way. */
	struct wss_history *history;
	char *path;
	int lock; /* of the round; -1: not held */
	uint64_t reopen_ns;
	struct archive_job job;
	/* Never used by it. */
	struct wss_background *background;
	bool writing; /* it does the job */
	struct wss_history_limits limits;
	struct wss_trouble trouble;
	/* Samples of single guests that cannot be stored, the last one of this guest, while all others are. */
	struct wss_trouble losing;
	char losing_uuid[37];
	struct wss_archive_counts counts;
	uint64_t told_lost, tell_ns;
	uint64_t store_ns, prune_ns, coldness_ns; /* when due, wss_clock_now_ns() */
	size_t n;				  /* samples that wait, beside the job's */
	struct wss_sample samples[WSS_ARCHIVE_SAMPLES_MAX];
};

static void archive_free(struct wss_archive *archive)
{
	wss_history_close_unused(archive->history);
	wss_file_close_locked(&archive->lock);
	free(archive->path);
	free(archive->job.cold);
	free(archive);
}

int wss_archive_open(const char *path, struct wss_archive **ret_archive, struct wss_error *err)
{
	struct wss_archive *archive = calloc(1, sizeof(*archive));

	if (!archive)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	archive->lock = -1;
	archive->prune_ns = UINT64_MAX;
	archive->coldness_ns = wss_clock_now_ns() + COLDNESS_NS;
	archive->trouble.what = "the history";
	archive->losing.what = "the history of the guest whose samples were lost";
	archive->path = strdup(path);
	archive->background = wss_background_new();
	if (!archive->path || !archive->background) {
		wss_archive_close(archive);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (wss_history_open(path, &archive->history, err) < 0 ||
	    wss_history_lock_round(archive->history, &archive->lock, err) < 0) {
		wss_archive_close(archive);
		return -1;
	}
	wss_history_set_patience(archive->history, PATIENCE_MS);
	*ret_archive = archive;
	return 0;
}

bool wss_archive_close(struct wss_archive *archive)
{
	if (!archive)
		return true;
	if (!wss_background_end(archive->background, 0))
		return false;
	archive_free(archive);
	return true;
}

struct wss_history *wss_archive_history(struct wss_archive *archive)
{
	return archive ? archive->history : NULL;
}

struct wss_background *wss_archive_background(struct wss_archive *archive)
{
	return archive ? archive->background : NULL;
}

void wss_archive_set_limits(struct wss_archive *archive, const struct wss_history_limits *limits)
{
	if (!archive)
		return;
	archive->limits = *limits;
	archive->prune_ns = 0;
}

/* --- in the background --- */

/* Opens the history again, and takes the lock of the round, which may be another file, too. */
static int archive_reopen(struct wss_archive *archive, struct wss_error *err)
{
	wss_file_close_locked(&archive->lock);
	if (wss_history_reopen(archive->history, err) < 0)
		return -1;
	return wss_history_lock_round(archive->history, &archive->lock, err);
}

/* Goes on in a new history where the file is damaged: without it all later samples would be lost. */
static int archive_replace(struct wss_archive *archive, struct wss_error *err)
{
	struct wss_error damage = *err;
	wss_auto_free char *kept = NULL;

	wss_error_clear(err);
	wss_file_close_locked(&archive->lock);
	if (wss_history_replace(archive->history, &kept, err) < 0 ||
	    wss_history_lock_round(archive->history, &archive->lock, err) < 0) {
		archive->reopen_ns = wss_clock_now_ns() + REOPEN_NS;
		return wss_error_prefix(err, "%s: it cannot be replaced", damage.text);
	}
	wss_log(WSS_LOG_WARNING, "%s: a new history takes its place%s%s", damage.text,
		kept ? ", and what is left of it is kept as " : "", kept ? kept : "");
	return 0;
}

/*
 * Whether samples can be stored. SQLite would go on writing to a file that was removed, so it
 * is opened again; if that fails, it is tried again later, as it may take long.
 */
static int archive_check(struct wss_archive *archive, struct wss_error *err)
{
	if (wss_history_is_in_place(archive->history) && archive->lock >= 0) {
		if (wss_history_check_file(archive->history, err) == 0)
			return 0;
		return err->code == WSS_ERR_DAMAGED ? archive_replace(archive, err) : -1;
	}
	if (wss_clock_now_ns() < archive->reopen_ns)
		return wss_error_set(err, WSS_ERR_GONE,
				     "history %s: it was removed, replaced or emptied",
				     archive->path);
	if (archive_reopen(archive, err) < 0) {
		if (err->code == WSS_ERR_DAMAGED)
			return archive_replace(archive, err);
		archive->reopen_ns = wss_clock_now_ns() + REOPEN_NS;
		return wss_error_prefix(err, "the history was removed, replaced or emptied");
	}
	wss_log(WSS_LOG_WARNING,
		"history %s: it was removed, replaced or emptied, and is opened again",
		archive->path);
	return 0;
}

static int job_store_coldness(struct wss_archive *archive, struct wss_error *err)
{
	const struct archive_job *job = &archive->job;
	time_t now = wss_clock_wall_seconds();

	for (size_t i = 0; i < job->n_cold; i++)
		if (wss_history_add_coldness(archive->history, job->cold[i].uuid, now,
					     &job->cold[i].report, err) < 0)
			return -1;
	return 0;
}

/* Stores the samples, where none can be because the file is damaged in another one. */
static int job_store_samples(struct wss_archive *archive, struct wss_error *err)
{
	struct archive_job *job = &archive->job;
	const struct wss_sample *left_out = NULL;
	int r;

	job->added = 0;
	job->left_out[0] = '\0';
	r = wss_history_add_all(archive->history, job->samples, job->n, &job->added, &left_out,
				err);
	if (!job->added && err->code == WSS_ERR_DAMAGED) {
		left_out = NULL;
		r = archive_replace(archive, err) < 0
			    ? -1
			    : wss_history_add_all(archive->history, job->samples, job->n,
						  &job->added, &left_out, err);
	}
	if (r == 0 && left_out)
		memcpy(job->left_out, left_out->uuid, sizeof(job->left_out));
	return r;
}

static void job_run(void *opaque)
{
	struct wss_archive *archive = opaque;
	struct archive_job *job = &archive->job;
	struct wss_error *error = &job->error;

	if ((job->n || job->n_cold) && archive_check(archive, error) < 0)
		return;
	job->stored = job->n && job_store_samples(archive, error) == 0;
	if (error->code)
		return;
	if ((job_store_coldness(archive, error) < 0 ||
	     (job->prune && wss_history_prune(archive->history, &job->limits,
					      wss_clock_wall_seconds(), error) < 0)) &&
	    error->code == WSS_ERR_DAMAGED)
		archive_replace(archive, error);
}

/* --- jobs --- */

/* How many of the samples that were not stored yet, is said at once where that begins, and then once a minute. */
static void archive_tell(struct wss_archive *archive)
{
	struct wss_archive_counts counts = wss_archive_count(archive);

	if (archive->trouble.on || archive->losing.on
		    ? !wss_clock_is_due(&archive->tell_ns, TELL_NS)
		    : counts.lost == archive->told_lost)
		return;
	if (counts.waiting)
		wss_log(WSS_LOG_WARNING,
			"the history: %" PRIu64 " sample%s waiting, %" PRIu64 " lost",
			counts.waiting, wss_plural(counts.waiting),
			counts.lost - archive->told_lost);
	else if (counts.lost != archive->told_lost)
		wss_log(WSS_LOG_WARNING, "the history: %" PRIu64 " sample%s lost",
			counts.lost - archive->told_lost,
			wss_plural(counts.lost - archive->told_lost));
	archive->told_lost = counts.lost;
}

/* Other guests' samples, which were all stored, say nothing about one whose samples are lost. */
static void archive_note_lost(struct wss_archive *archive)
{
	const struct archive_job *job = &archive->job;
	bool tried = false;

	if (job->left_out[0]) {
		if (!archive->losing.on)
			archive->tell_ns = 0;
		memcpy(archive->losing_uuid, job->left_out, sizeof(archive->losing_uuid));
		wss_trouble_note(&archive->losing, &job->error);
		return;
	}
	for (size_t i = 0; i < job->n; i++)
		tried |= !strcmp(job->samples[i].uuid, archive->losing_uuid);
	if (tried)
		wss_trouble_note(&archive->losing, NULL);
}

static void archive_note(struct wss_archive *archive, const struct wss_error *error)
{
	if (error && !archive->trouble.on)
		archive->tell_ns = 0;
	wss_trouble_note(&archive->trouble, error);
	archive_tell(archive);
}

/* Those that were not stored come before those that wait; where these are too many, the oldest are lost. */
static void job_take_back(struct wss_archive *archive)
{
	struct archive_job *job = &archive->job;
	size_t room = WSS_ARCHIVE_SAMPLES_MAX - archive->n,
	       lost = job->n > room ? job->n - room : 0;
	size_t kept = job->n - lost;

	archive->counts.lost += lost;
	memmove(archive->samples + kept, archive->samples, archive->n * sizeof(*archive->samples));
	for (size_t i = 0; i < kept; i++)
		wss_sample_copy(&archive->samples[i], &job->samples[lost + i]);
	archive->n += kept;
	archive->store_ns = wss_clock_now_ns() + WSS_ARCHIVE_DELAY_NS;
}

/* Whether nothing is under way. Takes what came of the job. */
static bool archive_is_idle(struct wss_archive *archive)
{
	struct archive_job *job = &archive->job;
	bool left_out;

	if (!wss_background_is_idle(archive->background))
		return false;
	if (!archive->writing)
		return true;
	archive->writing = false;
	if (job->stored) {
		archive->counts.stored += job->added;
		archive->counts.lost += job->n - job->added;
		archive_note_lost(archive);
	} else {
		job_take_back(archive);
	}
	left_out = job->stored && job->left_out[0];
	job->n = 0;
	wss_history_set_patience(archive->history, job->error.code ? RETRY_MS : PATIENCE_MS);
	/* A stop request interrupts the deletion. */
	if (job->error.code != WSS_ERR_INTERRUPTED)
		archive_note(archive, job->error.code && !left_out ? &job->error : NULL);
	return true;
}

/* A guest whose pages are not known has no ages; one that left too little time for a sample, no history. */
static void job_take_coldness(struct archive_job *job, const struct wss_watch *watch)
{
	size_t n = watch ? wss_watch_count(watch) : 0;

	free(job->cold);
	job->n_cold = 0;
	job->cold = calloc(n ? n : 1, sizeof(*job->cold));
	for (size_t i = 0; job->cold && i < n; i++) {
		struct cold_guest *cold = &job->cold[job->n_cold];

		if (!wss_watch_cold(watch, i, &cold->report))
			continue;
		memcpy(cold->uuid, wss_watch_guest(watch, i)->uuid, sizeof(cold->uuid));
		job->n_cold++;
	}
}

static void job_start(struct wss_archive *archive)
{
	struct archive_job *job = &archive->job;
	struct wss_error error = WSS_ERROR_INIT;

	job->n = archive->n;
	for (size_t i = 0; i < job->n; i++)
		wss_sample_copy(&job->samples[i], &archive->samples[i]);
	job->limits = archive->limits;
	job->stored = false;
	wss_error_clear(&job->error);
	if (wss_background_start(archive->background, job_run, archive, &error) < 0) {
		job->n = 0;
		archive->store_ns = wss_clock_now_ns() + WSS_ARCHIVE_DELAY_NS;
		archive_note(archive, &error);
		return;
	}
	archive->writing = true;
	archive->n = 0;
}

/* --- when --- */

void wss_archive_add(struct wss_archive *archive, const struct wss_sample *sample)
{
	if (!archive)
		return;
	archive->counts.added++;
	if (!archive->n)
		archive->store_ns = wss_clock_now_ns() + WSS_ARCHIVE_DELAY_NS;
	if (archive->n == WSS_ARCHIVE_SAMPLES_MAX) {
		archive->n--;
		archive->counts.lost++;
		memmove(archive->samples, archive->samples + 1,
			archive->n * sizeof(*archive->samples));
	}
	wss_sample_copy(&archive->samples[archive->n++], sample);
}

static void archive_look_at_late(struct wss_archive *archive)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_background_busy_ns(archive->background) <= LATE_NS)
		return;
	wss_error_set(&error, WSS_ERR_TIMEOUT, "history %s: its disk has not answered for 30 s",
		      archive->path);
	archive_note(archive, &error);
}

bool wss_archive_is_busy(struct wss_archive *archive)
{
	return !archive_is_idle(archive);
}

void wss_archive_step(struct wss_archive *archive, const struct wss_watch *watch)
{
	bool store, cold;

	if (!archive)
		return;
	if (!archive_is_idle(archive)) {
		archive_look_at_late(archive);
		return;
	}
	store = archive->n && (wss_clock_now_ns() >= archive->store_ns ||
			       (archive->n == WSS_ARCHIVE_SAMPLES_MAX && !archive->trouble.on));
	cold = wss_clock_is_due(&archive->coldness_ns, COLDNESS_NS);
	archive->job.prune = wss_clock_is_due(&archive->prune_ns, PRUNE_NS);
	archive->job.n_cold = 0;
	if (cold)
		job_take_coldness(&archive->job, watch);
	if (store || cold || archive->job.prune)
		job_start(archive);
}

void wss_archive_finish(struct wss_archive *archive, const struct wss_watch *watch)
{
	if (!archive)
		return;
	if (wss_background_wait(archive->background, END_NS)) {
		archive_is_idle(archive);
		archive->job.prune = false;
		job_take_coldness(&archive->job, watch);
		job_start(archive);
		wss_background_wait(archive->background, END_NS);
		archive_is_idle(archive);
	}
	archive->counts = wss_archive_count(archive);
	archive->counts.lost += archive->counts.waiting;
	archive->counts.waiting = archive->n = archive->job.n = 0;
	archive->trouble.on = false;
	archive_tell(archive);
}

struct wss_archive_counts wss_archive_count(const struct wss_archive *archive)
{
	struct wss_archive_counts counts = {.stored = 0};

	if (!archive)
		return counts;
	counts = archive->counts;
	counts.waiting = archive->n + (archive->writing ? archive->job.n : 0);
	return counts;
}
