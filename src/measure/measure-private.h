/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways to measure a target that wss_measure_run() chooses from. */
#pragma once

#include "measure/measure.h"

/*
 * Measures a target whose guest is open by each of options->methods that can measure it. Each sample is emitted; the
 * last one's notes compare the figures. WSS_ERR_NO_MEMORY.
 */
int wss_measure_by_each(struct wss_target *target, const struct wss_measure_options *options,
			const struct wss_measure_place *place, wss_measure_emit emit, void *opaque,
			struct wss_error *err);
