/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The room recording/: recordings, files that keep which pages a guest touched in each of many
 * windows (docs/recording-format.md).
 *
 *   recording.h  this file: takes the windows, with any method that reports pages
 *   session.h    one recording in progress: turns the pages of each window into changes
 *   writer.h     writes them: codec.h encodes, append.h shares the file with the writers of marks
 *   reader.h     opens and checks a file, and replays it to a visitor (replay.c)
 *   recfiles.h   opens those that a user names, with warnings of what they lack
 *   written.h    how much a guest writes within a time, live; recorded-writes.h: from a recording
 *
 * In: a target (measure/target.h). Out: the file, and from it a struct wss_recording
 * (pages/recording.h) with calls for each change, which pages/ turns into figures and pictures.
 *
 * A recording has no name until its first window is in the file. Then it is in progress, as a lock
 * shows, until its end is written. One whose writer was killed is read up to its last whole window.
 * The windows are taken in a worker; other processes may read the file and add marks meanwhile.
 *
 * Begin with session.c and writer.h. What a file is to have in addition goes into codec.c or
 * tokens.h, and into docs/recording-format.md.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "measure/target.h"
#include "measure/window.h"
#include "recording/session.h"

#define WSS_RECORD_INTERVAL_NS WSS_NS_PER_S
#define WSS_RECORD_LENGTH_NS (60 * WSS_NS_PER_S)

struct wss_record_options {
	const char *path;
	const struct wss_tracker_ops *method; /* NULL: the first method that reports pages */
	/* Its length is at most the interval; chain_ns is ignored. */
	struct wss_window_options window;
	uint64_t interval_ns; /* from start to start of two windows */
	uint64_t length_ns;   /* length of the recording; 0: until it is cancelled */
};

/*
 * Sets the defaults: windows of 4 KiB granularity with pages, every second for a minute.
 * window.track.window_ns is 0, which means the length of the interval.
 */
void wss_record_options_init(struct wss_record_options *options);

/* Events for the caller, called in the thread that calls wss_record(). Either may be NULL. */
struct wss_record_events {
	/* Called after each window. */
	void (*progress)(const struct wss_session_progress *progress, void *opaque);
	/* The first window has to wait until the condition that the error describes has ended. */
	void (*waiting)(const struct wss_error *why, void *opaque);
};

/*
 * Records a target whose guest is open, until the parent of its cancel token is requested or the
 * time is over. Takes the target, and frees it. Every call of libvirt and QEMU is made in a worker
 * with the target's deadline; one that hangs ends the recording, and the worker keeps the target.
 * However the recording ends, the file is readable up to the last whole window, and
 * *ret_progress describes its content. Returns 0, or -1 with WSS_ERR_TIMEOUT if a call hangs,
 * WSS_ERR_INTERRUPTED if it was cancelled early or before the first window, WSS_ERR_FAILED if none of the first
 * windows could be recorded, and then an earlier recording of that name is left as it was, or the error of opening the window or the session.
 */
int wss_record(struct wss_target *target, const struct wss_record_options *options,
	       const struct wss_record_events *events, void *opaque,
	       struct wss_session_progress *ret_progress, struct wss_error *err);
