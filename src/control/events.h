/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the controller and the restore tell whoever started them. They print nothing themselves
 * but warnings and debug lines for the journal.
 */
#ifndef WSS_CONTROL_EVENTS_H
#define WSS_CONTROL_EVENTS_H

#include <stdint.h>

#include "base/error.h"

enum wss_control_verb {
	WSS_CONTROL_SHRINKS,   /* a step has been journaled and comes next */
	WSS_CONTROL_GROWS,     /* likewise, as the guest needs more than it was left with */
	WSS_CONTROL_GAVE_BACK, /* the balloon has been told to give everything back */
};

struct wss_control_move {
	const char *guest; /* its name */
	enum wss_control_verb verb;
	uint64_t bytes;	    /* what the balloon then leaves to the guest */
	const char *reason; /* NULL where there is none but that it was asked for */
};

/*
 * Called from any thread, never two calls at a time, and never again once the function that
 * was given the table has returned. No pointer is NULL but opaque.
 */
struct wss_control_events {
	void (*moved)(const struct wss_control_move *move, void *opaque);
	/* Something has failed for this guest. Counts once against the result. */
	void (*trouble)(const char *guest, const struct wss_error *error, void *opaque);
	/* Something worth knowing that is no failure, as one line of text. */
	void (*progress)(const char *guest, const char *text, void *opaque);
	/* All running guests were asked for, and none runs at this URI, which may be "". */
	void (*none_running)(const char *uri, void *opaque);
	void *opaque;
};

#endif
