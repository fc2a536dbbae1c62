/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the service stores in the history: samples, and how cold the memory of the guests is.
 *
 * Samples are stored together, because a transaction for each of them was a third of what the
 * service cost, and by a thread of its own, so that no window waits for a disk. While that is not done, because the
 * disk is slow or full or another process has locked the history, they wait; when too many wait, the
 * oldest are lost. Each sample is stored, waits, or is lost, which the counts say, and the log while samples are
 * lost.
 *
 * An archive belongs to one thread. All functions accept NULL for a service that stores nothing.
 */
#pragma once

#include <stdint.h>

#include "base/background.h"
#include "base/error.h"
#include "history/history.h"
#include "measure/sample.h"
#include "watch/watch.h"

/* How long a sample waits before it is stored: a service that is killed loses so much. */
#define WSS_ARCHIVE_DELAY_NS (5 * WSS_NS_PER_S)
/* How many samples wait at most, beside as many that are being stored. */
#define WSS_ARCHIVE_SAMPLES_MAX 64

struct wss_archive;

/*
 * Opens the history, or makes it, and locks it against other processes that measure all guests.
 * Errors: those of wss_history_open() and wss_history_lock_round(), WSS_ERR_NO_MEMORY. The caller
 * closes the result.
 */
int wss_archive_open(const char *path, struct wss_archive **ret_archive, struct wss_error *err);

/*
 * Drops what waits, closes the history, and removes one that was made and never used. False: a disk does not answer,
 * and nothing that the background uses may be freed.
 */
bool wss_archive_close(struct wss_archive *archive);

/* Returns the open history, for readers in the background; it belongs to the archive. */
struct wss_history *wss_archive_history(struct wss_archive *archive);

/* Whether the history is being used, by this or by a reader in the background. */
bool wss_archive_is_busy(struct wss_archive *archive);

/* Returns where the history is used, for readers while that is not busy; it belongs to the archive. */
struct wss_background *wss_archive_background(struct wss_archive *archive);

/*
 * Sets how long the history keeps what; the rest is deleted at the next wss_archive_step(), and
 * once an hour. Before the first call nothing is deleted.
 */
void wss_archive_set_limits(struct wss_archive *archive, const struct wss_history_limits *limits);

/* Accepts a sample, which is copied. It must be measured, and its guest have a UUID. */
void wss_archive_add(struct wss_archive *archive, const struct wss_sample *sample);

/*
 * Has stored and deleted what is due, and takes what came of that. Waits for nothing. watch has the guests whose coldness is stored; NULL: none.
 */
void wss_archive_step(struct wss_archive *archive, const struct wss_watch *watch);

/* Stores all that waits, and the coldness of all guests, at the end of the service; waits 12 s at most. */
void wss_archive_finish(struct wss_archive *archive, const struct wss_watch *watch);

/* Of samples: added = stored + waiting + lost. */
struct wss_archive_counts {
	uint64_t added, stored, waiting, lost;
};
struct wss_archive_counts wss_archive_count(const struct wss_archive *archive);
