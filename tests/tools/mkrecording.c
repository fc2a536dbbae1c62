/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a recording of an invented guest of any size from a fixed sequence of pseudo-random
 * numbers, and prints what a report of it must contain, each window once it is written:
 *
 *   mkrecording FILE [OPTION...]
 *     --ram BYTES        RAM of the guest [536870912]
 *     --nodes N          number of NUMA nodes, which share the RAM [1]
 *     --device BYTES     a memory device at 64 TiB, or behind the RAM [0]
 *     --windows N        number of windows, each of one second [20]
 *     --phases P:N,...   touch P pages from 2 MiB on in each of N windows, in turn
 *     --runs N           runs of pages that come or go in each window, in addition [0]
 *     --scatter N        touch the first page of each of the first N chunks of 128 MiB [0]
 *     --gap-every N      make every Nth second a gap [0: none]
 *     --degraded-every N  make every Nth window a degraded one [0: none]
 *     --mark-every N     set a mark at every Nth window [0: none]
 *     --balloon P        P pages at the end of the RAM go in the middle, and return [0]
 *     --domain NAME      [web1]
 *     --host NAME        host of the recording [unknown]
 *     --uuid UUID        [6c8f7a52-...]
 *     --unended          leave out the end
 *     --hold             print "holding" and continue recording until stdin ends
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/root.h"
#include "recording/writer.h"

#define PHASES_MAX 64
#define FIRST_PAGE 512 /* first page of the phases */

struct options {
	const char *path, *domain, *uuid, *host;
	uint64_t ram, device, windows, runs, gap_every, degraded_every, mark_every, balloon,
		scatter;
	unsigned nodes;
	bool unended, hold;
	size_t n_phases;
	struct {
		uint64_t pages, windows;
	} phases[PHASES_MAX];
};

static struct wss_recording recording;
static struct wss_pageset *touched, *before, *written, *written_before, *ballooned, *balloon_before;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static _Noreturn void die(const struct wss_error *err)
{
	fprintf(stderr, "mkrecording: %s\n", err->text);
	exit(1);
}

/* xorshift64: the same numbers on every machine. */
static uint64_t random_below(uint64_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % limit;
}

static void add_region(uint64_t start, uint64_t length, enum wss_region_kind kind, int node)
{
	struct wss_region *region = &recording.regions[recording.n_regions];

	if (!length)
		return;
	*region = (struct wss_region){.start = start, .length = length, .kind = kind, .node = node};
	if (kind == WSS_REGION_DEVICE)
		snprintf(region->name, sizeof(region->name), "dimm%zu", recording.n_regions);
	recording.n_regions++;
}

/* RAM of a PC: a hole for the VGA, one below 4 GiB, divided among the nodes. */
static void lay_out(const struct options *options)
{
	const uint64_t mib = 1ULL << 20, low_end = 3072 * mib;
	uint64_t low = options->ram < low_end ? options->ram : low_end;
	uint64_t high = options->ram - low, share = high / options->nodes / mib * mib;

	add_region(0, 640 << 10, WSS_REGION_BELOW_1M, 0);
	add_region(768 << 10, 256 << 10, WSS_REGION_BELOW_1M, 0);
	add_region(mib, low - mib, WSS_REGION_LOW, 0);
	for (unsigned i = 0; i < options->nodes && high; i++) {
		uint64_t at = (4096 * mib) + i * share;

		add_region(at, i + 1 < options->nodes ? share : high - i * share, WSS_REGION_HIGH,
			   (int)i);
	}
	add_region((4096 * mib) + high + 1024 * mib, options->device, WSS_REGION_DEVICE,
		   (int)options->nodes - 1);
}

static void parse_phases(struct options *options, char *text)
{
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (options->n_phases == PHASES_MAX ||
		    sscanf(word, "%" SCNu64 ":%" SCNu64, &options->phases[options->n_phases].pages,
			   &options->phases[options->n_phases].windows) != 2)
			exit(2);
		options->n_phases++;
	}
}

