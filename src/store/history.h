/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The history: samples and what they add up to by the hour and by the day, in one SQLite file.
 *
 * A sample is one transaction, in write-ahead mode: a process that is killed, a full
 * disk or a power failure costs the last samples at most. Any number of readers and writers may
 * have it open. Times are the wall clock's as they were; where that was set back, samples
 * of "the future" count as recent.
 */
#ifndef WSS_STORE_HISTORY_H
#define WSS_STORE_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "wss/sample.h"
#include "wss/span.h"

#define WSS_HISTORY_HOUR 3600
#define WSS_HISTORY_DAY 86400

struct wss_history;

/* Version of the SQLite library in use, "3.40.1". */
const char *wss_history_sqlite_version(void);

/*
 * Where the history is when nobody says otherwise: VIRT_WSS_HISTORY, for root
 * /var/lib/virt-wss/history.db, for others below XDG_STATE_HOME. malloc'ed; NULL when memory is
 * short.
 */
char *wss_history_default_path(void);

/*
 * Opens for reading and writing, makes the file and its directory where they are missing,
 * checks its integrity and brings its schema up to date. WSS_ERR_FAILED with the
 * reason where it cannot: no right to write, a disk that is full or read-only, a file that is
 * damaged, is no history, or was written by a newer version, or one that other users could
 * write to or put in its place. A damaged file is left alone.
 */
int wss_history_open(const char *path, struct wss_history **ret_history, struct wss_error *err);

/* Opens for reading, from a read-only disk, too. WSS_ERR_GONE where there is none yet. */
int wss_history_open_readonly(const char *path, struct wss_history **ret_history,
			      struct wss_error *err);

/*
 * Would whoever opens it by its path now find this history? Not where the file was removed or
 * another put in its place. Waits for nobody; for a history that is open for writing.
 */
bool wss_history_is_in_place(const struct wss_history *history);

/*
 * How long it waits for another process that writes: else 15 s, and 1 s at most once a stop
 * was requested. Then errors are WSS_ERR_BUSY.
 */
void wss_history_set_patience(struct wss_history *history, int milliseconds);

/* Takes NULL. */
void wss_history_close(struct wss_history *history);

/* Adds a measured sample of a guest that has a UUID, in one transaction. */
int wss_history_add(struct wss_history *history, const struct wss_sample *sample,
		    struct wss_error *err);

/* When the newest sample of a guest was taken; absent where there is none. */
int wss_history_last(struct wss_history *history, const char *uuid, struct wss_amount *ret_time,
		     struct wss_error *err);

/* One series of a guest: never mixed with another. */
struct wss_history_series {
	char method[16];
	enum wss_observes observes;
	uint64_t granularity_bytes;
	uint64_t window_ns; /* as asked for */
	uint64_t other_windows; /* that the guest's other series have in the same span */
	struct wss_summary summary;
	/* Of the newest sample of the series. */
	time_t time;
	struct wss_amount wss_bytes, maximum_bytes, balloon_bytes, rss_bytes, qemu_bytes;
};

#define WSS_HISTORY_CURVE 1u /* the growth curve, too */

/*
 * The series of a guest that has most samples since a time, to the hour, or to the day where the
 * hours are forgotten, summed up since then. Returns 1; 0 where there is none, -1 on error. The
 * caller frees ret_series->summary.
 */
int wss_history_series(struct wss_history *history, const char *uuid, time_t since, unsigned flags,
		       struct wss_history_series *ret_series, struct wss_error *err);

/* Called for each hour of that series: the largest working set in it. */
typedef void (*wss_history_hour)(time_t start, uint64_t max_bytes, void *opaque);
int wss_history_hours(struct wss_history *history, const char *uuid, time_t since,
		      wss_history_hour on_hour, void *opaque, struct wss_error *err);

/*
 * Calls on_guest for each guest that has ever been stored, by name; one that returns -1 (memory is
 * short) ends it with WSS_ERR_NO_MEMORY. WSS_ERR_INTERRUPTED, as below.
 */
typedef int (*wss_history_on_guest)(const char *uuid, const char *name, void *opaque);
int wss_history_guests(struct wss_history *history, wss_history_on_guest on_guest, void *opaque,
		       struct wss_error *err);

#define WSS_HISTORY_METHOD_MAX 16

/*
 * Calls on_sample for each stored sample of a guest from since to until, both with them, by
 * time, of all its series. The sample has what is stored, and is valid during the call.
 */
typedef void (*wss_history_on_sample)(const struct wss_sample *sample, void *opaque);
int wss_history_samples(struct wss_history *history, const char *uuid, time_t since, time_t until,
			wss_history_on_sample on_sample, void *opaque, struct wss_error *err);

/*
 * Calls on_span for each hour or day (level: WSS_HISTORY_HOUR or WSS_HISTORY_DAY) of each series of a
 * guest that has a part from since to until, by time. The span is valid during the call.
 */
typedef void (*wss_history_on_span)(const struct wss_history_span *span, void *opaque);
int wss_history_spans(struct wss_history *history, const char *uuid, int level, time_t since,
		      time_t until, wss_history_on_span on_span, void *opaque,
		      struct wss_error *err);

struct wss_history_limits {
	uint64_t samples_s, hours_s, days_s; /* how long each is kept */
	uint64_t max_bytes;		     /* of the file: beyond it the oldest go first */
};

#define WSS_HISTORY_LIMITS_DEFAULT                                                        \
	{ 14 * WSS_HISTORY_DAY, 35 * WSS_HISTORY_DAY, 400 * WSS_HISTORY_DAY, 256ULL << 20 }

/*
 * Forgets what is too old at now, or too much. A now that is far ahead of what there is counts
 * only by and by: a day at most for each 24 hours with samples.
 */
int wss_history_prune(struct wss_history *history, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err);

#endif
