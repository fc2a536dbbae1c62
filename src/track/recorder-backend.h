/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What records: recorder-bpf.c, or recorder-none.c where that is not built. Private to
 * recorder.c.
 */
#ifndef WSS_TRACK_RECORDER_BACKEND_H
#define WSS_TRACK_RECORDER_BACKEND_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "host/gpa.h"
#include "track/fault-event.h"
#include "track/recorder-shared.h"

struct wss_recorder_plan {
	pid_t tgid;
	struct wss_fault_event event;
	struct wss_gpa_layout layout;
};

/* The program's variables. It changes them while it is attached. */
struct wss_recorder_state {
	volatile uint64_t *origin_ns;
	const volatile uint64_t *ram_faults;
	const volatile uint64_t *outside_faults;
	const volatile uint64_t *written_pages;
	const volatile uint64_t *first_touches; /* WSS_TOUCH_BUCKETS */
	const uint64_t *touched;
	const uint64_t *written;
	uint64_t words; /* of 64 pages each, in either bitmap */
};

struct wss_recorder_backend;

const char *wss_recorder_backend_version(void);

/* 0, or WSS_ERR_UNSUPPORTED with why it is not built in. */
int wss_recorder_backend_probe(struct wss_error *err);

int wss_recorder_backend_open(const struct wss_recorder_plan *plan,
			      struct wss_recorder_backend **ret_backend,
			      struct wss_recorder_state *ret_state, struct wss_error *err);

/* Sets everything to zero and attaches. */
int wss_recorder_backend_start(struct wss_recorder_backend *backend, struct wss_error *err);

uint64_t wss_recorder_backend_missed(const struct wss_recorder_backend *backend);
void wss_recorder_backend_stop(struct wss_recorder_backend *backend);
void wss_recorder_backend_close(struct wss_recorder_backend *backend);

#endif
