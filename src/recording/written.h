/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much a guest writes within a time: one window over what is touched, whose growth curve
 * is the upper bound at any time, then QEMU's page sampling over windows of increasing length
 * (measure/sampling.h, measure/writes.h).
 */
#pragma once

#include <stddef.h>

#include "base/error.h"
#include "host/cputime.h"
#include "measure/measure.h"
#include "measure/sample.h"
#include "measure/target.h"
#include "measure/writes.h"

/* Windows of 1, 2, 4 ... 32 s. */
#define WSS_WRITTEN_WINDOWS 6

struct wss_written_result {
	double ram_bytes; /* all of the guest's memory; 0: not even that is known */
	size_t n_sampled;
	struct wss_writes_point sampled[WSS_WRITTEN_WINDOWS];
	struct wss_cputime_shares busy;	 /* while pages were sampled; 0: unknown */
	struct wss_error sampling_error; /* why there are fewer than wanted */
	struct wss_sample sample;	 /* of the window over touched memory, good or bad */
};

/* Returns the time in ns that the windows take together. */
uint64_t wss_written_length_ns(const struct wss_measure_options *measure);

/*
 * Measures a target after wss_target_open(), in a worker, with one window of measure, which
 * must want the curve. The window comes first, because QEMU reads the pages that it samples, and shared
 * memory that was never used has pages from then on. ret_result->sample says whether that worked. Fails if the
 * target is not open; WSS_ERR_INTERRUPTED.
 */
int wss_written_window(struct wss_target *target, const struct wss_measure_options *measure,
		       struct wss_written_result *ret_result, struct wss_error *err);

/*
 * Adds windows of sampled pages that are no longer than that of measure, in another step, so that a QEMU which stops to
 * answer takes no figure of the window with it. result->sampling_error says why there are fewer. WSS_ERR_INTERRUPTED.
 */
int wss_written_sample(struct wss_target *target, const struct wss_measure_options *measure,
		       struct wss_written_result *result, struct wss_error *err);

/* Combines both into the growth curve of the written set. */
void wss_written_curve(const struct wss_written_result *result, struct wss_writes *ret_writes);
