/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rec/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* Behind the end of every file that is ever written. */
#define LOCK_OFFSET ((off_t)1 << 62)

static struct flock lock_of(enum wss_append_lock lock, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET,
			       .l_start = LOCK_OFFSET + (off_t)lock, .l_len = 1 };
}

int wss_append_lock(int fd, enum wss_append_lock lock, bool wait, struct wss_error *err)
{
	struct flock area = lock_of(lock, F_WRLCK);

	if (fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &area) == 0)
		return 0;
	if (errno == EINTR)
		return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
	if (errno == EAGAIN || errno == EACCES)
		return wss_error_set(err, WSS_ERR_BUSY, "a recording is being written to it");
	return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot lock it");
}

void wss_append_unlock(int fd, enum wss_append_lock lock)
{
	struct flock area = lock_of(lock, F_UNLCK);

	fcntl(fd, F_OFD_SETLK, &area);
}

int wss_append_locked(int fd, enum wss_append_lock lock, struct wss_error *err)
{
	struct flock area = lock_of(lock, F_WRLCK);

	if (fcntl(fd, F_OFD_GETLK, &area) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot look at its locks");
	return area.l_type != F_UNLCK;
}

/* What follows the last whole frame that is known. */
enum next { NEXT_FRAME, NEXT_REMAINS, NEXT_DAMAGED };

/* Its payload is not looked at: readers do. */
static enum next next_frame(const struct wss_appender *appender, off_t size,
			    struct wss_frame *frame)
{
	uint8_t head[WSS_REC_FRAME_BYTES];
	off_t left = size - appender->end;

	/* The beginning of a frame, or nothing. */
	if (left < WSS_REC_FRAME_BYTES)
		return NEXT_REMAINS;
	if (wss_io_pread(appender->fd, head, sizeof(head), appender->end) != (ssize_t)sizeof(head) ||
	    !wss_rec_decode_frame(head, appender->seed, frame) ||
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
	bool inside = false;
	struct wss_frame frame;
	struct stat st;
	enum next next;

	if (fstat(appender->fd, &st) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot look at it");
	while ((next = next_frame(appender, st.st_size, &frame)) == NEXT_FRAME) {
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
	/* What lies behind the damage may be whole, and is not ours to cut off. */
	if (next == NEXT_DAMAGED)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "damaged at byte %llu: nothing is added to it",
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
	/* In one piece and in order: what a killed writer leaves behind is the beginning of it. */
	r = wss_io_pwrite(appender->fd, data, WSS_REC_FRAME_BYTES + length, appender->end);
	if (r < 0) {
		wss_append_take_back(appender, appender->end, appender->sequence, NULL);
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it");
	}
	appender->end += WSS_REC_FRAME_BYTES + (off_t)length;
	appender->sequence++;
	return 0;
}
