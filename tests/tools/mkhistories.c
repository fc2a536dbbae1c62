/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mkhistories FILE GUESTS SEED: writes a history with a window an hour, for 28 days, of
 * invented guests of all kinds in turn, named after their kind and number.
 */
#include <stdio.h>
#include <stdlib.h>

#include "histories.h"
#include "store/history.h"

static void sample_add(struct wss_history *history, long guest,
		       const struct wss_backtest_hour *hour)
{
	struct wss_sample sample = {
		.wall = hour->start + 1800,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4000000000,
		.window_ns = wss_amount_of(4000000000),
		.wss_bytes = wss_amount_of(hour->need_bytes),
		.memory = {.maximum_bytes = wss_amount_of(hour->assigned_bytes)},
	};
	struct wss_error err = WSS_ERROR_INIT;

	snprintf(sample.domain, sizeof(sample.domain), "%s%ld",
		 histories_kind_name((enum histories_kind)(guest % HISTORIES_KINDS)), guest);
	snprintf(sample.uuid, sizeof(sample.uuid), "00000000-0000-0000-0000-%012u",
		 (unsigned)guest % 1000000);
	wss_sample_curve_add(&sample, sample.requested_window_ns, hour->need_bytes);
	if (wss_history_add(history, &sample, &err) == 0)
		return;
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

int main(int argc, char **argv)
{
	static struct wss_backtest_hour hours[HISTORIES_HOURS];
	struct wss_history *history = NULL;
	struct wss_error err = WSS_ERROR_INIT;

	if (argc != 4 || wss_history_open(argv[1], &history, &err) < 0) {
		fprintf(stderr, "mkhistories: %s\n",
			argc == 4 ? err.text : "usage: mkhistories FILE GUESTS SEED");
		return 1;
	}
	for (long i = 0; i < atol(argv[2]); i++) {
		size_t n = histories_make(strtoull(argv[3], NULL, 10) + (uint64_t)i,
					  (enum histories_kind)(i % HISTORIES_KINDS), hours);

		for (size_t h = 0; h < n; h++)
			sample_add(history, i, &hours[h]);
	}
	wss_history_close(history);
	return 0;
}
