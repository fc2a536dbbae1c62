/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a recording. Opening it reads the whole file once and checks it; replaying then
 * delivers its content window by window. A file is read as it was written, up to the last
 * complete interval, or refused: every byte is covered by a checksum, and the intervals must
 * be consistent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "pages/recording.h"

struct wss_recfile;

/* The content of the file. */
struct wss_recfile_state {
	uint64_t file_bytes;
	uint64_t intervals; /* complete intervals, including gaps */
	uint64_t windows;   /* complete intervals that are not gaps */
	uint64_t degraded;  /* windows that are degraded */
	uint64_t marks;
	bool ended;	     /* the recording has an end frame */
	uint64_t end_ns;     /* end of the recording if ended, else of its last complete interval */
	uint64_t cut_bytes;  /* bytes of an unfinished interval after the last complete one */
	uint64_t damaged_at; /* offset of the frame that is damaged or invalid; 0: none */
};

/*
 * Returns the size of the data that is read of a recording. Memory and time may depend on it, but
 * not on file_bytes: the end of a file may be a hole of any length.
 */
static inline uint64_t wss_recfile_data_bytes(const struct wss_recfile_state *state)
{
	return state->file_bytes - state->cut_bytes;
}

/*
 * Opens and checks a recording. A truncated file (its writer was killed, the disk was full) is
 * read up to its last complete interval, see cut_bytes. A damaged one is refused
 * (WSS_ERR_FAILED) unless salvage is set: then it is read up to the damage.
 * WSS_ERR_UNSUPPORTED: written by a newer version.
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
 * Visitor of a replay. For each interval, begin and end are called with the sets before and
 * after it; in between, change is called for each run of page indices, which the sets already
 * include. All may be NULL; those that return a value can stop the replay by returning -1 with
 * err set.
 */
struct wss_recfile_visitor {
	int (*begin)(void *opaque, const struct wss_interval *interval,
		     const struct wss_recording_sets *sets, struct wss_error *err);
	int (*change)(void *opaque, enum wss_change change, struct wss_run run,
		      struct wss_error *err);
	/* A change at this page will follow soon: for wss_pageset_expect(). Only a hint. */
	void (*expect)(void *opaque, enum wss_change change, uint64_t page);
	int (*end)(void *opaque, const struct wss_interval *interval,
		   const struct wss_recording_sets *sets, struct wss_error *err);
	int (*mark)(void *opaque, uint64_t time_ns, const char *text, struct wss_error *err);
	/* Called once, after all intervals and marks, with the sets as of the last interval. */
	int (*last)(void *opaque, const struct wss_recording_sets *sets, struct wss_error *err);
	/*
	 * The visitor does not use the sets. They stay empty, and only checksums are checked,
	 * if an earlier replay has already found the content consistent.
	 */
	bool without_sets;
};

/*
 * Replays all complete intervals from the beginning. WSS_ERR_FAILED, naming the byte, if the
 * content is inconsistent; everything passed to the visitor is then void. WSS_ERR_INTERRUPTED
 * after a stop request.
 */
int wss_recfile_replay(struct wss_recfile *file, const struct wss_recfile_visitor *visitor,
		       void *opaque, struct wss_error *err);

/*
 * Content may be inconsistent although its checksums are right, which only a replay detects. After
 * a replay of a file opened with salvage has failed for that reason, this leaves out the content
 * from there on, clears err and returns 1: replay again, from the beginning. Returns 0, and leaves
 * err alone, if there is nothing to leave out, else -1.
 */
int wss_recfile_shorten(struct wss_recfile *file, struct wss_error *err);

/*
 * Memory budget for all sets made while the file is read, both the replay's own and the
 * visitor's. A replay that exceeds it fails with WSS_ERR_FAILED and a message about that.
 */
struct wss_pageset_budget *wss_recfile_budget(struct wss_recfile *file);

/* Closes a recording; accepts NULL. */
void wss_recfile_close(struct wss_recfile *file);
