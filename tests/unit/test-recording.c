/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/testing.h"

#include "base/io.h"
#include "base/stop.h"
#include "recording/append.h"
#include "recording/codec.h"
#include "recording/reader.h"
#include "recording/writer.h"

#define SECOND 1000000000ULL

static char path[] = "/tmp/wss-test-recording.XXXXXX";
static struct wss_recording recording;

static int setup(void **state)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	recording = (struct wss_recording){
		.tool = "1.2.3",
		.domain = "web1",
		.uuid = "6c8f7a52-3d1e-4b0a-9f43-57e0a1b2c3d4",
		.method = "mmu",
		.boot_id = "boot",
		.granularity_bytes = 4096,
		.interval_ns = SECOND,
		.window_ns = SECOND / 2,
		.start_realtime_ns = 12345,
		.start_boottime_ns = 678,
		.n_regions = 4,
		.regions = {{0, 640 << 10, WSS_REGION_BELOW_1M, 0, ""},
			    {1 << 20, 63 << 20, WSS_REGION_LOW, 0, ""},
			    {64 << 20, 64 << 20, WSS_REGION_LOW, 1, ""},
			    {1ULL << 32, 1ULL << 30, WSS_REGION_DEVICE, -1, "dimm0"}},
	};
	return 0;
}

static int teardown(void **state)
{
	unlink(path);
	return 0;
}

static struct wss_recwriter *create(void)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recwriter *writer;

	if (wss_recwriter_create(path, &recording, &writer, &err) < 0 ||
	    wss_recwriter_name(writer, &err) < 0)
		fail_msg("%s", err.text);
	return writer;
}

/* Writes the window of second i, in which n pages from gfn on are touched. */
static void window(struct wss_recwriter *writer, uint64_t i, uint64_t gfn, uint64_t n,
		   uint64_t total)
{
	const struct wss_interval interval = {
		.start_ns = i * SECOND, .end_ns = (i + 1) * SECOND, .granularity_bytes = 4096};

	assert_int_equal(wss_recwriter_begin(writer, &interval, NULL), 0);
	assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_TOUCHED, gfn, n, NULL), 0);
	assert_int_equal(wss_recwriter_end(writer, total, 0, 0, NULL), 0);
}

static uint8_t big[1 << 16];

/* Whether the file contains a text literally. */
static bool contains(const char *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = wss_io_pread(fd, big, sizeof(big), 0);

	close(fd);
	return n > 0 && memmem(big, (size_t)n, text, strlen(text));
}

struct seen {
	unsigned intervals, changes, marks;
	uint64_t touched, pages;
	char mark[WSS_MARK_TEXT_MAX];
};

static int on_change(void *opaque, enum wss_change change, struct wss_run run,
		     struct wss_error *err)
{
	struct seen *seen = opaque;

	seen->changes++;
	seen->pages += run.n;
	return 0;
}

static int on_end(void *opaque, const struct wss_interval *interval,
		  const struct wss_recording_sets *sets, struct wss_error *err)
{
	struct seen *seen = opaque;

	seen->intervals++;
	seen->touched = wss_pageset_count(sets->touched);
	return 0;
}

static int on_mark(void *opaque, uint64_t time_ns, const char *text, struct wss_error *err)
{
	struct seen *seen = opaque;

	seen->marks++;
	strcpy(seen->mark, text);
	return 0;
}

static const struct wss_recfile_visitor visitor = {
	.change = on_change,
	.end = on_end,
	.mark = on_mark,
};

static struct seen replay(struct wss_recfile_state *ret_state)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct seen seen = {0};
	struct wss_recfile *file;

	if (wss_recfile_open(path, false, &file, &err) < 0 ||
	    wss_recfile_replay(file, &visitor, &seen, &err) < 0)
		fail_msg("%s", err.text);
	*ret_state = *wss_recfile_state(file);
	wss_recfile_close(file);
	return seen;
}

static void refused(enum wss_error_code code, const char *text)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct seen seen = {0};
	struct wss_recfile *file;
	int r = wss_recfile_open(path, false, &file, &err);

	if (r == 0) {
		r = wss_recfile_replay(file, &visitor, &seen, &err);
		wss_recfile_close(file);
	}
	assert_int_equal(r, -1);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in '%s'", text, err.text);
}

