/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/io.h"
#include "base/number.h"
#include "base/stop.h"
#include "recording/codec.h"
#include "recording/reader-private.h"

/* Holds any frame. */
#define BLOCK_BYTES (2U << 20)

/*
 * Memory budget for page sets and everything else that grows with the file: the minimum, and six
 * and a half times the size of the data if that is above 32 MiB.
 */
#define BUDGET_LEAST (208ULL << 20)

/*
 * Limit on the steps (wss_pageset_steps()) that all replays of a file may take together: per byte
 * of the file, and the minimum. Most recordings take less than one step per byte. A guest with 4
 * TiB that touches different, distant pages in each window takes 2.2. A file with inconsistent
 * content is replayed twice, and was not written by a recorder, so it may take less.
 */
#define STEPS_PER_BYTE 5
#define STEPS_LEAST (128ULL << 20)
#define STEPS_PER_BYTE_INCONSISTENT 2
#define STEPS_LEAST_INCONSISTENT (64ULL << 20)

/* Kind of the next frame. */
enum next { NEXT_FRAME, NEXT_NOTHING, NEXT_CUT, NEXT_DAMAGED };

static int read_error(const struct wss_recfile *file, ssize_t n, struct wss_error *err)
{
	if (n < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, (int)-n, "%s: cannot read it",
				       file->name);
	if (n < 8)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "%s: not a recording of virt-wss: it has only %zd byte%s",
				     file->name, n, wss_plural((uint64_t)n));
	return wss_error_set(err, WSS_ERR_FAILED, "%s: cut off in its header", file->name);
}

static int recfile_read_header(struct wss_recfile *file, struct wss_error *err)
{
	uint8_t preamble[WSS_REC_PREAMBLE_BYTES];
	wss_auto_free uint8_t *data = NULL;
	size_t size;
	ssize_t n = wss_io_pread(file->fd, preamble, sizeof(preamble), 0);

	if (n >= 8 && memcmp(preamble, WSS_REC_MAGIC, 8) != 0)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: not a recording of virt-wss",
				     file->name);
	if (n != (ssize_t)sizeof(preamble))
		return read_error(file, n, err);
	if (wss_rec_header_size(preamble, &size, err) < 0)
		return wss_error_prefix(err, "%s", file->name);
	data = malloc(size);
	if (!data)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	n = wss_io_pread(file->fd, data, size, 0);
	if (n != (ssize_t)size)
		return read_error(file, n, err);
	if (wss_rec_decode_header(data, size, file->recording, &file->seed, err) < 0)
		return wss_error_prefix(err, "%s", file->name);
	file->first_frame = size;
	return 0;
}

/* After a power failure, a file may end in blocks that were never written. */
static enum next frame_damaged(const struct wss_recfile *file, uint64_t offset)
{
	return wss_io_zeros(file->fd, (off_t)offset) ? NEXT_CUT : NEXT_DAMAGED;
}

/* Returns n bytes at offset, at most BLOCK_BYTES; NULL if they cannot be read. */
static const uint8_t *bytes_at(struct wss_recfile *file, uint64_t offset, size_t n)
{
	ssize_t got;

	if (offset < file->block_offset || offset - file->block_offset > file->block_bytes ||
	    file->block_bytes - (offset - file->block_offset) < n) {
		uint64_t left = file->state.file_bytes - offset;

		got = wss_io_pread(file->fd, file->block,
				   left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES, (off_t)offset);
		file->block_offset = offset;
		file->block_bytes = got > 0 ? (size_t)got : 0;
		if (file->block_bytes < n)
			return NULL;
	}
	return file->block + (offset - file->block_offset);
}

/* Reads the frame at offset, with its payload, into file->payload. */
static enum next read_frame(struct wss_recfile *file, uint64_t offset, uint32_t sequence,
			    struct wss_frame *frame)
{
	uint64_t left = file->state.file_bytes - offset;
	const uint8_t *head;

