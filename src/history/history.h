/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room history/: samples, with their hourly and daily summaries, in one SQLite file; and what
 * the windows of one series say.
 *
 *   open.c, create.c, place.c  open the file, which others may have prepared
 *   schema.c, db.h             its tables, and the statements on them
 *   history.c, coldness.c      add samples, and reports of cold memory; prune.c deletes
 *   samples.c, series.c        read them
 *   summary.h, growth.h, floor.h  what a series of them says
 *   *-report.h, *-chart.h      tables and pictures; sample-report.h serves new samples as well
 *   lock.h                     one round at a time, and a connection that threads share
 *
 * In: struct wss_sample, from commands, the service and the balloon controller. Out: samples,
 * series, hours and days. Begin with schema.c. A new figure to keep is a column in schema.c, a
 * place in the statements of db.c, in history.c and samples.c, and a column in sample-report.c.
 *
 * A sample is one transaction in write-ahead mode, so a killed process, a full disk or a power
 * failure costs the last samples at most. Any number of readers and writers may have the file open;
 * a connection belongs to one thread at a time, and lock.h lets several take turns.
 * Times are wall-clock times. After the clock was set back, what has a time ahead of now is kept
 * but does not count until that time has come; only wss_history_samples() and wss_history_spans()
 * show it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "cold/cold-timeline.h"
#include "history/floor.h"
#include "history/span.h"
#include "measure/sample.h"

#define WSS_HISTORY_HOUR 3600
#define WSS_HISTORY_DAY 86400

struct wss_history;

/* Returns the version of the SQLite library in use, "3.40.1". */
const char *wss_history_sqlite_version(void);

#define WSS_HISTORY_OF_ROOT "/var/lib/virt-wss/history.db"

/*
 * Returns the default path of the history: VIRT_WSS_HISTORY if set, else
 * /var/lib/virt-wss/history.db for root, or a path below XDG_STATE_HOME for other users.
 * malloc()ed; NULL when out of memory.
 */
char *wss_history_default_path(void);

/*
 * Opens the history for reading and writing, creates the file and its directory if they are
 * missing, checks its integrity and upgrades its schema. WSS_ERR_FAILED, with the reason, if
 * that is not possible: no write permission, a full or read-only disk, or a file that is
 * not a history, was written by a newer version, or could be written or replaced
 * by other users. WSS_ERR_DAMAGED: the file is left as it is.
 */
int wss_history_open(const char *path, struct wss_history **ret_history, struct wss_error *err);

/* Checks whether wss_history_open() could succeed, as far as that is possible without creating anything. Its errors. */
int wss_history_check(const char *path, struct wss_error *err);

/* Opens the history for reading, even on a read-only disk. WSS_ERR_GONE if there is none yet. */
int wss_history_open_readonly(const char *path, struct wss_history **ret_history,
			      struct wss_error *err);

/*
 * Whether its path still leads to this file, and that has content. Does not wait. The history must be open for
 * writing.
 */
bool wss_history_is_in_place(const struct wss_history *history);

/*
 * Checks that the file was not overwritten or cut off, which its writer would not see for long, as it has most pages in
 * memory. At the first call only the beginning can be checked.
 * WSS_ERR_DAMAGED, WSS_ERR_FAILED.
 */
int wss_history_check_file(struct wss_history *history, struct wss_error *err);

/*
 * Opens the file that its path leads to now, or creates it, as wss_history_open() does. The earlier file gets what
 * is only in its log. The handle stays the same, and so does how long it waits. On failure it refers to the earlier file as before.
 */
int wss_history_reopen(struct wss_history *history, struct wss_error *err);

/*
 * Puts a new, empty history in the place of one that is damaged (WSS_ERR_DAMAGED), and goes on as wss_history_reopen()
 * does. *ret_kept is what the damaged file is called now, beside it, malloc()ed: NULL if nothing was left of it, or
 * another process has replaced it. The caller must not hold the lock of wss_history_lock_round().
 */
int wss_history_replace(struct wss_history *history, char **ret_kept, struct wss_error *err);

/*
 * Sets how long to wait for another process that writes: 15 s by default, and at most 1 s
 * after a stop request. After that, functions fail with WSS_ERR_BUSY.
 */
void wss_history_set_patience(struct wss_history *history, int milliseconds);

/* Whether this handle created the file. */
bool wss_history_is_new(const struct wss_history *history);

/* Closes the history; accepts NULL. */
void wss_history_close(struct wss_history *history);

