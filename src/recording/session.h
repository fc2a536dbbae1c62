/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A recording in progress: takes the pages touched in each window, and writes the changes. */
#pragma once

#include "base/error.h"
#include "host/guest.h"
#include "measure/sample.h"
#include "pages/pages.h"
#include "recording/writer.h"

/* Result of one window. Times are those of wss_clock_now_ns(). */
struct wss_session_window {
	uint64_t start_ns;
	uint64_t end_ns;
	/* Sample of the window, for its written memory, notes and balloon size. */
	const struct wss_sample *sample;
	/* If the touched pages are not known exactly, the window becomes a gap. */
	struct wss_page_view pages;
	/* Pages that the host holds if they have been read again; else not known. */
	struct wss_pages resident;
};

struct wss_session;

/*
 * Prepares a recording of an attached guest to path. method
 * is the method's name; interval_ns and window_ns are as requested. Fails as
 * wss_gpa_of_guest() and wss_recwriter_check() do.
 */
int wss_session_open(const char *path, struct wss_guest *guest, const char *method,
		     const char *boot_id, uint64_t interval_ns, uint64_t window_ns,
		     struct wss_session **ret_session, struct wss_error *err);

/* Sets the name of the host for the file. Call it before the first window. */
void wss_session_set_host(struct wss_session *session, const char *host);

/*
 * Adds a window, and a gap before it if it does not begin at the end of the last one. The first complete window
 * creates the file, or replaces an earlier recording; until then, and if that fails, there is none.
 */
int wss_session_add(struct wss_session *session, const struct wss_session_window *window,
		    struct wss_error *err);

/* Sets the reason why windows have been missing since the last one: the note of the next gap. */
void wss_session_note(struct wss_session *session, const char *text);

/* The same for a window that the end of the recording cut short: that gap does not count as one. */
void wss_session_note_stop(struct wss_session *session);

/* Returns that reason, "" if no window is missing since the last one. Valid until the next call. */
const char *wss_session_why_not(const struct wss_session *session);

struct wss_session_progress {
	uint64_t windows;
	/* Number of lost windows: recorded as gaps, unless before the first window. */
	uint64_t gaps;
	uint64_t touched_bytes; /* in the last window */
	uint64_t file_bytes;
	uint64_t length_ns;
	/* Gaps for a reason, unlike the rest between short windows and the end in a window. */
	uint64_t gap_ns;
	char gap_why[WSS_MARK_TEXT_MAX]; /* of the last one; "": none */
	bool ends_in_gap;		 /* such a one */
};

void wss_session_progress(const struct wss_session *session,
			  struct wss_session_progress *ret_progress);

/*
 * Ends the recording at now_ns and frees the session; accepts NULL. Writes nothing if there
 * was no window. Sets *ret_progress, which may be NULL, to the whole file's.
 */
int wss_session_close(struct wss_session *session, uint64_t now_ns,
		      struct wss_session_progress *ret_progress, struct wss_error *err);
