/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recording that is being made: takes what each window saw, page by page, and writes what
 * has changed.
 */
#ifndef WSS_SERVICE_SESSION_H
#define WSS_SERVICE_SESSION_H

#include "base/error.h"
#include "host/guest.h"
#include "rec/writer.h"
#include "wss/pages.h"
#include "wss/sample.h"

/* What one window saw. Times are wss_clock_now_ns(). */
struct wss_session_window {
	uint64_t start_ns;
	uint64_t end_ns;
	const struct wss_sample *sample; /* of the window: what is known of writes, notes, balloon */
	/* Where the pages touched are not known exactly the window becomes a gap. */
	struct wss_page_view pages;
	/* Pages that the host has something for, where that was looked at again; else NULL. */
	const struct wss_pageset *resident;
};

struct wss_session;

/*
 * Prepares a recording of an attached guest to path; the file is made by the first window.
 * method: the name of what observes it. interval_ns, window_ns: as asked for.
 * WSS_ERR_UNSUPPORTED: where its RAM lies is not known; the errors of wss_recwriter_check().
 */
int wss_session_open(const char *path, const struct wss_guest *guest, const char *method,
		     const char *boot_id, uint64_t interval_ns, uint64_t window_ns, struct wss_session **ret_session,
		     struct wss_error *err);

/* Before the first window: the name of the host, for the file. */
void wss_session_set_host(struct wss_session *session, const char *host);

/* Its memory map. */
const struct wss_recording *wss_session_recording(const struct wss_session *session);

/* Adds a window, and a gap before it where it does not begin at the end of the last one. */
int wss_session_add(struct wss_session *session, const struct wss_session_window *window,
		    struct wss_error *err);

/* What was the matter since the last window: the note of the gap before the next, or the end. */
void wss_session_note(struct wss_session *session, const char *text);

struct wss_session_progress {
	uint64_t windows;
	uint64_t gaps; /* windows that were lost: recorded as gaps */
	uint64_t touched_bytes; /* in the last window */
	uint64_t file_bytes;
	uint64_t length_ns;
};

void wss_session_progress(const struct wss_session *session,
			  struct wss_session_progress *ret_progress);

/* Ends the recording at now_ns; nothing is written where there was no window. Frees. Takes NULL. */
int wss_session_close(struct wss_session *session, uint64_t now_ns, struct wss_error *err);

#endif