/*
 * Closes the history, and removes the file if this handle created it, nothing has been stored
 * in it and no other process has it open. Accepts NULL.
 */
void wss_history_close_unused(struct wss_history *history);

/*
 * Adds a measured sample of a guest that has a UUID, in one transaction. WSS_ERR_BUSY also while a reader that does
 * not go on keeps SQLite's log at its limit.
 */
int wss_history_add(struct wss_history *history, const struct wss_sample *sample,
		    struct wss_error *err);

/*
 * Adds n of them in one transaction. One that cannot be added, because its size is larger than WSS_BYTES_MAX, is left
 * out: 0 with *ret_added < n, and err says why of the last one, which is *ret_left_out (NULL: do not tell). -1: none was added, and it may be tried again. A damaged
 * summary of its hour or day is rebuilt from the stored samples, and the log says so.
 */
int wss_history_add_all(struct wss_history *history, const struct wss_sample *samples, size_t n,
			size_t *ret_added, const struct wss_sample **ret_left_out,
			struct wss_error *err);

/* Returns the time of a guest's newest sample; unknown if there is none. */
int wss_history_last(struct wss_history *history, const char *uuid, struct wss_amount *ret_time,
		     struct wss_error *err);

/* One series of a guest. Series are never mixed. */
struct wss_history_series {
	int64_t id; /* for wss_history_hours() */
	char method[WSS_METHOD_NAME_MAX];
	enum wss_observes observes;
	uint64_t granularity_bytes;
	uint64_t window_ns;	/* requested length */
	uint64_t other_windows; /* windows in the guest's other series in the same span */
	struct wss_summary summary;
	/* Figures of the newest sample of the series. */
	time_t time;
	struct wss_amount wss_bytes, maximum_bytes, balloon_bytes, rss_bytes, qemu_bytes,
		unreclaimable_bytes, reserve_bytes;
};

#define WSS_HISTORY_CURVE 1u /* include the growth curve */

/*
 * Sums up the series of a guest with the most samples since a time; series that see all
 * accesses are preferred to those that see only writes. The time is rounded to the hour, or to
 * the day if the hours have been deleted. Returns 1; 0 if there is none, -1 on error. The
 * caller frees ret_series->summary.
 */
int wss_history_series(struct wss_history *history, const char *uuid, time_t since, unsigned flags,
		       struct wss_history_series *ret_series, struct wss_error *err);

/*
 * Called for each hour of that series since another time, which may be earlier, that has a window that is not
 * degraded, with its largest working set.
 */
typedef void (*wss_history_hour)(time_t start, uint64_t max_bytes, void *opaque);
int wss_history_hours(struct wss_history *history, const struct wss_history_series *series,
		      time_t since, wss_history_hour on_hour, void *opaque, struct wss_error *err);

/* The same for days, which are kept for longer. */
int wss_history_days(struct wss_history *history, const struct wss_history_series *series,
		     time_t since, wss_history_hour on_day, void *opaque, struct wss_error *err);

/*
 * Calls on_summary for each hour of the series of a guest with the most samples, ascending, with its growth
 * curve; it is valid during the call. Returns 0, or -1: WSS_ERR_NO_MEMORY as soon as on_summary returns -1, WSS_ERR_INTERRUPTED.
 */
typedef int (*wss_history_on_summary)(time_t start, const struct wss_summary *summary,
				      void *opaque);
int wss_history_hour_summaries(struct wss_history *history, const char *uuid,
			       wss_history_on_summary on_summary, void *opaque,
			       struct wss_error *err);

/*
 * Calls on_guest for each guest in the history, sorted by name. Returns 0, or -1:
 * WSS_ERR_NO_MEMORY as soon as on_guest returns -1, WSS_ERR_INTERRUPTED.
 */
typedef int (*wss_history_on_guest)(const char *uuid, const char *name, void *opaque);
int wss_history_guests(struct wss_history *history, wss_history_on_guest on_guest, void *opaque,
		       struct wss_error *err);

/*
 * Calls on_sample for each stored sample of a guest from since to until, inclusive, over all
 * its series, sorted by time. The sample has only the stored figures and is valid during the
 * call. No transaction is open during the call, so it may wait.
 */
typedef void (*wss_history_on_sample)(const struct wss_sample *sample, void *opaque);
int wss_history_samples(struct wss_history *history, const char *uuid, time_t since, time_t until,
			wss_history_on_sample on_sample, void *opaque, struct wss_error *err);

