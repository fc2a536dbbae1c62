/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a window becomes for its reader: a sample, with the figures, the curve, the guest's
 * memory, and what speaks against it. track/window.h drives the window and notes here what
 * has happened in it; nothing here changes the guest.
 */
#ifndef WSS_TRACK_WINDOW_SAMPLE_H
#define WSS_TRACK_WINDOW_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "track/tracker.h"
#include "track/window.h"
#include "wss/sample.h"

struct wss_cpu_time {
	uint64_t user_ns;
	uint64_t system_ns;
};

/* What is noted of a window while it lasts. Whoever drives it fills all but memory. */
struct wss_window_facts {
	const struct wss_guest *guest;
	const struct wss_window_options *options;
	struct wss_tracker *tracker;
	struct wss_span armed; /* time in which arming may have kept the guest waiting */
	uint64_t start_ns;     /* of the measured window */
	uint64_t predicted_ns; /* the stall; 0: not predicted */
	struct wss_cpu_time cpu; /* spent on this window */
	struct wss_sample curve; /* of the polls: only the curve of it is used */
	bool cut;		 /* ends before its time */
	bool slipped;		 /* the guest went on while it was to be held */
	bool stopped; /* the guest was seen paused, or QEMU stopped by a signal, within it */
	struct {
		uint64_t read_ns;	 /* when they were read, 0: never */
		struct wss_sample figures; /* only the memory figures of it are used */
	} memory;		/* kept from window to window: options->memory_age_ns */
};

/*
 * The sample of a window that ends, or has got, at end_ns with this reading. The memory
 * figures are read anew when they are too old; without them a note says why.
 */
void wss_window_sample(struct wss_window_facts *facts, const struct wss_reading *reading,
		       uint64_t end_ns, struct wss_sample *ret_sample);

/*
 * The part of a sample that needs no window: who the guest is, its sizes. Used
 * for guests that could not be measured, too. ops may be NULL.
 */
void wss_window_describe(const struct wss_guest *guest, const struct wss_tracker_ops *ops,
			 const struct wss_window_options *options, struct wss_sample *ret_sample);

#endif
