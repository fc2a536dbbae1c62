/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a recording. Opening goes through the whole file once and checks it; replaying then
 * gives what it says, window by window. What is read is what was written, up to the last
 * whole interval, or it is refused: every byte is covered by a checksum, and what the
 * intervals say must fit together.
 */
#ifndef WSS_REC_READER_H
#define WSS_REC_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wss/recording.h"

struct wss_recfile;

/* What is in the file. */
struct wss_recfile_state {
	uint64_t file_bytes;
	uint64_t intervals;   /* whole ones, gaps included */
	uint64_t windows;     /* those that are no gaps */
	uint64_t marks;
	bool ended;	      /* its end was written */
	uint64_t end_ns;      /* of the recording, where ended; else of its last whole interval */
	uint64_t cut_bytes;   /* behind the last whole interval: of one that was not finished */
	uint64_t damaged_at;  /* offset of the frame that is damaged or makes no sense; 0: none */
};

/*
 * Opens and checks. A file that was cut off (its writer was killed, the disk was full) is
 * read up to there, see cut_bytes. One with damage is refused (WSS_ERR_FAILED), unless salvage:
 * then it is read up to the damage, or to what makes no sense, for which it is replayed here.
 * WSS_ERR_UNSUPPORTED: made by a newer version.
 */
int wss_recfile_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		     struct wss_error *err);

/* As that, of an open descriptor, which becomes the file's; name is for messages. */
int wss_recfile_open_fd(int fd, const char *name, bool salvage, struct wss_recfile **ret_file,
			struct wss_error *err);

const char *wss_recfile_name(const struct wss_recfile *file);
const struct wss_recording *wss_recfile_recording(const struct wss_recfile *file);
const struct wss_recfile_state *wss_recfile_state(const struct wss_recfile *file);

/*
 * Who wants to know. begin and end come for each interval with the sets before and after it,
 * in between a change for each run of pages, by index, already part of the sets.
 * All may be NULL; those that return something stop the replay with -1 and err set.
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
	 * Not the first time: the file has been replayed, so that what it says fits together, and
	 * only its checksums are looked at again. There are no sets then.
	 */
	bool again;
};

/*
 * Replays all whole intervals, from the beginning. WSS_ERR_FAILED: what the file says does not fit
 * together, and at which byte. Nothing that the visitor was told before counts then.
 * WSS_ERR_INTERRUPTED: by a signal.
 */
int wss_recfile_replay(struct wss_recfile *file, const struct wss_recfile_visitor *visitor,
		       void *opaque, struct wss_error *err);

/*
 * What all sets that are made while the file is read may take together, the replay's own and its
 * visitor's. A replay that fails for want of it says so, WSS_ERR_FAILED.
 */
struct wss_pageset_budget *wss_recfile_budget(struct wss_recfile *file);

/* Takes NULL. */
void wss_recfile_close(struct wss_recfile *file);

#endif
