/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-history [OPTIONS] FILE N BYTES STEP [UUID...]: gives each guest N samples, STEP seconds
 * apart, the last one now, of working sets from BYTES to 1.1 times that, with a growth curve.
 * UUIDs are read from standard input when none is named.
 *
 *   -w MS     length of the windows; default 4000
 *   -t MS     time constant of the growth, 1 - exp(-t / MS); default 400. With -s the windows see
 *             what that leaves them of BYTES, else they see all.
 *   -l        growth as of a loop: linear in time, over in the time constant
 *   -s        see -t
 *   -g BYTES  granularity; default 4096
 *   -e        without a growth curve but its end
 *   -d        the samples are degraded
 *   -o        the method observes only writes
 *   -c S      a service has watched the guest's memory for so many seconds: half of BYTES was certainly
 *             idle for 24 hours, and three quarters were not seen touched
 *   -C S      the same, but it did not watch all the time
 *   -a S      these ages are so many seconds old
 *   -k BYTES  the guest says that it cannot give up so much; default 1 MiB, 0: it says nothing
 */
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history/history.h"

struct shape {
	double window_s, constant_s;
	bool loop, partial, end_only, degraded, only_writes;
	uint64_t granularity_bytes;
	long watched_s, ages_age_s;
	uint64_t kept_bytes; /* that it cannot give up; 0: unknown */
	bool gaps;
};

/* Returns the share of the set that is touched within this time. */
static double touched(const struct shape *shape, double seconds)
{
	double part = seconds / shape->constant_s;

	if (shape->loop)
		return part < 1 ? part : 1;
	return 1 - exp(-part);
}

static struct wss_sample sample_of(const struct shape *shape, const char *uuid, uint64_t set_bytes,
				   time_t when)
{
	uint64_t window_ns = (uint64_t)(shape->window_s * 1e9), bytes = set_bytes;
	struct wss_sample sample = {
		.wall = when,
		.method = "mmu",
		.granularity_bytes = wss_amount_of(shape->granularity_bytes),
		.requested_window_ns = window_ns,
		.window_ns = wss_amount_of(window_ns),
		.memory = {.rss_bytes = wss_amount_of(set_bytes * 4),
			   .maximum_bytes = wss_amount_of(set_bytes * 5),
			   .balloon_bytes = wss_amount_of(set_bytes * 5),
			   .unreclaimable_bytes = {shape->kept_bytes != 0, shape->kept_bytes},
			   .qemu_bytes = wss_amount_of(64 << 20)},
	};

	if (shape->partial)
		bytes = (uint64_t)((double)set_bytes * touched(shape, shape->window_s));
	if (shape->only_writes)
		sample.observes = WSS_OBSERVES_WRITES;
	if (shape->degraded)
		sample.quality = WSS_QUALITY_DEGRADED;
	sample.wss_bytes = sample.low_bytes = sample.high_bytes = wss_amount_of(bytes);
	snprintf(sample.domain, sizeof(sample.domain), "guest");
	snprintf(sample.uuid, sizeof(sample.uuid), "%s", uuid);
	for (double t = 0.001; t < shape->window_s && !shape->end_only; t *= 1.2)
		wss_sample_curve_add(&sample, (uint64_t)(t * 1e9),
				     (uint64_t)((double)set_bytes * touched(shape, t)));
	wss_sample_curve_add(&sample, window_ns, bytes);
	return sample;
}

static void fill(struct wss_history *history, const struct shape *shape, const char *uuid, long n,
		 uint64_t bytes, long step)
{
	time_t now = time(NULL);

	for (long i = 0; i < n; i++) {
		struct wss_sample sample =
			sample_of(shape, uuid, bytes + bytes / 100 * (uint64_t)(i % 11),
				  now - (n - 1 - i) * step);
		struct wss_error err = WSS_ERROR_INIT;

		if (wss_history_add(history, &sample, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
	}
}

/* All ages are alike. */
static void fill_ages(struct wss_history *history, const struct shape *shape, const char *uuid,
		      uint64_t bytes)
{
	struct wss_cold_report report = {.as_of_ns = (uint64_t)shape->watched_s * 1000000000,
					 .held_bytes = bytes,
					 .granularity_bytes = 4096};
	struct wss_error err = WSS_ERROR_INIT;

	for (int i = 0; i < WSS_COLD_AGES; i++)
		report.ages[i] = (struct wss_cold_class){
			.low_bytes = shape->gaps ? 0 : bytes / 2,
			.high_bytes = bytes / 4 * 3,
			.observed = shape->gaps ? 0.75 : 1,
			.whole = !shape->gaps,
		};
	if (wss_history_add_coldness(history, uuid, time(NULL) - shape->ages_age_s, &report,
				     &err) == 0)
		return;
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

static int parse(int argc, char **argv, struct shape *shape)
{
	int c;

	while ((c = getopt(argc, argv, "w:t:lseg:doc:C:a:k:")) != -1)
		switch (c) {
		case 'w':
			shape->window_s = atof(optarg) / 1e3;
			break;
		case 't':
			shape->constant_s = atof(optarg) / 1e3;
			break;
		case 'l':
			shape->loop = true;
			break;
		case 's':
			shape->partial = true;
			break;
		case 'e':
			shape->end_only = true;
			break;
		case 'g':
			shape->granularity_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'd':
			shape->degraded = true;
			break;
		case 'o':
			shape->only_writes = true;
			break;
		case 'C':
		case 'c':
			shape->gaps = c == 'C';
			shape->watched_s = atol(optarg);
			break;
		case 'a':
			shape->ages_age_s = atol(optarg);
			break;
		case 'k':
			shape->kept_bytes = strtoull(optarg, NULL, 10);
			break;
		default:
			return -1;
		}
	return argc - optind < 4 ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct shape shape = {
		.window_s = 4, .constant_s = 0.4, .granularity_bytes = 4096, .kept_bytes = 1 << 20};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_history *history;
	uint64_t bytes;
	char line[64];
	long n, step;

	if (parse(argc, argv, &shape) < 0)
		return 2;
	n = atol(argv[optind + 1]);
	bytes = strtoull(argv[optind + 2], NULL, 10);
	step = atol(argv[optind + 3]);
	if (wss_history_open(argv[optind], &history, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (int i = optind + 4; i < argc; i++) {
		fill(history, &shape, argv[i], n, bytes, step);
		if (shape.watched_s)
			fill_ages(history, &shape, argv[i], bytes);
	}
	while (argc == optind + 4 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (*line)
			fill(history, &shape, line, n, bytes, step);
	}
	wss_history_close(history);
	return 0;
}
