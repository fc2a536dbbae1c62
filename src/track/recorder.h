/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: which pages of a guest's RAM have been touched since an invalidation, which
 * written to, and when each was touched first. A BPF program on the tracepoint of KVM's
 * second-level faults sets bits in memory that is shared with us. Attached to the kernel
 * by a descriptor only: when we die, however, nothing is left attached.
 *
 * Built in where configure found what it needs (--with-bpf); else everything here is
 * WSS_ERR_UNSUPPORTED with the reason.
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

/* Since wss_recorder_start(). */
struct wss_recorder_counts {
	uint64_t touched_pages; /* of 4 KiB, inside guest RAM, each once */
	uint64_t written_pages; /* of these those that faulted for a write: see pagewise.h */
	uint64_t ram_faults;
	uint64_t outside_faults; /* at addresses outside guest RAM: device memory, firmware */
	uint64_t missed_events;	 /* that the kernel did not run the program for; should be 0 */
};

/* For --version: "bpf (libbpf 1.1)", or "not built in: REASON". */
const char *wss_recorder_version(void);

/*
 * Could it record this guest? guest NULL: any guest of this host. Nothing is loaded
 * or attached. WSS_ERR_UNSUPPORTED with the reason: not built in, no tracefs, an unknown
 * layout of the tracepoint or of the guest's memory, a pid namespace of our own.
 */
int wss_recorder_probe(const struct wss_host *host, const struct wss_guest *guest,
		       struct wss_error *err);

/*
 * Loads the program for an attached guest as it is configured now, with 64 KiB of bitmaps
 * a GiB of its address space. Nothing is attached yet. Errors of the probe;
 * WSS_ERR_UNSUPPORTED also where the kernel refuses the program (no privilege).
 */
int wss_recorder_open(const struct wss_host *host, const struct wss_guest *guest,
		      struct wss_recorder **ret_recorder, struct wss_error *err);

/* Does it still fit the guest, whose RAM may have been plugged? If not, open another. */
bool wss_recorder_fits(const struct wss_recorder *recorder, const struct wss_guest *guest);

/* Forgets everything and attaches; to be called right before the invalidation. */
int wss_recorder_start(struct wss_recorder *recorder, struct wss_error *err);

/*
 * The invalidation is over and the window began at origin_ns, wss_clock_now_ns(): times of
 * first touches count from there. Touches until now are as if at the start.
 */
void wss_recorder_set_origin(struct wss_recorder *recorder, uint64_t origin_ns);

/* Never waits, and works when QEMU is stopped. */
void wss_recorder_read(const struct wss_recorder *recorder,
		       struct wss_recorder_counts *ret_counts);

/*
 * How many bytes had been touched by each time: exact, points of wss_curve_point since the
 * origin at most a factor of 1.25 apart, from where the origin was set to until_ns after it,
 * both at most. Returns how many, at most n.
 */
size_t wss_recorder_curve(const struct wss_recorder *recorder, uint64_t until_ns,
			  struct wss_curve_point *ret_points, size_t n);

/* Views of the bitmaps. These change while the recorder is attached, and are gone with it. */
struct wss_pages wss_recorder_touched(const struct wss_recorder *recorder);
struct wss_pages wss_recorder_written(const struct wss_recorder *recorder);

/* Detaches; what was recorded stays. Does nothing where it is not attached. */
void wss_recorder_stop(struct wss_recorder *recorder);

/* Detaches and unloads. Takes NULL. */
void wss_recorder_close(struct wss_recorder *recorder);

#endif
