/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes a recording: the header, then what each window changed, as it comes. What has been
 * written is never changed, so that the file is whole up to its last whole interval
 * however its writer ends.
 *
 * Two locks (fcntl(2), of the open file description) far behind the end of the file keep
 * its writers apart: one is held by whoever records, from beginning to end, and says that
 * a recording is going on; the other for the time of one addition. So a mark set by another
 * process is an addition like any other, in the one file that there is, and a process that
 * is killed leaves no lock behind. A half addition, of a process that was killed, is cut off
 * by the next.
 */
#ifndef WSS_REC_WRITER_H
#define WSS_REC_WRITER_H

#include "base/error.h"
#include "wss/recording.h"

struct wss_recwriter;

/*
 * Could wss_recwriter_create() make this file? Its errors, as far as can be told without making
 * it.
 */
int wss_recwriter_check(const char *path, struct wss_error *err);

/*
 * Makes a new file with the header, for its owner only, and gives it the name at once. A file
 * that is there is replaced only if it is empty or a recording that nobody is writing, and
 * never written to: WSS_ERR_FAILED, also for a symbolic link and what else is no regular file;
 * WSS_ERR_BUSY.
 */
int wss_recwriter_create(const char *path, const struct wss_recording *recording,
			 struct wss_recwriter **ret_writer, struct wss_error *err);

/*
 * Begins an interval; times must not be before the end of the last one. WSS_ERR_FAILED also where
 * the recording has as many as one may have.
 */
int wss_recwriter_begin(struct wss_recwriter *writer, const struct wss_interval *interval,
			struct wss_error *err);

/*
 * n pages from frame number gfn have changed so. They must be pages of the recording's
 * regions, the runs of one change in order and apart from each other.
 */
int wss_recwriter_change(struct wss_recwriter *writer, enum wss_change change, uint64_t gfn,
			 uint64_t n, struct wss_error *err);

/*
 * Is there room for a run of page indices of one region, that comes or goes next? WSS_ERR_FAILED:
 * its pages are scattered over as much memory as readers take; the interval is given up.
 */
int wss_recwriter_room(struct wss_recwriter *writer, struct wss_run run, struct wss_error *err);

/*
 * The pages by which after differs from before, sets of page indices: those that came as change,
 * which is one of TOUCHED, WRITTEN and BALLOONED, those that went as its opposite.
 */
int wss_recwriter_delta(struct wss_recwriter *writer, const struct wss_recording *recording,
			enum wss_change change, const struct wss_pageset *before,
			const struct wss_pageset *after, struct wss_error *err);

/* The interval is whole. The counts are of the sets after it: readers check them. */
int wss_recwriter_end(struct wss_recwriter *writer, uint64_t touched, uint64_t written,
		      uint64_t ballooned, struct wss_error *err);

/* Bytes of the file so far. */
uint64_t wss_recwriter_bytes(const struct wss_recwriter *writer);

/*
 * Says in the file that the recording has ended at end_ns, writes it to the disk, and closes
 * it. The writer is gone also when this fails.
 */
int wss_recwriter_finish(struct wss_recwriter *writer, uint64_t end_ns, struct wss_error *err);

/* Closes without an end; takes NULL. */
void wss_recwriter_free(struct wss_recwriter *writer);

/*
 * Adds a mark for now to a recording that another process is writing. WSS_ERR_FAILED: nobody
 * is, or it is no regular file; WSS_ERR_BUSY: another process has been adding to it for 10 s;
 * WSS_ERR_INTERRUPTED. boot_id: this host's, as in the header.
 */
int wss_rec_mark(const char *path, const char *text, const char *boot_id, uint64_t now_boottime_ns,
		 uint64_t *ret_time_ns, struct wss_error *err);

#endif
