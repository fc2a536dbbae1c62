/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings: report, diff and heatmap of a file that is the input, and a mark added to it. If
 * the input begins with 'M' the rest is the file after correcting its lengths, numbers and
 * checksums, so that the code behind those checks is reached; if it begins with 'R', the rest
 * is the file as it is.
 */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../random.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "cmd/cmd.h"
#include "fuzz.h"
#include "recording/append.h"
#include "recording/codec.h"
#include "recording/writer.h"

/* A time of the clock on which recordings begin at 0. */
#define NOW_NS 10000000000

static uint32_t get32(const uint8_t *data)
{
	uint32_t value;

	memcpy(&value, data, sizeof(value));
	return le32toh(value);
}

static void put32(uint8_t *data, uint32_t value)
{
	value = htole32(value);
	memcpy(data, &value, sizeof(value));
}

/* Corrects lengths, numbers and checksums as far as the lengths of frames allow. */
static void mend(uint8_t *data, size_t size)
{
	uint32_t length, seed, sequence = 0;
	size_t at;

	if (size < WSS_REC_PREAMBLE_BYTES + 4)
		return;
	memcpy(data, WSS_REC_MAGIC, 8);
	put32(data + 8, WSS_REC_VERSION | (uint32_t)(uint16_t)~WSS_REC_VERSION << 16);
	length = get32(data + 12);
	if (length > size - WSS_REC_PREAMBLE_BYTES - 4)
		return;
	at = WSS_REC_PREAMBLE_BYTES + length;
	seed = wss_crc32c(0, data, at);
	put32(data + at, seed);
	for (at += 4; size - at >= WSS_REC_FRAME_BYTES; at += WSS_REC_FRAME_BYTES + length) {
		struct wss_frame frame = {
			.type = data[at + 4], .flags = data[at + 5], .sequence = sequence++};

		length = get32(data + at + 8);
		if (length > size - at - WSS_REC_FRAME_BYTES)
			length = (uint32_t)(size - at - WSS_REC_FRAME_BYTES);
		frame.length = length;
		frame.payload_crc = wss_crc32c(seed, data + at + WSS_REC_FRAME_BYTES, length);
		wss_rec_encode_frame(&frame, seed, data + at);
	}
}

/* Returns 0, or 1 after a message. */
static int command(const struct wss_command *what, const char *const *words)
{
	struct wss_cli cli = {.command = what, .format = WSS_FORMAT_TABLE};
	char *argv[16] = {(char *)what->name};
	int argc = 1, code;

	while (*words)
		argv[argc++] = (char *)*words++;
	fuzz_begin_command();
	code = what->run(&cli, argc, argv);
	fuzz_require(code == WSS_EXIT_OK ||
		     ((code == WSS_EXIT_FAILED || code == WSS_EXIT_UNSUPPORTED) && fuzz_errors()));
	return code != WSS_EXIT_OK;
}

#define COMMAND(what, ...) command(what, (const char *const[]){__VA_ARGS__, NULL})

/* Whether the recording can be read without --salvage. */
static bool read_recording(void)
{
	static char file[4096], moment[4200], picture[4200];

	snprintf(file, sizeof(file), "%s/recording", fuzz_directory());
	snprintf(moment, sizeof(moment), "%s@1s", file);
	snprintf(picture, sizeof(picture), "%s.svg", file);
	/* A recording that cannot be read may or may not be salvaged. */
	if (COMMAND(&wss_cmd_report, file, "--output", "json", "--plot", picture)) {
		COMMAND(&wss_cmd_report, file, "--salvage");
		COMMAND(&wss_cmd_heatmap, file, "--salvage", "--hot-first", "--output", "csv");
		return false;
	}
	COMMAND(&wss_cmd_report, file, "--viewport", "500ms:2s", "--output", "csv");
	COMMAND(&wss_cmd_report, file);
	COMMAND(&wss_cmd_diff, moment, file, "--output", "json");
	COMMAND(&wss_cmd_heatmap, file, "--hot-first", "--plot", picture);
	return true;
}

/*
 * Marks the recording as if somebody were writing it. If it could be read, it can be read with the
 * mark.
 */
