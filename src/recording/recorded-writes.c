/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/recorded-writes.h"

#include <math.h>
#include <stdlib.h>

/* Successions of 4, 16, 64 and 256 windows. More would take more steps than reading may take.
 */
#define LEVELS 4
#define LEVEL_FACTOR 4

/* What was found in all successions of one length. */
struct level_sum {
	uint64_t n;
	double seconds, bytes, low_bytes, high_bytes;
};

struct level {
	uint64_t wanted;  /* windows */
	uint64_t windows; /* of the current succession, so far; 0: it begins with the next
			     window */
	double seconds;
	struct wss_pageset *touched, *written; /* in the current succession */
	struct level_sum sum;
};

struct wss_recorded_writes {
	const struct wss_recording *recording;
	struct level_sum single; /* windows */
	uint64_t n_degraded;
	struct level levels[LEVELS];
	struct wss_pageset *ever; /* touched */
	uint64_t ballooned_pages;
	/* Whether the sets of written pages of all windows so far are such bounds. */
	bool known_low, known_high;
};

static int recorded_no_memory(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
}

static struct wss_pageset *recorded_set(const struct wss_recording *recording,
					struct wss_pageset_budget *budget)
{
	struct wss_pageset *set = wss_pageset_new(wss_recording_pages(recording));

	if (set)
		wss_pageset_limit(set, budget);
	return set;
}

int wss_recorded_writes_new(const struct wss_recording *recording,
			    struct wss_pageset_budget *budget,
			    struct wss_recorded_writes **ret_writes, struct wss_error *err)
{
	struct wss_recorded_writes *writes = calloc(1, sizeof(*writes));
	uint64_t wanted = 1;
	bool all;

	if (!writes)
		return recorded_no_memory(err);
	writes->recording = recording;
	writes->known_low = writes->known_high = true;
	writes->ever = recorded_set(recording, budget);
	all = writes->ever != NULL;
	for (size_t i = 0; i < LEVELS; i++) {
		struct level *level = &writes->levels[i];

		level->wanted = wanted *= LEVEL_FACTOR;
		level->touched = recorded_set(recording, budget);
		level->written = recorded_set(recording, budget);
		all = all && level->touched && level->written;
	}
	if (!all) {
		wss_recorded_writes_free(writes);
		return recorded_no_memory(err);
	}
	*ret_writes = writes;
	return 0;
}

int wss_recorded_writes_change(void *opaque, enum wss_change change, struct wss_run run,
			       struct wss_error *err)
{
	struct wss_recorded_writes *writes = opaque;

	if (change != WSS_CHANGE_TOUCHED && change != WSS_CHANGE_WRITTEN)
		return 0;
	if (change == WSS_CHANGE_TOUCHED && wss_pageset_add(writes->ever, run.first, run.n) < 0)
		return recorded_no_memory(err);
	for (size_t i = 0; i < LEVELS; i++) {
		struct level *level = &writes->levels[i];
		struct wss_pageset *set =
			change == WSS_CHANGE_TOUCHED ? level->touched : level->written;

		if (level->windows && wss_pageset_add(set, run.first, run.n) < 0)
			return recorded_no_memory(err);
	}
	return 0;
}

static void sum_add(struct level_sum *sum, double seconds, const struct wss_pageset *touched,
		    const struct wss_pageset *written, const struct wss_recorded_writes *writes)
{
	double most = (double)wss_pageset_count(writes->known_high ? written : touched);
	double least = writes->known_low ? (double)wss_pageset_count(written) : 0;

	sum->low_bytes = sum->n ? fmin(sum->low_bytes, least * (double)WSS_PAGE_BYTES)
				: least * (double)WSS_PAGE_BYTES;
	sum->high_bytes = fmax(sum->high_bytes, most * (double)WSS_PAGE_BYTES);
	sum->bytes += most * (double)WSS_PAGE_BYTES;
	sum->seconds += seconds;
	sum->n++;
}

/* Begins a succession with the window that has just ended, or adds the window to it. */
static int level_step(struct level *level, double seconds, const struct wss_recording_sets *sets,
		      const struct wss_recorded_writes *writes)
{
	if (!level->windows) {
		level->seconds = 0;
		if (wss_pageset_copy(level->touched, sets->touched) < 0 ||
		    wss_pageset_copy(level->written, sets->written) < 0)
			return -1;
	}
	level->seconds += seconds;
	if (++level->windows < level->wanted)
		return 0;
	sum_add(&level->sum, level->seconds, level->touched, level->written, writes);
	level->windows = 0;
	return 0;
}

/*
 * Nobody knows what was written in a long gap, or in a window of which pages are missing, so that successions end there.
 */
static void recorded_leave_out(struct wss_recorded_writes *writes,
			       const struct wss_interval *interval)
{
	if (interval->gap &&
	    interval->end_ns - interval->start_ns <= writes->recording->window_ns / 4)
		return;
	writes->n_degraded += !interval->gap;
	for (size_t i = 0; i < LEVELS; i++)
		writes->levels[i].windows = 0;
}

int wss_recorded_writes_end(void *opaque, const struct wss_interval *interval,
			    const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct wss_recorded_writes *writes = opaque;
	double seconds = (double)(interval->end_ns - interval->start_ns) / 1e9;

	if (interval->gap || interval->degraded) {
		recorded_leave_out(writes, interval);
		return 0;
	}
	writes->known_low = writes->known_low && (interval->written == WSS_WRITTEN_EXACT ||
						  interval->written == WSS_WRITTEN_LOW);
	writes->known_high = writes->known_high && (interval->written == WSS_WRITTEN_EXACT ||
						    interval->written == WSS_WRITTEN_HIGH);
	writes->ballooned_pages = wss_pageset_count(sets->ballooned);
	sum_add(&writes->single, seconds, sets->touched, sets->written, writes);
	for (size_t i = 0; i < LEVELS; i++)
		if (level_step(&writes->levels[i], seconds, sets, writes) < 0)
			return recorded_no_memory(err);
	return 0;
}

static void result_add(struct wss_writes *writes, const struct level_sum *sum)
{
	double n = (double)sum->n;

	if (sum->n)
		wss_writes_add(writes, sum->seconds / n, sum->low_bytes, sum->bytes / n,
			       sum->high_bytes);
}

void wss_recorded_writes_result(const struct wss_recorded_writes *writes,
				struct wss_recorded_result *ret_result)
{
	*ret_result = (struct wss_recorded_result){
		.n_windows = writes->single.n,
		.n_degraded = writes->n_degraded,
		.ram_bytes = (double)(wss_recording_pages(writes->recording) * WSS_PAGE_BYTES),
		.touched_bytes = (double)(wss_pageset_count(writes->ever) * WSS_PAGE_BYTES),
		.ballooned_bytes = (double)(writes->ballooned_pages * WSS_PAGE_BYTES),
	};
	result_add(&ret_result->writes, &writes->single);
	for (size_t i = 0; i < LEVELS; i++)
		result_add(&ret_result->writes, &writes->levels[i].sum);
}

void wss_recorded_writes_free(struct wss_recorded_writes *writes)
{
	if (!writes)
		return;
	for (size_t i = 0; i < LEVELS; i++) {
		wss_pageset_free(writes->levels[i].touched);
		wss_pageset_free(writes->levels[i].written);
	}
	wss_pageset_free(writes->ever);
	free(writes);
}
