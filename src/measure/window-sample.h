/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes the sample of a window: its figures, the curve, the guest's memory, and any limits on
 * their validity. measure/window.h drives the window and records its events here; nothing here
 * changes the guest.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/standstill.h"
#include "measure/sample.h"
#include "measure/tracker.h"
#include "measure/window.h"

struct wss_cpu_time {
	uint64_t user_ns;
	uint64_t system_ns;
};

/* Facts collected during a window. The window's driver fills in all but memory. */
struct wss_window_facts {
	const struct wss_host *host;
	const struct wss_guest *guest;
	const struct wss_window_options *options;
	struct wss_tracker *tracker;
	struct wss_span armed; /* time in which arming may have stalled the guest */
	uint64_t start_ns;     /* start of the measured window */
	struct wss_prediction predicted;
	struct wss_cpu_time cpu; /* CPU time spent on this window */
	struct wss_sample curve; /* only its curve is used: the points of the polls */
	bool cut;		 /* the window ends early */
	bool slipped;		 /* the guest ran while it should have been held */
	struct wss_standstill standstill;
	uint64_t suspended_ns; /* wss_clock_suspended_ns() at the start */
	struct wss_disturbance disturbance;
	struct {
		uint64_t read_ns; /* when QEMU's page tables were walked for them; 0: never */
		struct wss_sample figures; /* only its memory figures are used */
	} memory;			   /* kept across windows: see options->memory_age_ns */
};

/* "frozen by its cgroup for about 50 % of the window", for one or two causes. */
#define WSS_STOOD_STILL_LEN 160

/*
 * Whether the guest could not run for a part of the window, up to end_ns. The text says why and for how much of it,
 * the main cause first; else it is untouched.
 */
bool wss_window_stood_still(const struct wss_window_facts *facts, uint64_t end_ns,
			    char ret_text[WSS_STOOD_STILL_LEN]);

/* Predicts how long wss_window_sample_begin() will walk QEMU's page tables; 0: it will not. */
uint64_t wss_window_predict_memory_ns(const struct wss_window_facts *facts);

/*
 * Begins the sample of a window with all that needs no reading. Reads the memory figures again if they are too old;
 * if that fails, a note gives the reason.
 */
void wss_window_sample_begin(struct wss_window_facts *facts, struct wss_sample *ret_sample);

/* Completes the sample of a window that ends, or is read, at end_ns with this reading. */
void wss_window_sample(const struct wss_window_facts *facts, const struct wss_reading *reading,
		       uint64_t end_ns, struct wss_sample *sample);

/*
 * Fills in the part of a sample that needs no window: the guest's identity and sizes. Also
 * used for guests that could not be measured. ops may be NULL.
 */
void wss_window_describe(const struct wss_guest *guest, const struct wss_tracker_ops *ops,
			 const struct wss_window_options *options, struct wss_sample *ret_sample);
