/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a recording. Opening it reads the whole file once and checks it; replaying then
 * delivers its content window by window. A file is read as it was written, up to the last
 * complete interval, or refused: every byte is covered by a checksum, and the intervals must
 * be consistent.
 */
#ifndef WSS_REC_READER_H
#define WSS_REC_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wss/recording.h"

struct wss_recfile;

/* Content of the file. */
struct wss_recfile_state {
	uint64_t file_bytes;
	uint64_t intervals; /* complete ones, gaps included */
	uint64_t windows;   /* complete ones that are not gaps */
	uint64_t marks;
	bool ended; /* the recording has an end frame */
	uint64_t
		end_ns; /* end of the recording if ended; else of its last complete interval */
	uint64_t cut_bytes;  /* bytes behind the last complete interval: of one that was not
				finished */
	uint64_t damaged_at; /* offset of the frame that is damaged or invalid; 0: none */
};

/*
 * Opens and checks a recording. A file that was cut off (its writer was killed, the disk was
 * full) is read up to there, see cut_bytes. A damaged one is refused (WSS_ERR_FAILED), unless
 * salvage is set: then it is read up to the damage, or up to invalid content, which is found
 * by a replay here. WSS_ERR_UNSUPPORTED: written by a newer version.
 */
int wss_recfile_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		     struct wss_error *err);

/* The same for an open descriptor, which the file takes over; name is for messages. */
int wss_recfile_open_fd(int fd, const char *name, bool salvage, struct wss_recfile **ret_file,
			struct wss_error *err);

const char *wss_recfile_name(const struct wss_recfile *file);
const struct wss_recording *wss_recfile_recording(const struct wss_recfile *file);
const struct wss_recfile_state *wss_recfile_state(const struct wss_recfile *file);

/*
 * Visitor of a replay. begin and end are called for each interval with the sets before and
 * after it; in between change is called for each run of pages, by index, which is already part
 * of the sets. All may be NULL; those that return a value stop the replay with -1 and err set.
 */
struct wss_recfile_visitor {
	int (*begin)(void *opaque, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err);
	int (*change)(void *opaque, enum wss_change change, struct wss_run run,
		      struct wss_error *err);
	/* There will be a change at this page soon: for wss_pageset_expect(). Says nothing else. */
	void (*expect)(void *opaque, enum wss_change change, uint64_t page);
	int (*end)(void *opaque, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err);
	int (*mark)(void *opaque, uint64_t time_ns, const char *text, struct wss_error *err);
	/* Once, behind all intervals and marks, with the sets that the last interval left. */
	int (*last)(void *opaque, const struct wss_recording_sets *sets, struct wss_error *err);
	/*
	 * The visitor does not look at the sets. They stay empty where an earlier replay has
	 * found the content consistent, and only checksums are checked again.
	 */
	bool without_sets;
};

/*
 * Replays all complete intervals from the beginning. WSS_ERR_FAILED: the content is
 * inconsistent, and at which byte; what the visitor was told before is then void.
 * WSS_ERR_INTERRUPTED: by a signal.
 */
int wss_recfile_replay(struct wss_recfile *file, const struct wss_recfile_visitor *visitor,
		       void *opaque, struct wss_error *err);

/*
 * Memory budget of all sets made while the file is read, the replay's own and its visitor's. A
 * replay that exceeds it fails with WSS_ERR_FAILED and says so.
 */
struct wss_pageset_budget *wss_recfile_budget(struct wss_recfile *file);

/* Closes a recording; accepts NULL. */
void wss_recfile_close(struct wss_recfile *file);

#endif
