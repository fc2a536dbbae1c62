/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/io.h"
#include "recording/append.h"
#include "recording/writer.h"

/* Reads the header of an open file; the frames begin right after it. */
static int appender_read_header(int fd, struct wss_appender *appender,
				struct wss_recording *recording, struct wss_error *err)
{
	wss_auto_free uint8_t *data = malloc(WSS_REC_PREAMBLE_BYTES);
	uint8_t *whole;
	size_t size;

	if (!data)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (wss_io_pread(fd, data, WSS_REC_PREAMBLE_BYTES, 0) != WSS_REC_PREAMBLE_BYTES)
		return wss_error_set(err, WSS_ERR_FAILED, "not a recording of virt-wss");
	if (wss_rec_header_size(data, &size, err) < 0)
		return -1;
	whole = realloc(data, size);
	if (!whole)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	data = whole;
	if (wss_io_pread(fd, data, size, 0) != (ssize_t)size)
		return wss_error_set(err, WSS_ERR_FAILED, "cut off in its header");
	appender->end = (off_t)size;
	return wss_rec_decode_header(data, size, recording, &appender->seed, err);
}

static int append_mark(struct wss_appender *appender, const char *text, uint64_t time_ns,
		       struct wss_error *err)
{
	uint8_t data[WSS_REC_FRAME_BYTES + WSS_MARK_TEXT_MAX + 32];
	struct wss_buffer payload = {.data = data + WSS_REC_FRAME_BYTES,
				     .size = sizeof(data) - WSS_REC_FRAME_BYTES};
	char clean[WSS_MARK_TEXT_MAX];

	if (strlen(text) >= sizeof(clean))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "text too long: a mark has at most %d bytes",
				     WSS_MARK_TEXT_MAX - 1);
	snprintf(clean, sizeof(clean), "%s", text);
	/* The command line may contain any bytes; the file has UTF-8. */
	wss_text_sanitize(clean);
	wss_buffer_number(&payload, time_ns);
	wss_buffer_text(&payload, clean);
	if (wss_append_catch_up(appender, err) < 0)
		return -1;
	if (appender->ended)
		return wss_error_set(err, WSS_ERR_FAILED, "the recording has ended");
	if (appender->marks >= WSS_REC_MARKS_MAX)
		return wss_error_set(err, WSS_ERR_FAILED, "it has %u marks, which is the limit",
				     WSS_REC_MARKS_MAX);
	return wss_append_frame(appender, WSS_FRAME_MARK, 0, data, payload.length, err);
}

static int recording_add_mark(int fd, const char *text, const char *boot_id,
			      uint64_t now_boottime_ns, uint64_t *ret_time_ns,
			      struct wss_error *err)
{
	wss_auto_free struct wss_recording *recording = malloc(sizeof(*recording));
	struct wss_appender appender = {.fd = fd};
	int recording_now, r;

	if (!recording)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	if (appender_read_header(fd, &appender, recording, err) < 0)
		return -1;
	recording_now = wss_append_locked(fd, WSS_LOCK_RECORDING, err);
	if (recording_now < 0)
		return -1;
	if (!recording_now)
		return wss_error_set(err, WSS_ERR_FAILED, "no process is recording to it");
	if ((*recording->boot_id && *boot_id && strcmp(recording->boot_id, boot_id) != 0) ||
	    now_boottime_ns < recording->start_boottime_ns)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "a process of another host is recording to it");
	*ret_time_ns = now_boottime_ns - recording->start_boottime_ns;
	if (wss_append_lock(fd, WSS_LOCK_APPEND, true, err) < 0)
		return -1;
	r = append_mark(&appender, text, *ret_time_ns, err);
	wss_append_unlock(fd, WSS_LOCK_APPEND);
	return r;
}

/* A recording in progress is its owner's own file: never follow a link to it. */
static int open_recording(const char *path, int *ret_fd, struct wss_error *err)
{
	wss_auto_place struct wss_place place = WSS_PLACE_INIT;
	int r;

	if (wss_place_find(path, &place, err) < 0)
		return -1;
	r = wss_place_open(&place, ret_fd, err);
	return r ? r : wss_error_errno(err, WSS_ERR_FAILED, ENOENT, "cannot open it");
}

int wss_rec_mark(const char *path, const char *text, const char *boot_id, uint64_t now_boottime_ns,
		 uint64_t *ret_time_ns, struct wss_error *err)
{
	wss_auto_close int fd = -1;

	if (open_recording(path, &fd, err) < 0 ||
	    recording_add_mark(fd, text, boot_id, now_boottime_ns, ret_time_ns, err) < 0)
		return wss_error_prefix(err, "%s", path);
	return 0;
}
