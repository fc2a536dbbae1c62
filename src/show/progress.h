/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A line on the terminal that shows the progress of a task. It appears once the task has taken two
 * seconds, is drawn by a thread of its own, because the task may block, and is erased at the end
 * and before each message of wss_log(). Nothing is ever written unless stderr is a terminal.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct wss_progress;

/*
 * Starts showing the progress of `what` ("measuring"), which takes about length_ns (0:
 * unknown). Returns NULL, which all functions accept, if stderr is not a terminal or memory or
 * a thread is lacking. Only one may exist at a time. Hold or end it before printing to the
 * terminal.
 */
struct wss_progress *wss_progress_begin(const char *what, uint64_t length_ns);

/* Sets text to show next to the time from now on: "3 of 10 windows". */
void wss_progress_say(struct wss_progress *progress, const char *detail);

/* Erases the line until it is released, so that other output can go to the terminal. */
void wss_progress_hold(struct wss_progress *progress);
void wss_progress_release(struct wss_progress *progress);

/* Erases the line and frees the progress. */
void wss_progress_end(struct wss_progress *progress);

/* Formats the line as of passed_ns after the start; detail may be empty. */
void wss_progress_format(const char *what, const char *detail, uint64_t passed_ns,
			 uint64_t length_ns, char *ret_text, size_t size);
