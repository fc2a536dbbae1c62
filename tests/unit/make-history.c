/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-history FILE N BYTES STEP [UUID...]: gives each guest N samples, STEP seconds apart, the
 * last one now, of working sets from BYTES to 1.1 times that, with a growth curve. UUIDs are
 * read from standard input when none is named.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store/history.h"

static struct wss_sample sample_of(const char *uuid, uint64_t bytes, time_t when)
{
	struct wss_sample sample = {
		.wall = when,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(4096),
		.requested_window_ns = 4000000000,
		.window_ns = wss_amount_of(4000000000),
		.wss_bytes = wss_amount_of(bytes),
		.low_bytes = wss_amount_of(bytes),
		.high_bytes = wss_amount_of(bytes),
		.memory = { .rss_bytes = wss_amount_of(bytes * 4),
			    .maximum_bytes = wss_amount_of(bytes * 5),
			    .balloon_bytes = wss_amount_of(bytes * 5),
			    .qemu_bytes = wss_amount_of(64 << 20) },
	};

	snprintf(sample.domain, sizeof(sample.domain), "guest");
	snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
	for (double t = 0.001; t < 4; t *= 1.2)
		wss_sample_curve_add(&sample, (uint64_t)(t * 1e9),
				     (uint64_t)((double)bytes * (1 - exp(-t / 0.4))));
	wss_sample_curve_add(&sample, 4000000000, bytes);
	return sample;
}

static void fill(struct wss_history *history, const char *uuid, long n, uint64_t bytes, long step)
{
	time_t now = time(NULL);

	for (long i = 0; i < n; i++) {
		struct wss_sample sample = sample_of(uuid, bytes + bytes / 100 * (uint64_t)(i % 11),
						     now - (n - 1 - i) * step);
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_history_add(history, &sample, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history;
	uint64_t bytes;
	char line[64];
	long n, step;

	if (argc < 5)
		return 2;
	n = atol(argv[2]);
	bytes = strtoull(argv[3], NULL, 10);
	step = atol(argv[4]);
	if (wss_history_open(argv[1], &history, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int i = 5; i < argc; i++)
		fill(history, argv[i], n, bytes, step);
	while (argc == 5 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			fill(history, line, n, bytes, step);
	}
	wss_history_close(history);
	return 0;
}
