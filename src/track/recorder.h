/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: which pages of a guest's RAM have been touched and written since an
 * invalidation, and when each was touched first. A BPF program on the tracepoint of KVM's
 * second-level faults sets bits in memory that it shares with us. Only a descriptor attaches
 * it, so nothing stays attached when we die.
 *
 * Built in if configure found its prerequisites (--with-bpf); otherwise every function here
 * fails with WSS_ERR_UNSUPPORTED and the reason.
 */
#ifndef WSS_TRACK_RECORDER_H
#define WSS_TRACK_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/host.h"
#include "wss/pages.h"
#include "wss/sample.h"

struct wss_recorder;

/* Counts since wss_recorder_start(). */
struct wss_recorder_counts {
	uint64_t touched_pages; /* pages of 4 KiB in guest RAM, each counted once */
	/* Those of touched_pages that faulted for a write: see pagewise.h. */
	uint64_t written_pages;
	uint64_t ram_faults;
	/* Faults at addresses outside guest RAM: device memory, firmware. */
	uint64_t outside_faults;
	/* Events for which the kernel did not run the program; should be 0. */
	uint64_t missed_events;
};

/* Returns a text for --version: "bpf (libbpf 1.1)", or "not built in: REASON". */
const char *wss_recorder_version(void);

/*
 * Checks whether the recorder can record this guest or, if guest is NULL, any guest of this
 * host. Loads and attaches nothing. WSS_ERR_UNSUPPORTED with the reason: not built in, no
 * tracefs, an unknown layout of the tracepoint or of the guest's memory, or a pid namespace of
 * our own.
 */
int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest,
		       struct wss_error *err);

/*
 * Loads the program for an attached guest in its present configuration, with 64 KiB of bitmaps
 * per GiB of its address space, without attaching it. Fails as wss_recorder_probe() does, and
 * with WSS_ERR_UNSUPPORTED if the kernel refuses the program (no privilege).
 */
int wss_recorder_open(const struct wss_host *host, const struct wss_guest *guest,
		      struct wss_recorder **ret_recorder, struct wss_error *err);

/*
 * Whether the recorder still fits the guest, to which memory may have been plugged since. If
 * not, open another one.
 */
bool wss_recorder_fits(const struct wss_recorder *recorder, const struct wss_guest *guest);

/* Resets everything and attaches the program. Call this right before the invalidation. */
int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err);

/*
 * Declares that the invalidation is over and the window began at origin_ns, a time of
 * wss_clock_now_ns(): times of first touches count from there. Touches before this call count
 * as touches at the start.
 */
void wss_recorder_set_origin(struct wss_recorder *recorder, uint64_t origin_ns);

/* Reads the counts. Never waits, and works while QEMU is stopped. */
void wss_recorder_read(const struct wss_recorder *recorder,
		       struct wss_recorder_counts *ret_counts);

/*
 * Fills in a curve of the bytes touched by each time: exact points, at most a factor of 1.25
 * apart, from when the origin was set to at most until_ns after it. Returns the number of
 * points, at most n.
 */
size_t wss_recorder_curve(const struct wss_recorder *recorder, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n);

/*
 * Return views of the bitmaps, which change while the recorder is attached and must not
 * outlive it.
 */
struct wss_pages wss_recorder_touched(const struct wss_recorder *recorder);
struct wss_pages wss_recorder_written(const struct wss_recorder *recorder);

/* Detaches the program; what was recorded stays. Does nothing if it is not attached. */
void wss_recorder_stop(struct wss_recorder *recorder);

/* Detaches and unloads the program. Accepts NULL. */
void wss_recorder_close(struct wss_recorder *recorder);

#endif
