/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Events that the controller and the restore report to their caller. They print nothing
 * themselves except warnings and debug lines for the journal.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"

enum wss_control_verb {
	WSS_CONTROL_SHRINKS, /* a step that has been journaled comes next */
	/*
	 * A step that has been journaled comes next, because the guest needs more memory than
	 * it has.
	 */
	WSS_CONTROL_GROWS,
	WSS_CONTROL_GAVE_BACK, /* the balloon has been set to give everything back */
};

struct wss_control_move {
	const char *guest; /* name of the guest */
	enum wss_control_verb verb;
	uint64_t bytes;	     /* size that the balloon then leaves to the guest */
	const char *reason;  /* NULL if it was simply requested */
	uint64_t from_bytes; /* size before a step; else 0 */
};

/*
 * The functions may be called from any thread, never two at the same time, and never after the
 * function that was given this table has returned. Only opaque may be NULL.
 */
struct wss_control_events {
	void (*moved)(const struct wss_control_move *move, void *opaque);
	/* Something has failed for this guest. Each call counts as one failure. */
	void (*trouble)(const char *guest, const struct wss_error *error, void *opaque);
	/* Something worth reporting that is not a failure, as one line of text. */
	void (*progress)(const char *guest, const char *text, void *opaque);
	/* All running guests were requested, but none runs at this URI, which may be "". */
	void (*none_running)(const char *uri, void *opaque);
	void *opaque;
};
