/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory pressure: signs that a guest had too little memory, and the larger size that they ask for.
 *
 * Theory of operation. Samples have counters that only grow. Between two samples it is a sign of pressure if
 * the guest's kernel or the host's killed a process for want of memory, if the guest swapped memory in, or if
 * major faults, refaults or waits for memory took WSS_PRESSURE_SHARE of the time. What the guest had then was
 * too little: it needs WSS_PRESSURE_MORE more. That counts only if the guest had little more than it is
 * otherwise recommended, up to WSS_PRESSURE_ROOM more: pages that a guest with plenty of memory reads for the
 * first time, say nothing about a smaller size. After an OOM kill alone it counts in any case, as if it had
 * had just that.
 *
 * What this adds to the size halves every WSS_PRESSURE_HALF_LIFE_S, and is dropped once it is
 * WSS_PRESSURE_LEAST of the size or less.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "measure/sample.h"

#define WSS_PRESSURE_SHARE 0.01
#define WSS_PRESSURE_SWAP_IN_BYTES (1ULL << 20) /* between two samples */
#define WSS_PRESSURE_MORE 0.2
#define WSS_PRESSURE_ROOM 0.5
#define WSS_PRESSURE_LEAST 0.05
#define WSS_PRESSURE_HALF_LIFE_S (48 * 3600)
/* At most 80 % are added, which is less than 5 % after four half-lives. */
#define WSS_PRESSURE_SPAN_S (8 * 86400)

enum wss_pressure_kind {
	WSS_PRESSURE_SWAP_IN = 1,
	WSS_PRESSURE_FAULTS = 2,
	WSS_PRESSURE_OOM = 4,
	WSS_PRESSURE_STALL = 8,
	WSS_PRESSURE_REFAULTS = 16,
};

/* What an hour showed. */
struct wss_pressure_event {
	time_t time;	    /* of its last sign */
	unsigned kinds;	    /* of enum wss_pressure_kind */
	uint64_t had_bytes; /* largest size of the balloon at such a sign */
};

/* All zero is empty. */
struct wss_pressure {
	bool watched; /* some counter was known twice */
	size_t n, room;
	struct wss_pressure_event *events; /* ascending, at most one for each hour */
	/* The newest counters. */
	bool has_last;
	time_t last_time;
	struct wss_pressure_counts last;
};

/*
 * Adds the counters of a sample, in the order of measuring, in which times go back if the clock was set back;
 * had_bytes: the size of the balloon. Returns 0, or -1 when out of memory.
 */
int wss_pressure_add(struct wss_pressure *pressure, time_t time,
		     const struct wss_pressure_counts *counts, uint64_t had_bytes);

void wss_pressure_free(struct wss_pressure *pressure);

/*
 * Returns the size that events until now ask for where size_bytes would be recommended otherwise; unknown if
 * none asks for more. ret_event: the event that asks for most, NULL allowed.
 */
struct wss_amount wss_pressure_floor(const struct wss_pressure *pressure, uint64_t size_bytes,
				     time_t now, struct wss_pressure_event *ret_event);

#define WSS_PRESSURE_TEXT_MAX 64

/* Writes "swap-in, OOM kill": the kinds, in words. */
void wss_pressure_format(unsigned kinds, char ret_text[WSS_PRESSURE_TEXT_MAX]);
