/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Backend of the recorder: recorder-bpf.c, recorder-none.c if that is not built, or a test's
 * own. Private to recorder.c.
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

/* Variables of the BPF program, which changes them while it is attached. */
struct wss_recorder_state {
	volatile uint64_t *origin_ns;
	const volatile uint64_t *ram_faults;
	const volatile uint64_t *outside_faults;
	const volatile uint64_t *written_pages;
	const volatile uint64_t *first_touches; /* WSS_TOUCH_BUCKETS */
	const uint64_t *touched;
	const uint64_t *written;
	uint64_t words; /* number of words, of 64 pages each, in each bitmap */
};

struct wss_recorder_backend;

struct wss_recorder_backend_ops {
	/* For --version: "bpf (libbpf 1.1)", or why there is none. */
	const char *(*version)(void);

	/*
	 * Returns 0, or -1 with WSS_ERR_UNSUPPORTED and the reason why it is not built in;
	 * then none of the other functions is called.
	 */
	int (*probe)(struct wss_error *err);

	/*
	 * Loads the program according to the plan; *ret_state points into the backend.
	 * WSS_ERR_UNSUPPORTED.
	 */
	int (*open)(const struct wss_recorder_plan *plan,
		    struct wss_recorder_backend **ret_backend,
		    struct wss_recorder_state *ret_state, struct wss_error *err);

	/* Sets everything to zero and attaches. WSS_ERR_UNSUPPORTED. */
	int (*start)(struct wss_recorder_backend *backend, struct wss_error *err);

	/* Returns the number of events since start that the kernel did not report. */
	uint64_t (*missed)(const struct wss_recorder_backend *backend);

	/* Detaches; does nothing if not attached. */
	void (*stop)(struct wss_recorder_backend *backend);

	/* Detaches and releases. */
	void (*close)(struct wss_recorder_backend *backend);
};

/* The backend in use; like wss_trackers, tests may replace it. */
extern const struct wss_recorder_backend_ops wss_recorder_backend_ops;

#endif