static void poke(off_t offset, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(wss_io_pwrite(fd, data, size, offset), 0);
	close(fd);
}

TEST(test_header)
{
	struct wss_recfile_state s;
	struct wss_recfile *file;

	snprintf(recording.host, sizeof(recording.host), "kvm7");
	assert_int_equal(wss_recwriter_finish(create(), 3 * SECOND, NULL), 0);
	assert_int_equal(wss_recfile_open(path, false, &file, NULL), 0);
	assert_memory_equal(wss_recfile_recording(file), &recording, sizeof(recording));
	recording.host[0] = '\0';
	s = *wss_recfile_state(file);
	assert_true(s.ended && s.end_ns == 3 * SECOND && !s.intervals && !s.cut_bytes);
	wss_recfile_close(file);
}

TEST(test_regions)
{
	struct wss_recwriter *writer = create();
	struct wss_recfile_state s;
	struct seen seen;

	/* Over the border of two regions with no hole between: one run in the file, two replayed. */
	window(writer, 0, (64 << 8) - 10, 20, 20);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	seen = replay(&s);
	assert_true(seen.changes == 2 && seen.pages == 20 && seen.touched == 20);
	/* The pages of the VGA window are not memory. */
	writer = create();
	window(writer, 0, 0x9f, 2, 2);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	refused(WSS_ERR_FAILED, "no memory");
}

TEST(test_nonsense)
{
	struct wss_recwriter *writer = create();

	window(writer, 0, 512, 4, 4);
	window(writer, 1, 514, 4, 6);
	wss_recwriter_free(writer);
	refused(WSS_ERR_FAILED, "twice");
	writer = create();
	window(writer, 0, 512, 4, 5);
	wss_recwriter_free(writer);
	refused(WSS_ERR_FAILED, "not as many");
	writer = create();
	window(writer, 1, 512, 4, 4);
	assert_int_equal(
		wss_recwriter_begin(writer, &(struct wss_interval){.end_ns = SECOND}, NULL), -1);
	wss_recwriter_free(writer);
}

/*
 * Invalid content after window 0, of 4 pages, and a mark: the message states where, and the
 * file is readable up to there.
 */
static void nonsense_at(uint64_t offset, const char *what)
{
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile_state s;
	struct seen seen = {0};
	struct wss_recfile *file;
	char text[128];

	snprintf(text, sizeof(text), "contradicts itself at byte %llu, after 1 whole interval: %s",
		 (unsigned long long)offset, what);
	refused(WSS_ERR_FAILED, text);
	if (wss_recfile_open(path, true, &file, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(wss_recfile_shorten(file, &err), 0);
	assert_int_equal(wss_recfile_replay(file, &visitor, &seen, &err), -1);
	assert_int_equal(wss_recfile_shorten(file, &err), 1);
	assert_int_equal(err.code, WSS_OK);
	memset(&seen, 0, sizeof(seen));
	if (wss_recfile_replay(file, &visitor, &seen, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(wss_recfile_shorten(file, &err), 0);
	s = *wss_recfile_state(file);
	wss_recfile_close(file);
	assert_true(seen.intervals == 1 && seen.touched == 4 && seen.changes == 1 &&
		    seen.marks == 1);
	assert_true(s.damaged_at == offset && s.intervals == 1 && s.windows == 1 && s.marks == 1);
	assert_true(s.end_ns == SECOND && !s.ended && s.cut_bytes);
}

static uint64_t size_of_file(void)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_size;
}

static struct wss_recwriter *create_with_mark(uint64_t *ret_bytes)
{
	struct wss_recwriter *writer = create();
	uint64_t time;

	window(writer, 0, 512, 4, 4);
	assert_int_equal(wss_rec_mark(path, "x", "boot", 678 + SECOND, &time, NULL), 0);
	*ret_bytes = size_of_file();
	return writer;
}

TEST(test_nonsense_salvage)
{
	struct wss_recwriter *writer;
	uint64_t at;

	writer = create_with_mark(&at);
	window(writer, 1, 514, 4, 6);
	window(writer, 2, 600, 4, 10);
	assert_int_equal(wss_recwriter_finish(writer, 5 * SECOND, NULL), 0);
	nonsense_at(at, "a page comes or goes twice");
	/* In the second frame of an interval. */
	writer = create_with_mark(&at);
	assert_int_equal(wss_recwriter_begin(
				 writer,
				 &(struct wss_interval){.start_ns = SECOND, .end_ns = 2 * SECOND},
				 NULL),
			 0);
	for (uint64_t i = 0; i < 131060; i++)
		assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_TOUCHED, (1 << 20) + 2 * i,
						      1, NULL),
				 0);
	at = wss_recwriter_bytes(writer);
	assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_WRITTEN, 0x9f, 2, NULL), 0);
	assert_int_equal(wss_recwriter_end(writer, 131064, 2, 0, NULL), 0);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	nonsense_at(at, "a page where there is no memory");
}