/* Memory of a guest's QEMU that is not guest RAM. */
struct wss_history_overhead {
	uint64_t samples; /* in which it is known */
	/* Their 99th percentile, nearest rank: the largest of fewer than 100. */
	struct wss_amount p99_bytes;
};

/* Reads it from the samples since a time, of all series. Returns 0, or -1: WSS_ERR_INTERRUPTED. */
int wss_history_overhead(struct wss_history *history, const char *uuid, time_t since,
			 struct wss_history_overhead *ret_overhead, struct wss_error *err);

/*
 * Reads what the guest's samples since a time, of all series, show of the memory that it has in use, and what its last
 * squeeze has found, if that is at most WSS_FLOOR_SQUEEZE_S ago. reports_free: its balloon reports free pages to the
 * host. Returns 0, or -1: WSS_ERR_INTERRUPTED.
 */
int wss_history_floor(struct wss_history *history, const char *uuid, time_t since,
		      bool reports_free, struct wss_floor *ret_floor, struct wss_error *err);

/*
 * Keeps what a squeeze that ends now has found: the smallest size at which the guest did not page, and whether it paged
 * below, or could not give up more. It takes the place of what an earlier one has found.
 */
int wss_history_note_squeeze(struct wss_history *history, const char *uuid, uint64_t bytes,
			     bool paged, struct wss_error *err);

/*
 * Calls on_span for each hour or day (level: WSS_HISTORY_HOUR or WSS_HISTORY_DAY) of each
 * series of a guest that overlaps the time from since to until, sorted by time. The span is
 * valid during the call. No transaction is open during the call, so it may wait.
 */
typedef void (*wss_history_on_span)(const struct wss_history_span *span, void *opaque);
int wss_history_spans(struct wss_history *history, const char *uuid, int level, time_t since,
		      time_t until, wss_history_on_span on_span, void *opaque,
		      struct wss_error *err);

/* How cold a guest's memory was at a time. The history keeps the last report of each hour and of each day. */
struct wss_history_coldness {
	time_t time;
	/* Its times are relative: since_ns is 0, as_of_ns how long the memory had been watched. */
	struct wss_cold_report report;
};

/*
 * Stores a report on a guest, as of that time, as the last one of its hour and of its day. Without effect if
 * the history has no sample of the guest.
 */
int wss_history_add_coldness(struct wss_history *history, const char *uuid, time_t time,
			     const struct wss_cold_report *report, struct wss_error *err);

/* Counts a guest's samples (level 0), or its summaries of a level, that end before that time. */
int wss_history_count_older(struct wss_history *history, const char *uuid, int level, time_t time,
			    uint64_t *ret_n, struct wss_error *err);

/* Reads the newest report on a guest. Returns 1; 0 if there is none, -1 on error. */
int wss_history_coldness(struct wss_history *history, const char *uuid,
			 struct wss_history_coldness *ret_coldness, struct wss_error *err);

struct wss_history_limits {
	uint64_t samples_s, hours_s,
		days_s; /* how long to keep each; hours: as long as sizes are learned from them */
	/* Size limit of the file and its log: what lies ahead of now is deleted first, then the oldest. */
	uint64_t max_bytes;
};

#define WSS_HISTORY_LIMITS_DEFAULT                                                              \
	{                                                                                       \
		14 * WSS_HISTORY_DAY, 92 * WSS_HISTORY_DAY, 400 * WSS_HISTORY_DAY, 256ULL << 20 \
	}

/*
 * Parses how long to keep days, a day at least; what has another limit is kept no longer. Names the setting, what, in errors.
 * WSS_ERR_USAGE.
 */
int wss_history_keep_parse(const char *value, const char *what, struct wss_history_limits *limits,
			   struct wss_error *err);

/*
 * Deletes data that is too old at time now or exceeds the size limit. If now is far ahead of
 * the data, ages advance gradually: at most one day for each 24 hours with samples. Logs a warning
 * before it deletes much more than passing time makes old, as after a change of the limits. Deletes
 * for some seconds at most, and leaves the rest to the next call. WSS_ERR_INTERRUPTED after a
 * stop request.
 */
int wss_history_prune(struct wss_history *history, const struct wss_history_limits *limits,
		      time_t now, struct wss_error *err);

/*
 * Deletes all that is stored of a guest, but balloon steps that have to be undone yet. Without effect if there is no such guest.
 * The history must be open for writing. WSS_ERR_BUSY, WSS_ERR_INTERRUPTED: nothing is deleted.
 */
int wss_history_forget(struct wss_history *history, const char *uuid, struct wss_error *err);