	if (!left)
		return NEXT_NOTHING;
	if (left < WSS_REC_FRAME_BYTES)
		return NEXT_CUT;
	head = bytes_at(file, offset, WSS_REC_FRAME_BYTES);
	if (!head || !wss_rec_decode_frame(head, file->seed, frame) || frame->sequence != sequence)
		return frame_damaged(file, offset);
	if (left - WSS_REC_FRAME_BYTES < frame->length)
		return NEXT_CUT;
	offset += WSS_REC_FRAME_BYTES;
	file->payload = bytes_at(file, offset, frame->length);
	if (!file->payload ||
	    wss_crc32c(file->seed, file->payload, frame->length) != frame->payload_crc)
		return frame_damaged(file, offset);
	return NEXT_FRAME;
}

/* Whether the frame is allowed here; counts complete intervals. */
static bool take_frame(struct wss_recfile *file, const struct wss_frame *frame, bool *inside)
{
	struct wss_cursor cursor = {.data = file->payload, .end = file->payload + frame->length};
	bool first = frame->flags & WSS_FRAME_FIRST, last = frame->flags & WSS_FRAME_LAST;
	struct wss_interval interval;

	if (file->state.ended)
		return false;
	switch (frame->type) {
	case WSS_FRAME_INTERVAL:
		if (first == *inside)
			return false;
		*inside = !last;
		if (first)
			wss_rec_decode_interval(&cursor, &interval);
		/* A replay checks the content of an interval; here only its end matters. */
		if (first && interval.end_ns <= WSS_REC_TIME_MAX_NS) {
			file->interval_end_ns = interval.end_ns;
			file->interval_gap = interval.gap;
			file->interval_degraded = interval.degraded && !interval.gap;
		}
		if (last) {
			file->state.end_ns = file->interval_end_ns;
			file->state.windows += !file->interval_gap;
			file->state.degraded += file->interval_degraded;
		}
		file->state.intervals += last;
		return file->state.intervals <= WSS_REC_INTERVALS_MAX;
	case WSS_FRAME_MARK:
		return !*inside && ++file->state.marks <= WSS_REC_MARKS_MAX;
	case WSS_FRAME_END:
		file->state.ended = true;
		file->state.end_ns = wss_cursor_number(&cursor, WSS_REC_TIME_MAX_NS);
		return !*inside && !cursor.bad;
	case WSS_FRAME_HOST:
		if (frame->sequence != 0)
			return false;
		wss_cursor_text(&cursor, file->recording->host, sizeof(file->recording->host));
		return !cursor.bad;
	default:
		return !*inside && (frame->flags & WSS_FRAME_OPTIONAL);
	}
}

/*
 * Walks through all frames and sets file->whole to the end of the last complete interval or
 * mark. The frame at file->nonsense_at counts as damaged.
 */
static int scan_frames(struct wss_recfile *file, struct wss_error *err)
{
	uint64_t offset = file->first_frame;
	struct wss_frame frame;
	uint32_t sequence = 0;
	bool inside = false;
	enum next next;

	file->whole = offset;
	while ((next = read_frame(file, offset, sequence, &frame)) == NEXT_FRAME) {
		struct wss_recfile_state before = file->state;

		if (sequence && wss_stop_requested())
			return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
		if (offset == file->nonsense_at || !take_frame(file, &frame, &inside)) {
			file->state = before;
			next = NEXT_DAMAGED;
			break;
		}
		offset += WSS_REC_FRAME_BYTES + frame.length;
		sequence++;
		if (!inside)
			file->whole = offset;
	}
	/* A stop request also ends the search for bytes other than zero. */
	if (next != NEXT_NOTHING && wss_stop_requested())
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	if (next == NEXT_DAMAGED) {
		file->state.damaged_at = offset;
		if (!file->salvage)
			return wss_error_set(
				err, WSS_ERR_FAILED,
				"%s: damaged at byte %llu, after %llu whole interval%s (%s)",
				file->name, (unsigned long long)offset,
				(unsigned long long)file->state.intervals,
				wss_plural(file->state.intervals),
				wss_recfile_salvageable(file->state.windows,
							file->state.intervals));
	}
	file->state.cut_bytes = file->state.file_bytes - file->whole;
	return 0;
}