/* An end that lies before recorded windows. */
TEST(test_nonsense_end)
{
	uint8_t data[WSS_REC_FRAME_BYTES + 1] = {0};
	struct wss_recwriter *writer;
	struct wss_appender appender;
	uint64_t at;

	writer = create_with_mark(&at);
	appender = (struct wss_appender){
		.fd = open(path, O_RDWR | O_CLOEXEC), .end = (off_t)at, .sequence = 2};
	assert_int_not_equal(wss_rec_encode_header(&recording, big, sizeof(big), &appender.seed),
			     0);
	assert_int_equal(wss_append_frame(&appender, WSS_FRAME_END, 0, data, 1, NULL), 0);
	close(appender.fd);
	wss_recwriter_free(writer);
	nonsense_at(at, "an end before its last interval");
}

/* The host is the first frame, or absent. */
TEST(test_host_elsewhere)
{
	uint8_t data[WSS_REC_FRAME_BYTES + 5] = {[WSS_REC_FRAME_BYTES] = 4, 'k', 'v', 'm', '8'};
	struct wss_appender appender;
	struct wss_recwriter *writer;
	struct wss_recfile *file;
	uint64_t at;

	snprintf(recording.host, sizeof(recording.host), "kvm7");
	writer = create_with_mark(&at);
	appender = (struct wss_appender){
		.fd = open(path, O_RDWR | O_CLOEXEC), .end = (off_t)at, .sequence = 3};
	assert_int_not_equal(wss_rec_encode_header(&recording, big, sizeof(big), &appender.seed),
			     0);
	assert_int_equal(
		wss_append_frame(&appender, WSS_FRAME_HOST, WSS_FRAME_OPTIONAL, data, 5, NULL), 0);
	close(appender.fd);
	wss_recwriter_free(writer);
	recording.host[0] = '\0';
	refused(WSS_ERR_FAILED, "damaged at byte");
	assert_int_equal(wss_recfile_open(path, true, &file, NULL), 0);
	assert_string_equal(wss_recfile_recording(file)->host, "kvm7");
	assert_true(wss_recfile_state(file)->damaged_at == at);
	wss_recfile_close(file);
}

TEST(test_versions)
{
	const uint8_t newer[] = {2, 0, 0xfd, 0xff}, damaged[] = {2, 0, 0xfe, 0xff};

	assert_int_equal(wss_recwriter_finish(create(), 0, NULL), 0);
	poke(8, newer, sizeof(newer));
	refused(WSS_ERR_UNSUPPORTED, "newer");
	poke(8, damaged, sizeof(damaged));
	refused(WSS_ERR_FAILED, "damaged");
	poke(0, "something else", 14);
	refused(WSS_ERR_FAILED, "not a recording");
	assert_int_equal(truncate(path, 0), 0);
	refused(WSS_ERR_FAILED, "it has only 0 bytes");
}

TEST(test_zero_tail)
{
	struct wss_recwriter *writer = create();
	struct wss_recfile_state s;
	uint64_t size;

	window(writer, 0, 512, 4, 4);
	window(writer, 1, 600, 4, 8);
	size = wss_recwriter_bytes(writer);
	wss_recwriter_free(writer);
	assert_int_equal(truncate(path, (off_t)size + 4096), 0);
	assert_int_equal(replay(&s).intervals, 2);
	assert_int_equal(s.cut_bytes, 4096);
	poke((off_t)size + 100, "x", 1);
	refused(WSS_ERR_FAILED, "damaged at byte");
}