static void add_mark(bool readable)
{
	static char file[4096];
	wss_auto_close int fd = -1;
	struct wss_error err = WSS_ERROR_INIT;
	uint64_t time_ns;
	int r;

	snprintf(file, sizeof(file), "%s/recording", fuzz_directory());
	fd = open(file, O_RDWR | O_CLOEXEC);
	fuzz_require(fd >= 0 && wss_append_lock(fd, WSS_LOCK_RECORDING, false, NULL) == 0);
	r = wss_rec_mark(file, "a mark", "", NOW_NS, &time_ns, &err);
	fuzz_check(r, &err);
	wss_append_unlock(fd, WSS_LOCK_RECORDING);
	if (r == 0 && readable)
		fuzz_require(!COMMAND(&wss_cmd_report, file));
}

static void recfile_run(const uint8_t *data, size_t size)
{
	wss_auto_free uint8_t *copy = malloc(size ? size : 1);

	if (!size || (data[0] != 'M' && data[0] != 'R'))
		return;
	fuzz_require(copy);
	memcpy(copy, data + 1, size - 1);
	if (data[0] == 'M')
		mend(copy, size - 1);
	fuzz_file("recording", copy, size - 1);
	add_mark(read_recording());
}

static void must(int r)
{
	if (r < 0)
		abort();
}

/* Adds runs of pages that come and go, gaps and marks, one window a second. */
static void add_window(struct wss_recwriter *writer, const struct wss_recording *recording,
		       uint64_t i, struct wss_pageset *before, struct wss_pageset *after)
{
	const struct wss_interval interval = {.start_ns = i * 1000000000,
					      .end_ns = (i + 1) * 1000000000,
					      .gap = i % 7 == 6,
					      .note = "a note"};

	for (unsigned k = 0; !interval.gap && k < 20; k++) {
		uint64_t first = random_below(wss_recording_pages(recording));

		if (random_below(2))
			wss_pageset_add(after, first, 1 + random_below(9));
		else
			wss_pageset_remove(after, first, 1 + random_below(900));
	}
	must(wss_recwriter_begin(writer, &interval, NULL));
	must(wss_recwriter_delta(writer, recording, WSS_CHANGE_TOUCHED, before, after, NULL));
	must(wss_recwriter_end(writer, wss_pageset_count(after), 0, 0, NULL));
	must(wss_pageset_copy(before, after));
}

static void write_recording(const char *path, unsigned windows, uint64_t high_bytes)
{
	static struct wss_recording recording = {
		.tool = "test",
		.domain = "web1",
		.method = "mmu",
		.granularity_bytes = 4096,
		.interval_ns = 1000000000,
		.window_ns = 1000000000,
		.n_regions = 2,
		.regions = {{.length = 64 << 20, .kind = WSS_REGION_LOW, .node = -1},
			    {.start = 1ULL << 32, .kind = WSS_REGION_HIGH}},
	};
	struct wss_pageset *before, *after;
	struct wss_recwriter *writer;
	uint64_t pages, time;

	recording.regions[1].length = high_bytes;
	pages = wss_recording_pages(&recording);
	before = wss_pageset_new(pages);
	after = wss_pageset_new(pages);
	must(before && after ? 0 : -1);
	must(wss_recwriter_create(path, &recording, &writer, NULL));
	must(wss_recwriter_name(writer, NULL));
	for (uint64_t i = 0; i < windows; i++) {
		add_window(writer, &recording, i, before, after);
		if (i % 3 == 2)
			must(wss_rec_mark(path, "a mark", "", (i + 1) * 1000000000, &time, NULL));
	}
	must(wss_recwriter_finish(writer, 0, NULL));
	wss_pageset_free(before);
	wss_pageset_free(after);
}

/* Makes recordings of one window, some, and many; and of the largest possible guest. */
static size_t recfile_seed(unsigned n, uint8_t *data, size_t room)
{
	static const struct {
		unsigned windows;
		uint64_t high_bytes;
	} seeds[] = {{1, 1ULL << 30}, {5, 1ULL << 30}, {40, 1ULL << 30}, {3, 15ULL << 40}};
	static char path[4096];
	wss_auto_close int fd = -1;
	ssize_t size;

	if (n >= sizeof(seeds) / sizeof(seeds[0]))
		return 0;
	snprintf(path, sizeof(path), "%s/made-%u", fuzz_directory(), n);
	write_recording(path, seeds[n].windows, seeds[n].high_bytes);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fuzz_require(fd >= 0);
	data[0] = 'M';
	size = wss_io_pread(fd, data + 1, room - 1, 0);
	unlink(path);
	fuzz_require(size > 0 && (size_t)size < room - 1);
	return (size_t)size + 1;
}

const struct fuzz_target fuzz_target = {
	.name = "recfile",
	.run = recfile_run,
	.max_bytes = 65536,
	.mutations = 1000,
	.seed = recfile_seed,
};
