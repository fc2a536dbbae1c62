/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/archive.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "serve/trouble.h"
#include "store/lock.h"

/* How often what is too old is deleted. */
#define PRUNE_NS (3600 * WSS_NS_PER_S)
/* How often the history is told how cold the guests' memory is. */
#define COLDNESS_NS (300 * WSS_NS_PER_S)
/* How often a history is opened again that was removed and could not be opened anew. */
#define REOPEN_NS (10 * WSS_NS_PER_S)
/*
 * How long to wait for another process that has locked the history, during which no window of
 * any guest ends, and how long if the last attempt was in vain.
 */
#define PATIENCE_MS 500
#define RETRY_MS 20

struct wss_archive {
	struct wss_history *history;
	char *path;
	int lock; /* of the round; -1: not held */
	struct wss_history_limits limits;
	struct wss_trouble trouble;
	struct wss_archive_counts counts;
	uint64_t store_ns, prune_ns, coldness_ns, reopen_ns; /* when due, wss_clock_now_ns() */
	size_t n;					     /* samples that wait */
	struct wss_sample samples[WSS_ARCHIVE_SAMPLES_MAX];
};

int wss_archive_open(const char *path, struct wss_archive **ret_archive, struct wss_error *err)
{
	struct wss_archive *archive = calloc(1, sizeof(*archive));

	if (archive)
		archive->path = strdup(path);
	if (!archive || !archive->path) {
		free(archive);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	archive->lock = -1;
	archive->prune_ns = UINT64_MAX;
	archive->coldness_ns = wss_clock_now_ns() + COLDNESS_NS;
	archive->trouble.what = "the history";
	if (wss_history_open(path, &archive->history, err) < 0 ||
	    wss_history_lock_round(archive->history, &archive->lock, err) < 0) {
		wss_archive_close(archive);
		return -1;
	}
	wss_history_set_patience(archive->history, PATIENCE_MS);
	*ret_archive = archive;
	return 0;
}

void wss_archive_close(struct wss_archive *archive)
{
	if (!archive)
		return;
	wss_history_close_unused(archive->history);
	wss_cleanup_close(&archive->lock);
	free(archive->path);
	free(archive);
}

struct wss_history *wss_archive_history(struct wss_archive *archive)
{
	return archive ? archive->history : NULL;
}

void wss_archive_set_limits(struct wss_archive *archive,
			    const struct wss_history_limits *limits)
{
	if (!archive)
		return;
	archive->limits = *limits;
	archive->prune_ns = 0;
}

/* --- one attempt at a time --- */

/* Opens the history anew, and takes the lock of the round, which may be another file, too. */
static int archive_reopen(struct wss_archive *archive, struct wss_error *err)
{
	wss_cleanup_close(&archive->lock);
	archive->lock = -1;
	if (wss_history_reopen(archive->history, err) < 0)
		return -1;
	return wss_history_lock_round(archive->history, &archive->lock, err);
}

/*
 * Whether samples can be stored. SQLite would go on writing to a file that was removed, so it
 * is opened anew; if that fails, it is tried again later, as it may take long.
 */
static int archive_check(struct wss_archive *archive, struct wss_error *err)
{
	if (wss_history_is_in_place(archive->history) && archive->lock >= 0)
		return 0;
	if (wss_clock_now_ns() < archive->reopen_ns)
		return wss_error_set(err, WSS_ERR_GONE,
				     "history %s: it was removed or replaced", archive->path);
	if (archive_reopen(archive, err) < 0) {
		archive->reopen_ns = wss_clock_now_ns() + REOPEN_NS;
		return wss_error_prefix(err, "the history was removed or replaced");
	}
	wss_log(WSS_LOG_WARNING, "history %s: it was removed or replaced, and is opened anew",
		archive->path);
	return 0;
}

static void archive_note(struct wss_archive *archive, const struct wss_error *error)
{
	wss_trouble_note(&archive->trouble, error);
	wss_history_set_patience(archive->history, error ? RETRY_MS : PATIENCE_MS);
}

static void archive_store_samples(struct wss_archive *archive)
{
	struct wss_error error = WSS_ERROR_INIT;

	archive->store_ns = wss_clock_now_ns() + WSS_ARCHIVE_DELAY_NS;
	if (archive_check(archive, &error) == 0 &&
	    wss_history_add_all(archive->history, archive->samples, archive->n, &error) == 0) {
		archive->counts.stored += archive->n;
		archive->n = 0;
		archive_note(archive, NULL);
		return;
	}
	archive_note(archive, &error);
	if (error.code == WSS_ERR_BUSY)
		return;
	archive->counts.lost += archive->n;
	archive->n = 0;
}

/* A guest whose pages are not known has no ages; one that left too little time for a sample,
 * no history. */
static void archive_store_coldness(struct wss_archive *archive, const struct wss_watch *watch)
{
	struct wss_error error = WSS_ERROR_INIT;
	time_t now = wss_clock_wall_seconds();
	struct wss_cold_report report;

	for (size_t i = 0; watch && i < wss_watch_count(watch); i++) {
		if (!wss_watch_cold(watch, i, &report))
			continue;
		if (archive_check(archive, &error) < 0 ||
		    wss_history_add_coldness(archive->history, wss_watch_guest(watch, i)->uuid,
					     now, &report, &error) < 0) {
			archive->counts.lost++;
			archive_note(archive, &error);
			return;
		}
	}
}

static void archive_prune(struct wss_archive *archive)
{
	struct wss_error error = WSS_ERROR_INIT;

	if (wss_history_prune(archive->history, &archive->limits, wss_clock_wall_seconds(),
			      &error) < 0)
		archive_note(archive, &error);
}

/* --- when --- */

void wss_archive_add(struct wss_archive *archive, const struct wss_sample *sample)
{
	if (!archive)
		return;
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

void wss_archive_tend(struct wss_archive *archive, const struct wss_watch *watch)
{
	if (!archive)
		return;
	if (archive->n && (wss_clock_now_ns() >= archive->store_ns ||
			   (archive->n == WSS_ARCHIVE_SAMPLES_MAX && !archive->trouble.on)))
		archive_store_samples(archive);
	if (wss_clock_is_due(&archive->prune_ns, PRUNE_NS))
		archive_prune(archive);
	if (wss_clock_is_due(&archive->coldness_ns, COLDNESS_NS))
		archive_store_coldness(archive, watch);
}

void wss_archive_finish(struct wss_archive *archive, const struct wss_watch *watch)
{
	if (!archive)
		return;
	if (archive->n)
		archive_store_samples(archive);
	archive_store_coldness(archive, watch);
}

struct wss_archive_counts wss_archive_count(const struct wss_archive *archive)
{
	return archive ? archive->counts : (struct wss_archive_counts){.stored = 0};
}
