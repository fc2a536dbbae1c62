/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Windows by 4 KiB on guests that KVM maps large: whether to take them, the dirty log
 * around them (track/dirtylog.h), and that the guest is as it was before after them. KVM's
 * counters are the caller's to read.
 */
#ifndef WSS_TRACK_FINE_H
#define WSS_TRACK_FINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "host/guest.h"
#include "host/kvmstat.h"
#include "track/dirtylog.h"
#include "track/tracker.h"
#include "wss/sample.h"

struct wss_fine {
	bool on; /* windows are by 4 KiB */
	bool may_be_native; /* auto: where 4 KiB cannot be had any more */
	uint64_t chain_ns;   /* one log for as many windows as it can last: see wss_track_options */
	uint64_t chain_end_ns; /* when the last of them ends, 0: the first log is not started yet */
	struct wss_error why_native; /* why auto did not take 4 KiB */
	struct wss_dirtylog log;
	uint64_t asked_ns; /* for the log */
	uint64_t begun_ns; /* the window */
	bool coarse_seen;  /* large entries came all the same */
	unsigned again;	   /* times that the window was begun again for that */
	unsigned late;	   /* logs that were on too late for the window */
	bool was_large;	   /* KVM mapped large entries before the log was started */
	struct {
		uint64_t ns; /* when the log was seen to have ended, 0: it was not */
		uint64_t faults;
	} ended;
};

/*
 * Decides by options->granularity, once. stall_ns: how long arming by 4 KiB is predicted to
 * keep the vCPUs waiting; looked at for auto only. WSS_ERR_UNSUPPORTED where 4 KiB is
 * asked for and cannot be had.
 */
int wss_fine_choose(struct wss_fine *fine, const struct wss_guest *guest,
		    const struct wss_track_options *options, uint64_t stall_ns,
		    struct wss_error *err);

/*
 * One step towards a log that is on, as prepare() of a tracker; counts are KVM's newest. Zaps
 * just before the log is started, which leaves it less to split: docs/4k-cost.md.
 */
int wss_fine_prepare(struct wss_fine *fine, struct wss_guest *guest, uint64_t window_ns,
		     const struct wss_kvm_counts *counts, struct wss_error *err);

/* A window has been armed. */
void wss_fine_begun(struct wss_fine *fine);

/* What KVM counts within the window. */
void wss_fine_seen(struct wss_fine *fine, const struct wss_kvm_counts *counts);

/* As spoilt() of a tracker: large entries were seen, and a whole window still fits the log. */
bool wss_fine_spoilt(const struct wss_fine *fine, uint64_t window_ns);

/* As settle() of a tracker; counts NULL: they cannot be read any more. */
bool wss_fine_settle(struct wss_fine *fine, struct wss_guest *guest,
		     const struct wss_kvm_counts *counts, struct wss_sample *sample);

/* As explain() of a tracker. */
void wss_fine_explain(const struct wss_fine *fine, struct wss_sample *sample);

#endif
