/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows of 4 KiB granularity on guests that KVM maps large: decides whether to use them,
 * keeps the dirty log on around them (measure/dirtylog.h), and checks afterwards that the guest
 * is as it was before. The caller reads KVM's counters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/kvmstat.h"
#include "measure/dirtylog.h"
#include "measure/sample.h"
#include "measure/tracker.h"

struct wss_fine {
	bool on;	   /* windows have 4 KiB granularity */
	bool needs_no_log; /* windows have it although no log is on: none of the memory is on huge pages */
	bool may_be_native; /* "auto": windows may fall back to native granularity */
	/* One log for as many windows as it can cover: see wss_track_options. */
	uint64_t chain_ns;
	uint64_t chain_end_ns;	     /* end of the chain; 0: the first log is not started yet */
	struct wss_error why_native; /* why "auto" did not choose 4 KiB */
	struct wss_dirtylog log;
	uint64_t asked_ns;  /* when the log was requested */
	uint64_t zapped_ns; /* how long the zap before the last log took */
	uint64_t begun_ns;  /* when the window began */
	bool coarse_seen;   /* large entries were mapped all the same */
	/* Number of times that the window was armed again because of that. */
	unsigned again;
	unsigned late;	/* number of logs that came on too late for the window */
	bool was_large; /* KVM had mapped large entries before the log was started */
	struct {
		uint64_t ns; /* when the log was seen to have ended; 0: not yet */
		uint64_t faults;
	} ended;
};

/*
 * Decides once, according to options->granularity. stall_ns is the predicted stall of the
 * vCPUs by arming at 4 KiB; it matters for "auto" only. WSS_ERR_UNSUPPORTED if 4 KiB is
 * requested and the dirty log is not possible, unless pages are wanted of a guest without huge pages.
 */
int wss_fine_choose(struct wss_fine *fine, const struct wss_guest *guest,
		    const struct wss_track_options *options, uint64_t stall_ns,
		    struct wss_error *err);

/*
 * Takes one step towards a log that is on, like a tracker's prepare(); counts are KVM's
 * newest. Zaps just before starting the log, which then has less to split: docs/measurements.md.
 */
int wss_fine_prepare(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		     const struct wss_kvm_counts *counts, struct wss_error *err);

/* Whether the next step zaps, and starts a log, if it can. */
bool wss_fine_prepare_stalls(const struct wss_fine *fine, uint64_t window_ns);

/*
 * Returns how many entries of 4 KiB the second zap finds at most: what the guest's vCPUs can fault in, at fault_ns each, until the
 * log is seen to be on, of rss_bytes.
 */
uint64_t wss_fine_entries(const struct wss_guest *guest, uint64_t rss_bytes, double fault_ns);

/* Records that a window has been armed. */
void wss_fine_begun(struct wss_fine *fine);

/* Records KVM's counters within the window. */
void wss_fine_seen(struct wss_fine *fine, const struct wss_kvm_counts *counts);

/*
 * Implements spoilt() of a tracker: large entries were seen, and the log still covers a whole
 * window.
 */
bool wss_fine_spoilt(const struct wss_fine *fine, uint64_t window_ns);

/*
 * Implements settle() of a tracker; counts is NULL if they can no longer be read. logs_writes: whether KVM keeps a dirty
 * log of guest RAM now; if that is unknown, large entries tell, if the guest touches something.
 */
bool wss_fine_settle(struct wss_fine *fine, struct wss_guest *guest,
		     const struct wss_kvm_counts *counts, enum wss_tristate logs_writes,
		     struct wss_sample *sample);

/* Implements explain() of a tracker. */
void wss_fine_explain(const struct wss_fine *fine, struct wss_sample *sample);