/* Limits the work after a replay that found inconsistent content, including that replay. */
static void limit_second_replay(struct wss_recfile *file)
{
	uint64_t taken = file->steps_most - file->steps_left;
	uint64_t most =
		wss_u64_max(wss_recfile_data_bytes(&file->state) * STEPS_PER_BYTE_INCONSISTENT,
			    STEPS_LEAST_INCONSISTENT);

	file->steps_most = most;
	file->steps_left = most > taken ? most - taken : 0;
}

int wss_recfile_shorten(struct wss_recfile *file, struct wss_error *err)
{
	if (!file->salvage || !file->nonsense_at || file->consistent)
		return 0;
	wss_error_clear(err);
	limit_second_replay(file);
	/* The first replay has already checked everything up to there. */
	file->consistent = true;
	file->state = (struct wss_recfile_state){.file_bytes = file->state.file_bytes};
	return scan_frames(file, err) < 0 ? -1 : 1;
}

static int open_file(struct wss_recfile *file, struct wss_error *err)
{
	struct stat st;
	uint64_t data;

	if (fstat(file->fd, &st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "%s: cannot examine it",
				       file->name);
	if (wss_file_check_regular(&st, err) < 0)
		return wss_error_prefix(err, "%s", file->name);
	file->state.file_bytes = (uint64_t)st.st_size;
	file->block =
		malloc(st.st_size < (off_t)BLOCK_BYTES ? (size_t)st.st_size + 1 : BLOCK_BYTES);
	if (!file->block)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (recfile_read_header(file, err) < 0 || scan_frames(file, err) < 0)
		return -1;
	/* The limits on memory and work depend on how much data there is. */
	data = wss_recfile_data_bytes(&file->state);
	file->budget.limit_bytes = wss_u64_max(data / 2 * 13, BUDGET_LEAST);
	file->steps_most = file->steps_left = wss_u64_max(data * STEPS_PER_BYTE, STEPS_LEAST);
	return 0;
}

int wss_recfile_open_fd(int fd, const char *name, bool salvage, struct wss_recfile **ret_file,
			struct wss_error *err)
{
	struct wss_recfile *file = calloc(1, sizeof(*file));

	if (!file) {
		close(fd);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	file->fd = fd;
	file->salvage = salvage;
	file->name = strdup(name);
	file->recording = calloc(1, sizeof(*file->recording));
	if (!file->name || !file->recording) {
		wss_recfile_close(file);
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	}
	if (open_file(file, err) < 0) {
		wss_recfile_close(file);
		return -1;
	}
	*ret_file = file;
	return 0;
}

int wss_recfile_open(const char *path, bool salvage, struct wss_recfile **ret_file,
		     struct wss_error *err)
{
	int fd = -1;

	if (wss_file_open(path, &fd, err) < 0)
		return wss_error_prefix(err, "%s", path);
	return wss_recfile_open_fd(fd, path, salvage, ret_file, err);
}

const char *wss_recfile_name(const struct wss_recfile *file)
{
	return file->name;
}

const struct wss_recording *wss_recfile_recording(const struct wss_recfile *file)
{
	return file->recording;
}

const struct wss_recfile_state *wss_recfile_state(const struct wss_recfile *file)
{
	return &file->state;
}

struct wss_pageset_budget *wss_recfile_budget(struct wss_recfile *file)
{
	return &file->budget;
}

void wss_recfile_close(struct wss_recfile *file)
{
	if (!file)
		return;
	wss_pageset_budget_clear(&file->budget);
	close(file->fd);
	free(file->name);
	free(file->recording);
	free(file->block);
	free(file);
}

bool wss_recfile_frame(struct wss_recfile *file, uint64_t *offset, uint32_t *sequence,
		       struct wss_frame *ret_frame)
{
	if (read_frame(file, *offset, *sequence, ret_frame) != NEXT_FRAME)
		return false;
	*offset += WSS_REC_FRAME_BYTES + ret_frame->length;
	(*sequence)++;
	return true;
}
