/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the service stores in the history: samples, and how cold the memory of the guests is.
 *
 * Samples are stored together, because a transaction for each of them was a third of what the
 * service cost. While another process has locked the history, they wait; when too many wait, the
 * oldest are lost. A sample that is lost is counted, and the log says when that begins and ends.
 *
 * An archive belongs to one thread. All functions accept NULL for a service that stores nothing.
 */
#ifndef WSS_SERVE_ARCHIVE_H
#define WSS_SERVE_ARCHIVE_H

#include <stdint.h>

#include "base/error.h"
#include "service/watch.h"
#include "store/history.h"
#include "wss/sample.h"

/* How long a sample waits before it is stored: a service that is killed loses so much. */
#define WSS_ARCHIVE_DELAY_NS (5 * WSS_NS_PER_S)
/* How many samples wait at most. */
#define WSS_ARCHIVE_SAMPLES_MAX 64

struct wss_archive;

/*
 * Opens the history, or makes it, and locks it against other processes that measure all guests.
 * Errors: those of wss_history_open() and wss_history_lock_round(), WSS_ERR_NO_MEMORY. The caller
 * closes the result.
 */
int wss_archive_open(const char *path, struct wss_archive **ret_archive, struct wss_error *err);

/* Drops what waits, closes the history, and removes one that was made and never used. */
void wss_archive_close(struct wss_archive *archive);

/* Returns the open history, for readers in the same thread; it belongs to the archive. */
struct wss_history *wss_archive_history(struct wss_archive *archive);

/*
 * Sets how long the history keeps what; the rest is deleted at the next wss_archive_tend(), and
 * once an hour. Before the first call nothing is deleted.
 */
void wss_archive_set_limits(struct wss_archive *archive, const struct wss_history_limits *limits);

/* Accepts a sample, which is copied. It must be measured, and its guest have a UUID. */
void wss_archive_add(struct wss_archive *archive, const struct wss_sample *sample);

/*
 * Stores and deletes what is due, half a second at most for each of these if another process has
 * locked the history. watch has the guests whose coldness is stored; NULL: none.
 */
void wss_archive_tend(struct wss_archive *archive, const struct wss_watch *watch);

/* Stores all that waits, and the coldness of all guests, at the end of the service. */
void wss_archive_finish(struct wss_archive *archive, const struct wss_watch *watch);

struct wss_archive_counts {
	uint64_t stored; /* samples */
	uint64_t lost;	 /* samples, and reports on coldness, that could not be stored */
};
struct wss_archive_counts wss_archive_count(const struct wss_archive *archive);

#endif
