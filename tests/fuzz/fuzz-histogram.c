/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The blobs of the history: a histogram of sizes, and a growth curve, which is several of
 * them. The first byte selects one. The result is then used the way recommend does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "history/histogram.h"
#include "history/summary.h"
#include "sizing/sizing.h"

static void check_histogram(const struct wss_histogram *histogram)
{
	wss_auto_free uint8_t *bytes = NULL;
	struct wss_histogram again;
	const uint8_t *at;
	size_t size = wss_histogram_encode(histogram, NULL, 0);
	uint64_t last = 0;

	for (unsigned percent = 1; percent <= 100; percent++) {
		uint64_t value = wss_histogram_percentile(histogram, percent / 100.0);

		fuzz_require(value >= last);
		last = value;
	}
	fuzz_require(wss_histogram_above(histogram, 0) <= histogram->total);
	fuzz_require(!wss_histogram_above(histogram, UINT64_MAX));
	bytes = malloc(size);
	fuzz_require(bytes && wss_histogram_encode(histogram, bytes, size) == size);
	at = bytes;
	fuzz_require(wss_histogram_decode(&at, bytes + size, &again) == 0 && at == bytes + size);
	fuzz_require(again.n == histogram->n && again.total == histogram->total);
	wss_histogram_free(&again);
}

/* Figures from a forged history need not make sense, but must do no harm. */
static void size_by(const struct wss_summary *summary)
{
	static const struct wss_sizing_rule rule = {.percentile = 0.99, .headroom_percent = 20};
	static const struct wss_policy policy;
	static const struct wss_sizing_state state;
	struct wss_sizing sizing;

	wss_sizing_compute(summary, &rule, &policy, &state, &sizing);
}

static void try_curve(const uint8_t *data, size_t size)
{
	struct wss_summary summary = {0}, twice = {0};

	if (wss_summary_decode_curve(data, size, &summary) == 0) {
		wss_auto_free uint8_t *bytes = NULL;
		size_t len = 0;

		summary.samples = summary.curve[0].n;
		if (wss_histogram_merge(&summary.sizes, &summary.curve[0].sizes) == 0)
			size_by(&summary);
		bytes = wss_summary_encode_curve(&summary, &len);
		fuzz_require(bytes && len <= size + 2);
		fuzz_require(wss_summary_merge(&twice, &summary) == 0);
		fuzz_require(wss_summary_merge(&twice, &summary) == 0);
		size_by(&twice);
	}
	wss_summary_free(&summary);
	wss_summary_free(&twice);
}

static void try_histogram(const uint8_t *data, size_t size)
{
	struct wss_histogram histogram;
	const uint8_t *at = data;

	if (wss_histogram_decode(&at, data + size, &histogram) == 0) {
		fuzz_require(at > data && at <= data + size);
		check_histogram(&histogram);
	}
	wss_histogram_free(&histogram);
}

static void histogram_run(const uint8_t *data, size_t size)
{
	if (!size)
		return;
	if (data[0] == 'C')
		try_curve(data + 1, size - 1);
	else
		try_histogram(data + 1, size - 1);
}

/* Seed 0 is the histogram of some windows, seed 1 its curve. */
static size_t histogram_seed(unsigned n, uint8_t *data, size_t room)
{
	wss_auto_free uint8_t *curve = NULL;
	struct wss_summary summary = {0};
	size_t size = 0;

	for (uint64_t i = 1; i <= 40; i++) {
		struct wss_sample sample = {
			.wall = 1795197600, .method = "mmu", .wss_bytes = wss_amount_of(i << 22)};

		for (double t = 0.001; t < 4; t *= 1.5)
			wss_sample_curve_add(&sample, (uint64_t)(t * 1e9),
					     (uint64_t)((double)(i << 22) * (1 - exp(-t / 0.4))));
		fuzz_require(wss_summary_add(&summary, &sample) == 0);
	}
	if (n == 0) {
		data[0] = 'H';
		size = 1 + wss_histogram_encode(&summary.sizes, data + 1, room - 1);
	} else if (n == 1) {
		data[0] = 'C';
		curve = wss_summary_encode_curve(&summary, &size);
		fuzz_require(curve && size < room);
		memcpy(data + 1, curve, size);
		size++;
	}
	wss_summary_free(&summary);
	return size;
}

const struct fuzz_target fuzz_target = {
	.name = "histogram",
	.run = histogram_run,
	.max_bytes = 16384,
	.mutations = 20000,
	.seed = histogram_seed,
};