static void parse(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"ram", 1, NULL, 'r'},	     {"nodes", 1, NULL, 'n'},
		{"device", 1, NULL, 'd'},    {"windows", 1, NULL, 'w'},
		{"phases", 1, NULL, 'p'},    {"runs", 1, NULL, 'f'},
		{"gap-every", 1, NULL, 'g'}, {"mark-every", 1, NULL, 'm'},
		{"balloon", 1, NULL, 'b'},   {"domain", 1, NULL, 'D'},
		{"uuid", 1, NULL, 'U'},	     {"scatter", 1, NULL, 's'},
		{"unended", 0, NULL, 'u'},   {"hold", 0, NULL, 'h'},
		{"host", 1, NULL, 'H'},	     {"degraded-every", 1, NULL, 'q'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;

		switch (c) {
		case 'r':
			options->ram = number;
			break;
		case 'n':
			options->nodes = (unsigned)number;
			break;
		case 'd':
			options->device = number;
			break;
		case 'w':
			options->windows = number;
			break;
		case 'p':
			parse_phases(options, optarg);
			break;
		case 'f':
			options->runs = number;
			break;
		case 'g':
			options->gap_every = number;
			break;
		case 'q':
			options->degraded_every = number;
			break;
		case 'm':
			options->mark_every = number;
			break;
		case 'b':
			options->balloon = number;
			break;
		case 's':
			options->scatter = number;
			break;
		case 'D':
			options->domain = optarg;
			break;
		case 'U':
			options->uuid = optarg;
			break;
		case 'H':
			options->host = optarg;
			break;
		case 'u':
			options->unended = true;
			break;
		case 'h':
			options->hold = true;
			break;
		default:
			exit(2);
		}
	}
	options->path = argv[optind];
	if (optind + 1 != argc || !options->nodes)
		exit(2);
}

static void describe(const struct options *options)
{
	struct wss_root root = {.dirfd = -1};

	snprintf(recording.tool, sizeof(recording.tool), "test");
	snprintf(recording.domain, sizeof(recording.domain), "%s", options->domain);
	snprintf(recording.uuid, sizeof(recording.uuid), "%s", options->uuid);
	snprintf(recording.host, sizeof(recording.host), "%s", options->host ? options->host : "");
	snprintf(recording.method, sizeof(recording.method), "mmu");
	recording.granularity_bytes = 4096;
	recording.interval_ns = recording.window_ns = WSS_NS_PER_S;
	recording.start_realtime_ns = 1795197600 * (int64_t)WSS_NS_PER_S;
	recording.start_boottime_ns = options->hold ? wss_clock_now_ns() : WSS_NS_PER_S;
	if (wss_root_open("/", &root, NULL) == 0)
		wss_root_read_line(&root, "proc/sys/kernel/random/boot_id", recording.boot_id,
				   sizeof(recording.boot_id));
	wss_root_close(&root);
	lay_out(options);
}

static uint64_t phase_pages(const struct options *options, uint64_t window)
{
	uint64_t total = 0;

	for (size_t i = 0; i < options->n_phases; i++)
		total += options->phases[i].windows;
	if (!total)
		return 0;
	window %= total;
	for (size_t i = 0;; i++) {
		if (window < options->phases[i].windows)
			return options->phases[i].pages;
		window -= options->phases[i].windows;
	}
}

/* Sets of the next window. */
static void step(const struct options *options, uint64_t window)
{
	uint64_t pages = wss_recording_pages(&recording), phase = phase_pages(options, window);

	if (options->n_phases) {
		wss_pageset_add(touched, FIRST_PAGE, phase);
		wss_pageset_remove(touched, FIRST_PAGE + phase, pages);
	}
	for (uint64_t i = 0; i < options->runs; i++) {
		uint64_t first = pages / 2 + random_below(pages / 2), n = 1 + random_below(64);

		if (first + n > pages - options->balloon)
			continue;
		if (random_below(2))
			wss_pageset_add(touched, first, n);
		else
			wss_pageset_remove(touched, first, n);
	}
	for (uint64_t i = 0; i < options->scatter; i++)
		wss_pageset_add(touched, i * WSS_PAGESET_CHUNK_PAGES, 1);
	/* The first half of a phase's pages is written. */
	wss_pageset_add(written, FIRST_PAGE, phase / 2);
	wss_pageset_remove(written, FIRST_PAGE + phase / 2, pages);
	if (options->balloon && window == options->windows / 3)
		wss_pageset_add(ballooned, pages - options->balloon, options->balloon);
	if (options->balloon && window == options->windows / 3 * 2)
		wss_pageset_remove(ballooned, pages - options->balloon, options->balloon);
}