/* An interval takes as many frames as its payload needs, and is complete or absent. */
TEST(test_long_interval)
{
	struct wss_recwriter *writer = create();
	struct wss_recfile_state s;
	struct seen seen;

	assert_int_equal(
		wss_recwriter_begin(writer, &(struct wss_interval){.end_ns = SECOND}, NULL), 0);
	for (uint64_t i = 0; i < 120000; i++)
		assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_TOUCHED, (1 << 20) + 2 * i,
						      1, NULL),
				 0);
	/* Cut off in the middle, as by kill -9: none of it is left. */
	assert_true(wss_recwriter_bytes(writer) > 0);
	assert_int_equal(replay(&s).intervals, 0);
	assert_int_equal(wss_recwriter_end(writer, 120000, 0, 0, NULL), 0);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	seen = replay(&s);
	assert_true(seen.intervals == 1 && seen.touched == 120000 && !s.cut_bytes);
	assert_true(s.file_bytes < 120000 * 3);
}

TEST(test_marks)
{
	struct wss_recwriter *writer = create();
	struct wss_error err = WSS_ERROR_INIT;
	char text[WSS_MARK_TEXT_MAX + 1];
	struct wss_recfile_state s;
	struct seen seen;
	uint64_t time;
	FILE *f;

	window(writer, 0, 512, 4, 4);
	assert_int_equal(wss_rec_mark(path, "one", "boot", 678 + SECOND, &time, NULL), 0);
	assert_int_equal(time, SECOND);
	/* The next writer cuts off the remains of a killed one. */
	f = fopen(path, "a");
	assert_true(f && fputs("WSSF remains", f) >= 0 && fclose(f) == 0);
	window(writer, 1, 600, 4, 8);
	assert_int_equal(wss_rec_mark(path, "two\033[31m\xff", "boot", 678 + SECOND, &time, NULL),
			 0);
	assert_int_equal(wss_rec_mark(path, "x", "other", 678 + SECOND, &time, &err), -1);
	assert_non_null(strstr(err.text, "another host"));
	memset(text, 'x', sizeof(text));
	text[WSS_MARK_TEXT_MAX] = '\0';
	assert_int_equal(wss_rec_mark(path, text, "boot", 678 + SECOND, &time, NULL), -1);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	assert_int_equal(wss_rec_mark(path, "late", "boot", 678 + SECOND, &time, &err), -1);
	seen = replay(&s);
	assert_true(seen.intervals == 2 && seen.marks == 2 && s.ended);
	assert_string_equal(seen.mark, "two?[31m?");
	/* The file has UTF-8, for other readers. */
	assert_true(contains("two?[31m?"));
}

/* Data after a damaged frame is not cut off, neither by a mark nor by the recorder. */
TEST(test_damaged_while_written)
{
	struct wss_recwriter *writer = create();
	struct wss_error err = WSS_ERROR_INIT;
	char where[64];
	uint64_t time, first, size;

	window(writer, 0, 512, 4, 4);
	first = wss_recwriter_bytes(writer);
	window(writer, 1, 600, 4, 8);
	window(writer, 2, 700, 4, 12);
	size = size_of_file();
	poke((off_t)first + 8, "x", 1);
	snprintf(where, sizeof(where), "damaged at byte %llu", (unsigned long long)first);
	assert_int_equal(wss_rec_mark(path, "x", "boot", 678 + SECOND, &time, &err), -1);
	assert_non_null(strstr(err.text, where));
	assert_int_equal(size_of_file(), size);
	/* The recorder has written past the damage, and continues. */
	window(writer, 3, 800, 4, 16);
	size = size_of_file();
	/* Data that another program appends stops the recorder. */
	poke((off_t)size, "something that is no frame, and longer", 38);
	assert_int_equal(wss_recwriter_begin(writer,
					     &(struct wss_interval){.start_ns = 4 * SECOND,
								    .end_ns = 5 * SECOND},
					     NULL),
			 0);
	wss_error_clear(&err);
	assert_int_equal(wss_recwriter_end(writer, 16, 0, 0, &err), -1);
	assert_non_null(strstr(err.text, "damaged at byte"));
	wss_recwriter_free(writer);
	assert_int_equal(size_of_file(), size + 38);
}

