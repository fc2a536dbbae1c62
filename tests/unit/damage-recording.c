/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cuts and damages a recording in a fixed pseudo-random sequence. Each result must be refused,
 * or give exactly what was written up to some interval.
 *
 *	damage-recording [TRUNCATIONS [CORRUPTIONS]]
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../random.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "pages/refset.h"
#include "recording/reader.h"
#include "recording/writer.h"

/* Contents of each interval of a recording, in order. */
#define POINTS_MAX 64

struct account {
	size_t n;
	size_t marks;
	struct wss_refset_point points[POINTS_MAX];
};

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || wss_io_pwrite(fd, data, size, 0) < 0)
		abort();
	return fd;
}

static int replay(struct wss_recfile *file, struct account *account, struct wss_error *err)
{
	static const struct wss_recfile_visitor visitor = {
		.begin = wss_refset_begin,
		.change = wss_refset_change,
		.end = wss_refset_end,
		.last = wss_refset_last,
		.mark = wss_refset_mark,
	};
	const struct wss_recfile_state *state = wss_recfile_state(file);
	const struct wss_refset_result *result;
	struct wss_refset *refset;
	int r;

	if (wss_refset_new(wss_recfile_recording(file), 0, UINT64_MAX, &refset, err) < 0)
		return -1;
	r = wss_recfile_replay(file, &visitor, refset, err);
	if (r == 0 && wss_refset_finish(refset, state->end_ns, &result, NULL) == 0) {
		if (result->n_points != state->intervals || result->marks.n != state->marks)
			abort();
		account->n = result->n_points < POINTS_MAX ? result->n_points : POINTS_MAX;
		account->marks = result->marks.n;
		memcpy(account->points, result->points, account->n * sizeof(account->points[0]));
	}
	wss_refset_free(refset);
	return r;
}

/* Reads a recording into account. Returns 0; each refusal has its reason. */
static int read_recording(const uint8_t *data, size_t size, bool salvage, struct account *account)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile *file;
	int r;

	memset(account, 0, sizeof(*account));
	r = wss_recfile_open_fd(file_of(data, size), "recording", salvage, &file, &err);
	if (r == 0) {
		do
			r = replay(file, account, &err);
		while (r < 0 && wss_recfile_shorten(file, &err) > 0);
		wss_recfile_close(file);
		/* Invalid content was left out. */
		if (salvage && r < 0)
			abort();
	}
	if ((r == 0) != (err.code == WSS_OK) || (r < 0 && !err.text[0]))
		abort();
	return r;
}

#define FILE_MAX (1 << 20)

static unsigned tests, failures;

static void result(bool ok, const char *what, unsigned long n)
{
	printf("%sok %u - %lu %s\n", ok ? "" : "not ", ++tests, n, what);
	failures += !ok;
}

static void must(int r)
{
	if (r < 0)
		abort();
}

/*
 * Makes a recording with windows, gaps and marks, and enough runs for several frames in one
 * interval.
 */
static size_t make(uint8_t *data)
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
			    {.start = 1ULL << 32, .length = 1ULL << 30, .kind = WSS_REGION_HIGH}},
	};
	char path[] = "/tmp/wss-fuzz-recording.XXXXXX";
	uint64_t pages = wss_recording_pages(&recording);
	struct wss_pageset *before = wss_pageset_new(pages), *after = wss_pageset_new(pages);
	struct wss_recwriter *writer;
	wss_auto_close int fd = -1;
	ssize_t size;

	close(mkstemp(path));
	must(wss_recwriter_create(path, &recording, &writer, NULL));
	must(wss_recwriter_name(writer, NULL));
	for (uint64_t i = 0; i < 24; i++) {
		struct wss_interval interval = {.start_ns = i * 1000000000,
						.end_ns = (i + 1) * 1000000000,
						.gap = i % 7 == 6,
						.note = "a note"};
		uint64_t time;

		for (unsigned k = 0; !interval.gap && k < (i == 12 ? 100000U : 300U); k++) {
			uint64_t first = random_below(pages);

			if (random_below(2))
				wss_pageset_add(after, first, 1 + random_below(9));
			else
				wss_pageset_remove(after, first, 1 + random_below(900));
		}
		must(wss_recwriter_begin(writer, &interval, NULL));
		must(wss_recwriter_delta(writer, &recording, WSS_CHANGE_TOUCHED, before, after,
					 NULL));
		must(wss_recwriter_end(writer, wss_pageset_count(after), 0, 0, NULL));
		must(wss_pageset_copy(before, after));
		if (i % 5 == 4)
			must(wss_rec_mark(path, "a mark", "", interval.end_ns, &time, NULL));
	}
	must(wss_recwriter_finish(writer, 0, NULL));
	/* The recording has replaced the file that was there. */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = wss_io_pread(fd, data, FILE_MAX, 0);
	unlink(path);
	wss_pageset_free(before);
	wss_pageset_free(after);
	if (size <= 0 || size == FILE_MAX)
		abort();
	return (size_t)size;
}

