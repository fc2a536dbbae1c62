/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The growth curve of the written set, from a recording: how many pages were written in one
 * window, and at least once in 4, 16, 64 ... successive windows. Its functions are those of a
 * visitor of a replay (recording/reader.h).
 *
 * Short gaps, as those in which windows are armed, count neither as time nor as windows. A longer gap starts a new
 * succession, and so does a degraded window, which itself does not count.
 */
#pragma once

#include <stdint.h>

#include "base/error.h"
#include "measure/writes.h"
#include "pages/recording.h"

struct wss_recorded_writes;

/*
 * Makes an empty collection; budget limits the memory of its sets, NULL: no limit. The
 * recording must outlive it. WSS_ERR_NO_MEMORY.
 */
int wss_recorded_writes_new(const struct wss_recording *recording,
			    struct wss_pageset_budget *budget,
			    struct wss_recorded_writes **ret_writes, struct wss_error *err);

/* A page that comes, within an interval. opaque is the collection, as below.
 * WSS_ERR_NO_MEMORY. */
int wss_recorded_writes_change(void *opaque, enum wss_change change, struct wss_run run,
			       struct wss_error *err);

/* The end of an interval. WSS_ERR_NO_MEMORY. */
int wss_recorded_writes_end(void *opaque, const struct wss_interval *interval,
			    const struct wss_recording_sets *sets, struct wss_error *err);

/* What a recording says about a migration. Bytes are in the order of enum wss_end. */
struct wss_recorded_result {
	struct wss_writes writes;
	uint64_t n_windows, n_degraded; /* the latter are left out, and not among the former */
	double ram_bytes;
	double touched_bytes;	/* touched at least once */
	double ballooned_bytes; /* taken by the balloon at the end */
};

/*
 * Returns the result so far. Points are known for as many windows as there were. Their low and
 * high end are the least and the most that was seen; where the written pages are not known
 * exactly, the low end is 0 or the lower bound, and the high end, also what is expected, is
 * what was touched, or the upper bound.
 */
void wss_recorded_writes_result(const struct wss_recorded_writes *writes,
				struct wss_recorded_result *ret_result);

/* Frees a collection; accepts NULL. */
void wss_recorded_writes_free(struct wss_recorded_writes *writes);