/* Blocks that were never written do not count as anybody's frames. */
TEST(test_mark_behind_zeros)
{
	struct wss_recwriter *writer = create();
	struct wss_recfile_state s;
	uint64_t time;

	window(writer, 0, 512, 4, 4);
	assert_int_equal(truncate(path, (off_t)wss_recwriter_bytes(writer) + 40000), 0);
	assert_int_equal(wss_rec_mark(path, "x", "boot", 678 + SECOND, &time, NULL), 0);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	assert_true(replay(&s).marks == 1 && s.ended && !s.cut_bytes);
}

/*
 * More marks than a reader accepts are refused when they are set, so that the file stays
 * readable.
 */
TEST(test_too_many_marks)
{
	uint8_t data[WSS_REC_FRAME_BYTES + 16];
	struct wss_buffer payload = {.data = data + WSS_REC_FRAME_BYTES, .size = 16};
	struct wss_recwriter *writer = create();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_appender appender = {.fd = open(path, O_RDWR | O_CLOEXEC)};
	struct wss_recfile_state s;
	uint64_t time;

	appender.end = (off_t)wss_rec_encode_header(&recording, big, sizeof(big), &appender.seed);
	wss_buffer_number(&payload, 0);
	wss_buffer_text(&payload, "x");
	for (unsigned i = 0; i < WSS_REC_MARKS_MAX; i++)
		assert_int_equal(
			wss_append_frame(&appender, WSS_FRAME_MARK, 0, data, payload.length, NULL),
			0);
	assert_int_equal(wss_rec_mark(path, "x", "boot", 678 + SECOND, &time, &err), -1);
	assert_non_null(strstr(err.text, "which is the limit"));
	window(writer, 0, 512, 4, 4);
	assert_int_equal(wss_recwriter_finish(writer, 0, NULL), 0);
	close(appender.fd);
	assert_int_equal(replay(&s).marks, WSS_REC_MARKS_MAX);
	assert_true(s.ended && !s.cut_bytes);
}

/* The memory that a small file can require has a limit. */
TEST(test_scattered)
{
	const struct wss_recfile_visitor nobody = {0};
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recwriter *writer;
	struct wss_recfile *file;
	uint64_t gfn = 1ULL << 20, at;
	char text[64];

	recording.regions[3].length = 8ULL << 40;
	writer = create();
	assert_int_equal(
		wss_recwriter_begin(writer, &(struct wss_interval){.end_ns = SECOND}, NULL), 0);
	for (unsigned i = 0; i < WSS_REC_PARTS_MAX; i++, gfn += WSS_PAGESET_CHUNK_PAGES)
		assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_TOUCHED, gfn, 1, NULL), 0);
	assert_int_equal(wss_recwriter_end(writer, WSS_REC_PARTS_MAX, 0, 0, NULL), 0);
	at = wss_recwriter_bytes(writer);
	assert_int_equal(wss_recfile_open(path, false, &file, NULL), 0);
	assert_int_equal(wss_recfile_replay(file, &nobody, NULL, NULL), 0);
	wss_recfile_close(file);
	window(writer, 1, gfn, 1, WSS_REC_PARTS_MAX + 1);
	wss_recwriter_free(writer);
	snprintf(text, sizeof(text), "at byte %llu, after 1 whole", (unsigned long long)at);
	refused(WSS_ERR_FAILED, text);
	refused(WSS_ERR_FAILED, "scattered over more than 4 TiB");
	assert_int_equal(wss_recfile_open(path, true, &file, &err), 0);
	assert_int_equal(wss_recfile_replay(file, &nobody, NULL, &err), -1);
	assert_int_equal(wss_recfile_shorten(file, &err), 1);
	assert_int_equal(wss_recfile_replay(file, &nobody, NULL, NULL), 0);
	assert_int_equal(wss_recfile_state(file)->damaged_at, at);
	wss_recfile_close(file);
}

