/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a recording: the header, then the changes of each window as they come. Written data
 * never changes, so the file is intact up to its last complete interval no matter how its
 * writer ends.
 *
 * Two locks (fcntl(2), open file description locks) far behind the end of the file coordinate
 * its writers: one is held by the recorder from beginning to end, and shows that the recording
 * is in progress; the other for the time of one addition. A mark from another process is thus
 * an addition like any other, in the only file there is, and a killed process leaves no lock
 * behind. The next addition cuts off the unfinished one of a killed process.
 */
#pragma once

#include "base/error.h"
#include "pages/recording.h"

struct wss_recwriter;

/*
 * Checks whether wss_recwriter_create() could create this file, which a full disk also prevents, and leaves nothing
 * behind. Fails as that does.
 */
int wss_recwriter_check(const char *path, struct wss_error *err);

/*
 * Creates a file with the header, accessible to its owner only. It has no name yet: a recording that fails before
 * wss_recwriter_name() leaves nothing behind. An existing file may be replaced only if it is empty or a recording that
 * nobody is writing: WSS_ERR_FAILED, also for symbolic links and other special files; WSS_ERR_BUSY.
 */
int wss_recwriter_create(const char *path, const struct wss_recording *recording,
			 struct wss_recwriter **ret_writer, struct wss_error *err);

/* Gives the file its name, in place of the existing one, which is not written to. WSS_ERR_FAILED. */
int wss_recwriter_name(struct wss_recwriter *writer, struct wss_error *err);

/*
 * Begins an interval, which must not start before the end of the last one. WSS_ERR_FAILED also
 * if the recording has reached its limit of intervals.
 */
int wss_recwriter_begin(struct wss_recwriter *writer, const struct wss_interval *interval,
			struct wss_error *err);

/*
 * Adds a change of n pages from frame number gfn. They must be pages of the recording's
 * regions, and the runs of one change sorted and disjoint.
 */
int wss_recwriter_change(struct wss_recwriter *writer, enum wss_change change, uint64_t gfn,
			 uint64_t n, struct wss_error *err);

/*
 * Checks that there is room for a run of page indices of one region in the next change.
 * WSS_ERR_FAILED: the pages are scattered over more memory than readers accept; the interval
 * is dropped.
 */
int wss_recwriter_room(struct wss_recwriter *writer, struct wss_run run, struct wss_error *err);

/*
 * Adds the differences between two sets of page indices, before and after: new pages as
 * change, which is TOUCHED, WRITTEN or BALLOONED, missing ones as its opposite.
 */
int wss_recwriter_delta(struct wss_recwriter *writer, const struct wss_recording *recording,
			enum wss_change change, const struct wss_pageset *before,
			const struct wss_pageset *after, struct wss_error *err);

/* Completes the interval. The counts are of the sets after it: readers check them. */
int wss_recwriter_end(struct wss_recwriter *writer, uint64_t touched, uint64_t written,
		      uint64_t ballooned, struct wss_error *err);

/* Returns the current size of the file in bytes. */
uint64_t wss_recwriter_bytes(const struct wss_recwriter *writer);

/* Records the end of the recording at end_ns, and syncs the file. Nothing may be added then. */
int wss_recwriter_end_file(struct wss_recwriter *writer, uint64_t end_ns, struct wss_error *err);

/* The same, and then closes the file. The writer is freed on failure, too. */
int wss_recwriter_finish(struct wss_recwriter *writer, uint64_t end_ns, struct wss_error *err);

/* Closes the file without an end frame; accepts NULL. */
void wss_recwriter_free(struct wss_recwriter *writer);

/*
 * Adds a mark for now to a recording that another process is writing. WSS_ERR_FAILED: no
 * process is, or it is not a regular file; WSS_ERR_BUSY: another process has been adding to it
 * for 10 s; WSS_ERR_INTERRUPTED. boot_id: this host's, as in the header.
 */
int wss_rec_mark(const char *path, const char *text, const char *boot_id, uint64_t now_boottime_ns,
		 uint64_t *ret_time_ns, struct wss_error *err);
