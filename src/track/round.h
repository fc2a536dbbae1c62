/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A round: windows over one or many guests at the same time. Guests are armed
 * one after another, never two zaps at once, and their windows overlap, so that a
 * round over a hundred guests takes little longer than one window. One bad guest
 * never holds up or fails the others.
 */
#ifndef WSS_TRACK_ROUND_H
#define WSS_TRACK_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/error.h"
#include "track/window.h"
#include "wss/policy.h"

struct wss_round_options {
	struct wss_window_options window;
	/* One window of each granularity is wanted: two rounds, each with its own in window. */
	bool both_granularities;
	const struct wss_tracker_ops *method; /* NULL: auto */
	unsigned count;	      /* windows a guest, at least 1 */
	uint64_t interval_ns; /* from start to start of two windows; of two reports if cumulative */
	uint64_t deadline_ns; /* what whoever makes the guests gives each as its budget */
	/*
	 * Arm once, report the growing set every interval_ns and at the end of the window. A report
	 * whose moment passes while the one before is read is skipped.
	 */
	bool cumulative;
};

/* One guest of the round. */
struct wss_round_guest {
	const char *name; /* as the user said it, or as it was listed; for messages */
	const char *uuid; /* addresses a guest that was listed; NULL: the name does, as typed */
	struct wss_guest *guest; /* NULL: error says why it could not even be opened */
	struct wss_error error;
	struct wss_policy policy;
	/*
	 * How long it may take besides its windows: in being opened and until its first sample is
	 * there, then again for each further window. One that takes longer is given up, with
	 * WSS_ERR_TIMEOUT; what was armed is restored even so, in a time of its own.
	 */
	struct wss_budget budget;
};

/*
 * Called for each sample, good or bad, as it comes. last: no other follows for this guest.
 */
typedef void (*wss_round_emit)(const struct wss_sample *sample, struct wss_round_guest *entry,
			       bool last, void *opaque);

/*
 * Measures all n guests. What goes wrong with one guest becomes a sample of it.
 * Returns 0, or -1 with WSS_ERR_INTERRUPTED after a stop request (every guest is then restored
 * and samples so far have been emitted), or WSS_ERR_NO_MEMORY.
 */
int wss_round_run(const struct wss_host *host, struct wss_round_guest *guests, size_t n,
		  const struct wss_round_options *options, wss_round_emit emit, void *opaque,
		  struct wss_error *err);

/* Is this an error that the next window would meet, too? False without an error. */
bool wss_round_ends_series(const struct wss_error *error);

#endif
