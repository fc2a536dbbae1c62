/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recording: windows of one guest, one after the other, into a file that keeps which pages each of
 * them saw (service/session.h). Any method will do that says which pages it has seen.
 */
#ifndef WSS_SERVICE_RECORDING_H
#define WSS_SERVICE_RECORDING_H

#include <stdint.h>

#include "base/error.h"
#include "service/session.h"
#include "service/target.h"
#include "track/window.h"

#define WSS_RECORD_INTERVAL_NS WSS_NS_PER_S
#define WSS_RECORD_LENGTH_NS (60 * WSS_NS_PER_S)

struct wss_record_options {
	const char *path;
	const struct wss_tracker_ops *method; /* NULL: the first that knows pages */
	struct wss_window_options window; /* its length is at most the interval; chain_ns is not used */
	uint64_t interval_ns; /* from start to start of two windows */
	uint64_t length_ns;   /* of the recording; 0: until it is cancelled */
};

/*
 * By 4 KiB, page by page, every second for a minute. window.track.window_ns is 0 for the length of the
 * interval.
 */
void wss_record_options_init(struct wss_record_options *options);

/* What a front end is told, in the thread that records. Either may be NULL. */
struct wss_record_events {
	/* After each window. */
	void (*progress)(const struct wss_session_progress *progress, void *opaque);
	/* The first window has to wait until what the error says has ended. */
	void (*waiting)(const struct wss_error *why, void *opaque);
};

/*
 * Records a target whose guest is open. The file is readable up to the last whole window whenever it
 * ends; ret_progress, filled in any case, says what is in it. Errors: those of opening the window and of
 * the session; WSS_ERR_INTERRUPTED where it was cancelled before its time, or before the first window;
 * WSS_ERR_FAILED where no window could be taken.
 */
int wss_record(struct wss_target *target, const struct wss_record_options *options,
	       const struct wss_record_events *events, void *opaque,
	       struct wss_session_progress *ret_progress, struct wss_error *err);

#endif