/* Whether part consists of the first intervals of the whole. */
static bool is_prefix(const struct account *part, const struct account *whole)
{
	if (part->n > whole->n || part->marks > whole->marks)
		return false;
	return !memcmp(part->points, whole->points, part->n * sizeof(part->points[0]));
}

static void truncations(const uint8_t *data, size_t size, const struct account *whole,
			unsigned long n)
{
	static struct account account;
	unsigned long refused = 0, wrong = 0, largest = 0;

	for (unsigned long i = 0; i < n; i++) {
		/* All lengths at the beginning, and some of the others. */
		size_t cut = i < n / 4 ? i : (size_t)random_below(size);

		if (read_recording(data, cut, false, &account) < 0)
			refused++;
		else if (!is_prefix(&account, whole))
			wrong++;
		else if (account.n > largest)
			largest = account.n;
	}
	result(!wrong, "truncations refused or read as the intact prefix", n);
	result(refused && refused < n, "of them refused, the others read", refused);
	result(largest + 1 >= whole->n, "intervals were read of one that was cut late", largest);
}

static void damage(uint8_t *data, size_t size)
{
	for (unsigned k = 1 + (unsigned)random_below(4); k; k--) {
		size_t at = (size_t)random_below(size), n = 1 + (size_t)random_below(16);

		switch (random_below(4)) {
		case 0:
			data[at] ^= (uint8_t)(1 << random_below(8));
			break;
		case 1:
			data[at] = (uint8_t)random_below(256);
			break;
		case 2:
			memset(data + at, 0, n < size - at ? n : size - at);
			break;
		default: /* a piece from elsewhere */
			n = n < size - at ? n : size - at;
			memmove(data + at, data + random_below(size - n + 1), n);
			break;
		}
	}
}

static void corruptions(const uint8_t *data, size_t size, const struct account *whole,
			unsigned long n)
{
	static struct account account;
	uint8_t *copy = malloc(size);
	unsigned long refused = 0, wrong = 0, salvaged = 0;

	if (!copy)
		abort();
	for (unsigned long i = 0; i < n; i++) {
		memcpy(copy, data, size);
		damage(copy, size);
		if (read_recording(copy, size, false, &account) < 0)
			refused++;
		else if (!is_prefix(&account, whole))
			wrong++;
		if (read_recording(copy, size, true, &account) == 0)
			salvaged++;
		if (!is_prefix(&account, whole))
			wrong++;
	}
	free(copy);
	result(!wrong, "corruptions refused or read as the intact prefix", n);
	/* A few change nothing: a bit set to its old value, a piece copied onto itself. */
	result(refused > n * 9 / 10, "of them refused", refused);
	result(salvaged > n / 2, "read up to the damage on request", salvaged);
}

int main(int argc, char **argv)
{
	/* valgrind is slow; the sanitizers run all of this. */
	unsigned long n_cut = getenv("WSS_VALGRIND") ? 100 : 1000;
	unsigned long n_damaged = getenv("WSS_VALGRIND") ? 200 : 10000;
	static struct account whole;
	static uint8_t data[FILE_MAX];
	size_t size = make(data);

	if (argc > 1)
		n_cut = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		n_damaged = strtoul(argv[2], NULL, 10);
	if (read_recording(data, size, false, &whole) < 0 || whole.n != 24 || whole.marks != 4)
		return 1;
	truncations(data, size, &whole, n_cut);
	corruptions(data, size, &whole, n_damaged);
	printf("1..%u\n", tests);
	return failures != 0;
}
