/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/io.h"

/* Beyond the end of any file that will ever be written. */
#define LOCK_OFFSET ((int64_t)1 << 62)
/* An addition takes milliseconds, or seconds on a slow disk. */
#define LOCK_TIMEOUT_NS (10 * WSS_NS_PER_S)

static int64_t lock_offset(enum wss_append_lock lock)
{
	return LOCK_OFFSET + (int64_t)lock;
}

int wss_append_lock(int fd, enum wss_append_lock lock, bool wait, struct wss_error *err)
{
	if (wss_file_lock(fd, lock_offset(lock), wait ? LOCK_TIMEOUT_NS : 0, err) == 0)
		return 0;
	if (err && err->code == WSS_ERR_BUSY)
		return wss_error_set(err, WSS_ERR_BUSY,
				     wait ? "another process has been adding to it for 10 s"
					  : "a recording is being written to it");
	return -1;
}

void wss_append_unlock(int fd, enum wss_append_lock lock)
{
	wss_file_unlock(fd, lock_offset(lock));
}

int wss_append_locked(int fd, enum wss_append_lock lock, struct wss_error *err)
{
	struct flock area = {.l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)lock_offset(lock),
			     .l_len = 1};

	if (fcntl(fd, F_OFD_GETLK, &area) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine its locks");
	return area.l_type != F_UNLCK;
}

/* Kind of data that follows the last complete frame. */
enum next { NEXT_FRAME, NEXT_REMAINS, NEXT_DAMAGED };

/* Read buffer, because frames may be tiny and many. */
struct block {
	off_t offset;
	ssize_t n;
	uint8_t data[16384];
};

/* Returns the beginning of the next frame; NULL if it cannot be read. */
static const uint8_t *next_head(const struct wss_appender *appender, struct block *block)
{
	if (appender->end < block->offset ||
	    appender->end + WSS_REC_FRAME_BYTES > block->offset + block->n) {
		block->offset = appender->end;
		block->n =
			wss_io_pread(appender->fd, block->data, sizeof(block->data), block->offset);
		if (block->n < WSS_REC_FRAME_BYTES)
			return NULL;
	}
	return block->data + (appender->end - block->offset);
}

/* Checking the payload is left to readers. */
static enum next peek_frame(const struct wss_appender *appender, off_t size, struct block *block,
			    struct wss_frame *frame)
{
	off_t left = size - appender->end;
	const uint8_t *head;

	/* Part of a frame's head, or no data at all. */
	if (left < WSS_REC_FRAME_BYTES)
		return NEXT_REMAINS;
	head = next_head(appender, block);
	if (!head || !wss_rec_decode_frame(head, appender->seed, frame) ||
	    frame->sequence != appender->sequence)
		return wss_io_zeros(appender->fd, appender->end) ? NEXT_REMAINS : NEXT_DAMAGED;
	return left - WSS_REC_FRAME_BYTES >= (off_t)frame->length ? NEXT_FRAME : NEXT_REMAINS;
}

int wss_append_take_back(struct wss_appender *appender, off_t end, uint32_t sequence,
			 struct wss_error *err)
{
	appender->end = end;
	appender->sequence = sequence;
	if (ftruncate(appender->fd, end) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to it");
	return 0;
}

int wss_append_catch_up(struct wss_appender *appender, struct wss_error *err)
{
	off_t interval_start = appender->end;
	uint32_t interval_sequence = appender->sequence;
	struct block block = {.n = 0};
	bool inside = false;
	struct wss_frame frame;
	struct stat st;
	enum next next;

	if (fstat(appender->fd, &st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot examine it");
	while ((next = peek_frame(appender, st.st_size, &block, &frame)) == NEXT_FRAME) {
		if (!inside) {
			interval_start = appender->end;
			interval_sequence = appender->sequence;
		}
		if (frame.type == WSS_FRAME_INTERVAL)
			inside = !(frame.flags & WSS_FRAME_LAST);
		appender->ended = frame.type == WSS_FRAME_END;
		appender->marks += frame.type == WSS_FRAME_MARK;
		appender->end += WSS_REC_FRAME_BYTES + (off_t)frame.length;
		appender->sequence++;
	}
	/* Data behind the damage may be intact, and must not be cut off. */
	if (next == NEXT_DAMAGED)
		return wss_error_set(err, WSS_ERR_FAILED, "damaged at byte %llu, cannot add to it",
				     (unsigned long long)appender->end);
	if (inside) {
		appender->end = interval_start;
		appender->sequence = interval_sequence;
	}
	if (appender->end < st.st_size)
		return wss_append_take_back(appender, appender->end, appender->sequence, err);
	return 0;
}

int wss_append_frame(struct wss_appender *appender, enum wss_frame_type type, uint8_t flags,
		     uint8_t *data, size_t length, struct wss_error *err)
{
	const struct wss_frame frame = {
		.type = (uint8_t)type,
		.flags = flags,
		.length = (uint32_t)length,
		.sequence = appender->sequence,
		.payload_crc = wss_crc32c(appender->seed, data + WSS_REC_FRAME_BYTES, length),
	};
	int r;

	wss_rec_encode_frame(&frame, appender->seed, data);
	/* A single write, so that a killed writer leaves a prefix of the frame. */
	r = wss_io_pwrite(appender->fd, data, WSS_REC_FRAME_BYTES + length, appender->end);
	if (r < 0) {
		wss_append_take_back(appender, appender->end, appender->sequence, NULL);
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it");
	}
	appender->end += WSS_REC_FRAME_BYTES + (off_t)length;
	appender->sequence++;
	return 0;
}