static int write_window(struct wss_recwriter *writer, uint64_t at_ns, bool degraded,
			struct wss_error *err)
{
	struct wss_interval interval = {.start_ns = at_ns,
					.degraded = degraded,
					.end_ns = at_ns + WSS_NS_PER_S,
					.written = WSS_WRITTEN_EXACT,
					.granularity_bytes = 4096};

	if (degraded)
		strcpy(interval.note, "the guest was frozen, as the test says");

	if (wss_recwriter_begin(writer, &interval, err) < 0 ||
	    wss_recwriter_delta(writer, &recording, WSS_CHANGE_TOUCHED, before, touched, err) < 0 ||
	    wss_recwriter_delta(writer, &recording, WSS_CHANGE_WRITTEN, written_before, written,
				err) < 0 ||
	    wss_recwriter_delta(writer, &recording, WSS_CHANGE_BALLOONED, balloon_before, ballooned,
				err) < 0 ||
	    wss_recwriter_end(writer, wss_pageset_count(touched), wss_pageset_count(written),
			      wss_pageset_count(ballooned), err) < 0)
		return -1;
	wss_pageset_copy(before, touched);
	wss_pageset_copy(written_before, written);
	wss_pageset_copy(balloon_before, ballooned);
	return 0;
}

static int write_gap(struct wss_recwriter *writer, uint64_t at_ns, struct wss_error *err)
{
	const struct wss_interval interval = {.gap = true,
					      .start_ns = at_ns,
					      .end_ns = at_ns + WSS_NS_PER_S,
					      .note = "a gap of the test"};

	if (wss_recwriter_begin(writer, &interval, err) < 0)
		return -1;
	return wss_recwriter_end(writer, wss_pageset_count(before),
				 wss_pageset_count(written_before),
				 wss_pageset_count(balloon_before), err);
}

static void record(const struct options *options, struct wss_recwriter *writer)
{
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t windows = 0;
	int r = 0;

	for (uint64_t second = 0; windows < options->windows && r == 0; second++) {
		uint64_t at_ns = second * WSS_NS_PER_S;
		char text[32];

		if (options->gap_every && second % options->gap_every == options->gap_every - 1) {
			r = write_gap(writer, at_ns, &err);
			continue;
		}
		step(options, windows);
		r = write_window(writer, at_ns,
				 options->degraded_every &&
					 (windows + 1) % options->degraded_every == 0,
				 &err);
		if (r == 0)
			printf("window %" PRIu64 " start_seconds %" PRIu64
			       " outstanding_bytes %" PRIu64 "\n",
			       windows, second, wss_pageset_count(touched) * 4096);
		windows++;
		if (r == 0 && options->mark_every && windows % options->mark_every == 0) {
			uint64_t time_ns;

			snprintf(text, sizeof(text), "mark %" PRIu64, windows);
			r = wss_rec_mark(options->path, text, recording.boot_id,
					 recording.start_boottime_ns + at_ns + WSS_NS_PER_S / 2,
					 &time_ns, &err);
		}
	}
	if (r < 0)
		die(&err);
}

int main(int argc, char **argv)
{
	struct options options = {.ram = 512ULL << 20,
				  .windows = 20,
				  .nodes = 1,
				  .domain = "web1",
				  .uuid = "6c8f7a52-3d1e-4b0a-9f43-57e0a1b2c3d4"};
	struct wss_pageset **const sets[] = {&touched,	      &before,	  &written,
					     &written_before, &ballooned, &balloon_before};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recwriter *writer;

	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(argc, argv, &options);
	describe(&options);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		*sets[i] = wss_pageset_new(wss_recording_pages(&recording));
		if (!*sets[i])
			return 1;
	}
	if (wss_recwriter_create(options.path, &recording, &writer, &err) < 0 ||
	    wss_recwriter_name(writer, &err) < 0)
		die(&err);
	record(&options, writer);
	if (options.hold) {
		puts("holding");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	if (options.unended)
		wss_recwriter_free(writer);
	else if (wss_recwriter_finish(writer, 0, &err) < 0)
		die(&err);
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		wss_pageset_free(*sets[i]);
	return 0;
}
