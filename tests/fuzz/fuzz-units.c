/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Durations, moments, sizes, numbers and percentages as people type them: the same text is
 * parsed as each of them. A value that is accepted is within its limits, and can be printed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "fuzz.h"

#define HOUR_NS 3600000000000ULL

static void try_durations(const char *text)
{
	static const uint64_t limits[] = {1, 1000000, HOUR_NS, 36500 * 24 * HOUR_NS / 10,
					  UINT64_MAX};
	char printed[32];

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct wss_error err = WSS_ERROR_INIT;
		uint64_t ns = 0;
		int r = wss_duration_parse(text, limits[i], "--window", &ns, &err);

		fuzz_check(r, &err);
		fuzz_require(r < 0 || (ns > 0 && ns <= limits[i]));
		wss_duration_format(ns, printed, 16);
		wss_seconds_format(ns, printed, sizeof(printed));
		fuzz_require(r < 0 || printed[0]);
	}
}

static void try_amounts(const char *text)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t value = 0;
	double share = 0;
	char printed[16];
	int r = wss_moment_parse(text, "--at", &value, &err);

	fuzz_check(r, &err);
	wss_error_clear(&err);
	r = wss_size_parse(text, "--minimum", &value, &err);
	fuzz_check(r, &err);
	wss_size_format(value, printed, sizeof(printed));
	wss_age_format(value, printed, sizeof(printed));
	wss_error_clear(&err);
	r = wss_number_parse(text, 3, 1000, "--count", &value, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 || (value >= 3 && value <= 1000));
	wss_error_clear(&err);
	r = wss_percent_parse(text, 50, 99.9, "--percentile", &share, &err);
	fuzz_check(r, &err);
	fuzz_require(r < 0 || (share >= 0.4999 && share <= 0.9991));
}

static void units_run(const uint8_t *data, size_t size)
{
	wss_auto_free char *text = fuzz_text(data, size);

	try_durations(text);
	try_amounts(text);
}

const struct fuzz_target fuzz_target = {
	.name = "units",
	.run = units_run,
	.max_bytes = 256,
	.mutations = 100000,
};