/* A signal ends the reading of a long file. */
TEST(test_interrupted)
{
	struct wss_recwriter *writer = create();
	int status;
	pid_t pid;

	window(writer, 0, 512, 4, 4);
	wss_recwriter_free(writer);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		static const struct wss_recfile_visitor nobody;
		struct wss_error err = WSS_ERROR_INIT;
		struct wss_recfile *file;

		wss_stop_install();
		raise(SIGTERM);
		_exit(wss_recfile_open(path, false, &file, &err) < 0 ||
		      wss_recfile_replay(file, &nobody, NULL, &err) == 0 ||
		      err.code != WSS_ERR_INTERRUPTED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(test_one_writer)
{
	struct wss_recwriter *writer = create(), *second;
	struct wss_error err = WSS_ERROR_INIT;

	assert_int_equal(wss_recwriter_create(path, &recording, &second, &err), -1);
	assert_int_equal(err.code, WSS_ERR_BUSY);
	assert_int_equal(wss_recwriter_check(path, NULL), -1);
	wss_recwriter_free(writer);
	/* A recording that nobody is writing is replaced; anything else is not. */
	wss_recwriter_free(create());
	assert_int_equal(wss_recwriter_check(path, NULL), 0);
	assert_int_equal(wss_recwriter_check("/nonexistent/file", NULL), -1);
	assert_int_equal(wss_recwriter_check("/tmp", NULL), -1);
	assert_int_equal(wss_recwriter_check("/dev/full", NULL), -1);
	poke(0, "#!/bin/sh", 9);
	wss_error_clear(&err);
	assert_int_equal(wss_recwriter_create(path, &recording, &second, &err), -1);
	assert_non_null(strstr(err.text, "not overwritten"));
	assert_int_equal(wss_recwriter_check(path, NULL), -1);
}

/* A full disk, simulated by a limit on the file's size: earlier windows stay and can be read. */
TEST(test_full_disk)
{
	const struct rlimit limit = {4096, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
	struct wss_recwriter *writer = create();
	struct wss_error err = WSS_ERROR_INIT;
	struct wss_recfile_state s;

	signal(SIGXFSZ, SIG_IGN);
	window(writer, 0, 512, 4, 4);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(wss_recwriter_begin(
				 writer,
				 &(struct wss_interval){.start_ns = SECOND, .end_ns = 2 * SECOND},
				 NULL),
			 0);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(wss_recwriter_change(writer, WSS_CHANGE_TOUCHED, (1 << 20) + 2 * i,
						      1, NULL),
				 0);
	assert_int_equal(wss_recwriter_end(writer, 5004, 0, 0, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_non_null(strstr(err.text, "cannot write"));
	assert_int_equal(replay(&s).intervals, 1);
	assert_int_equal(s.cut_bytes, 0);
	wss_recwriter_free(writer);
}

/* kill -9 at any moment leaves whole intervals. */
TEST(test_killed)
{
	struct wss_recfile_state s;
	struct seen seen;

	for (unsigned round = 0; round < 10; round++) {
		struct stat st = {0};
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			struct wss_recwriter *writer = create();

			for (uint64_t i = 0;; i++)
				window(writer, i, (1 << 20) + 2 * i, 1, i + 1);
		}
		while (st.st_size < (off_t)(500 + 700 * round))
			assert_int_equal(stat(path, &st), 0);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		seen = replay(&s);
		assert_int_equal(seen.touched, s.intervals);
		assert_true(s.intervals > 1 && !s.ended);
		assert_int_equal(truncate(path, 0), 0);
	}
}

TEST(test_crc)
{
	/* The standard check value of CRC-32C, as in RFC 3720. */
	assert_int_equal(wss_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(wss_crc32c(wss_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

/* Maps that divide the same RAM otherwise, as by nodes, are the same. */
TEST(test_same_map)
{
	static struct wss_recording whole, parts;

	whole.n_regions = 2;
	whole.regions[0] = (struct wss_region){.start = 0, .length = 8192};
	whole.regions[1] = (struct wss_region){.start = 1 << 20, .length = 8192};
	parts = whole;
	parts.n_regions = 3;
	parts.regions[1] = (struct wss_region){.start = 1 << 20, .length = 4096};
	parts.regions[2] = (struct wss_region){.start = (1 << 20) + 4096, .length = 4096};
	assert_true(wss_recording_same_map(&whole, &parts));
	assert_true(wss_recording_same_map(&parts, &whole));
	parts.regions[2].length = 8192;
	assert_false(wss_recording_same_map(&whole, &parts));
	parts.n_regions = 2;
	assert_false(wss_recording_same_map(&parts, &whole));
	parts.n_regions = 1;
	assert_false(wss_recording_same_map(&whole, &parts));
}

int main(void)
{
	return tests_run_each(setup, teardown);
}
