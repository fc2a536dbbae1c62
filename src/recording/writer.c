/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/io.h"
#include "base/newfile.h"
#include "base/text.h"
#include "recording/append.h"
#include "recording/tokens.h"

#define PAYLOAD_BYTES (256U * 1024)
#define DATA_BYTES (WSS_REC_FRAME_BYTES + PAYLOAD_BYTES)
/* More room than a change and a switch of lists take. */
#define TOKEN_ROOM 64
/* How often other processes may replace the file just after it was opened. */
#define REPLACED_MAX 16

struct wss_recwriter {
	struct wss_newfile file;
	int replaced; /* the recording of that name, locked until the file has its name; -1: there is none */
	struct wss_appender appender;
	char *path;
	uint8_t data[DATA_BYTES];
	struct wss_buffer payload;
	struct wss_token_state tokens;
	uint64_t last_end_ns;
	uint64_t intervals;
	struct wss_pageset_parts parts;
	/* State of the current interval. */
	bool open;
	bool locked; /* part of it has been written: the lock is held until its end */
	uint8_t flags;
	off_t start;
	uint32_t start_sequence;
};

static void start_payload(struct wss_recwriter *writer, uint8_t flags)
{
	writer->payload = (struct wss_buffer){.data = writer->data + WSS_REC_FRAME_BYTES,
					      .size = PAYLOAD_BYTES};
	writer->tokens = (struct wss_token_state)WSS_TOKEN_STATE_INIT;
	writer->flags = flags;
}

/* Checks that the file may be replaced. */
static int recording_check_replaceable(int fd, struct wss_error *err)
{
	uint8_t magic[8];
	ssize_t n = wss_io_pread(fd, magic, sizeof(magic), 0);

	if (n < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, (int)-n, "cannot read it");
	if (n != 0 && (n != (ssize_t)sizeof(magic) || memcmp(magic, WSS_REC_MAGIC, 8) != 0))
		return wss_error_set(err, WSS_ERR_FAILED,
				     "the file exists and is not a recording: not overwritten");
	return 0;
}

/*
 * Opens and locks the recording at the place, so that nobody records to it or replaces it
 * until it is closed. Returns 1, 0 if there is none, or -1.
 */
static int lock_existing(const struct wss_place *place, int *ret_fd, struct wss_error *err)
{
	for (int attempt = 0; attempt < REPLACED_MAX; attempt++) {
		wss_auto_close_locked int fd = -1;
		int r = wss_place_open(place, &fd, err);

		if (r <= 0)
			return r;
		if (recording_check_replaceable(fd, err) < 0 ||
		    wss_append_lock(fd, WSS_LOCK_RECORDING, false, err) < 0)
			return -1;
		r = wss_place_has(place, fd, err);
		if (r > 0)
			*ret_fd = wss_steal_fd(&fd);
		if (r != 0)
			return r;
	}
	return wss_error_set(err, WSS_ERR_BUSY, "other processes keep replacing it");
}

/* Also whether the disk has room for a header, by a file that never gets a name. */
static int check_target(const char *path, struct wss_error *err)
{
	wss_auto_newfile struct wss_newfile file = WSS_NEWFILE_INIT;
	/* Closing the descriptor releases the lock. */
	wss_auto_close_locked int old = -1;
	const uint8_t block[4096] = {0};
	int r;

	if (wss_newfile_make(path, 0600, &file, err) < 0 ||
	    lock_existing(&file.place, &old, err) < 0)
		return -1;
	r = wss_io_pwrite(file.fd, block, sizeof(block), 0);
	return r < 0 ? wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it") : 0;
}

int wss_recwriter_check(const char *path, struct wss_error *err)
{
	return check_target(path, err) < 0 ? wss_error_prefix(err, "%s", path) : 0;
}

static int write_header(struct wss_recwriter *writer, const struct wss_recording *recording,
			struct wss_error *err)
{
	size_t size = wss_rec_encode_header(recording, writer->data, sizeof(writer->data),
					    &writer->appender.seed);
	int r;

	if (!size || !wss_recording_map_valid(recording))
		return wss_error_set(err, WSS_ERR_FAILED, "its memory layout cannot be recorded");
	r = wss_io_pwrite(writer->appender.fd, writer->data, size, 0);
	if (r < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, -r, "cannot write to it");
	writer->appender.end = (off_t)size;
	return 0;
}

/* Adds a frame outside intervals; its payload is already in the buffer. */
static int append_payload(struct wss_recwriter *writer, enum wss_frame_type type, uint8_t flags,
			  struct wss_error *err)
{
	int r;

	if (wss_append_lock(writer->appender.fd, WSS_LOCK_APPEND, true, err) < 0)
		return -1;
	r = wss_append_catch_up(&writer->appender, err);
	if (r == 0)
		r = wss_append_frame(&writer->appender, type, flags, writer->data,
				     writer->payload.length, err);
	wss_append_unlock(writer->appender.fd, WSS_LOCK_APPEND);
	return r;
}

/* Readers that do not know this frame skip it. */
static int write_host(struct wss_recwriter *writer, const char *host, struct wss_error *err)
{
	char clean[WSS_RECORDING_TEXT_MAX];

	if (!*host)
		return 0;
	snprintf(clean, sizeof(clean), "%s", host);
	wss_text_sanitize(clean);
	start_payload(writer, 0);
	wss_buffer_text(&writer->payload, clean);
	return append_payload(writer, WSS_FRAME_HOST, WSS_FRAME_OPTIONAL, err);
}

static int create_file(struct wss_recwriter *writer, const struct wss_recording *recording,
		       struct wss_error *err)
{
	/* Only the owner may see which pages a guest touches. */
	if (wss_newfile_make(writer->path, 0600, &writer->file, err) < 0 ||
	    lock_existing(&writer->file.place, &writer->replaced, err) < 0)
		return -1;
	writer->appender.fd = writer->file.fd;
	return wss_append_lock(writer->file.fd, WSS_LOCK_RECORDING, false, err) < 0 ||
			       write_header(writer, recording, err) < 0 ||
			       write_host(writer, recording->host, err) < 0
		       ? -1
		       : 0;
}

int wss_recwriter_create(const char *path, const struct wss_recording *recording,
			 struct wss_recwriter **ret_writer, struct wss_error *err)
{
	struct wss_recwriter *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	writer->file = (struct wss_newfile)WSS_NEWFILE_INIT;
	writer->replaced = -1;
	writer->path = strdup(path);
	if (writer->path ? create_file(writer, recording, err) < 0
			 : wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory") < 0) {
		wss_recwriter_free(writer);
		return wss_error_prefix(err, "%s", path);
	}
	*ret_writer = writer;
	return 0;
}

int wss_recwriter_name(struct wss_recwriter *writer, struct wss_error *err)
{
	if (wss_newfile_name(&writer->file, writer->replaced >= 0, err) < 0)
		return wss_error_prefix(err, "%s", writer->path);
	wss_file_close_locked(&writer->replaced);
	return 0;
}

int wss_recwriter_begin(struct wss_recwriter *writer, const struct wss_interval *interval,
			struct wss_error *err)
{
	if (writer->open || interval->start_ns < writer->last_end_ns ||
	    interval->end_ns < interval->start_ns || interval->end_ns > WSS_REC_TIME_MAX_NS)
		return wss_error_set(err, WSS_ERR_FAILED, "%s: interval out of order",
				     writer->path);
	if (writer->intervals == WSS_REC_INTERVALS_MAX)
		return wss_error_set(
			err, WSS_ERR_FAILED,
			"%s: it has %u intervals, windows and gaps, which is the limit",
			writer->path, WSS_REC_INTERVALS_MAX);
	start_payload(writer, WSS_FRAME_FIRST);
	wss_rec_encode_interval(&writer->payload, interval);
	writer->last_end_ns = interval->end_ns;
	writer->open = true;
	return 0;
}

/* Remove the part of the interval that was written. */
static int drop_interval(struct wss_recwriter *writer, struct wss_error *err)
{
	if (writer->locked) {
		wss_append_take_back(&writer->appender, writer->start, writer->start_sequence,
				     NULL);
		wss_append_unlock(writer->appender.fd, WSS_LOCK_APPEND);
	}
	writer->locked = writer->open = false;
	return wss_error_prefix(err, "%s", writer->path);
}

static int flush_payload(struct wss_recwriter *writer, uint8_t flags, struct wss_error *err)
{
	if (!writer->locked) {
		if (wss_append_lock(writer->appender.fd, WSS_LOCK_APPEND, true, err) < 0)
			return drop_interval(writer, err);
		/* If this fails, nothing was written that would have to be removed. */
		if (wss_append_catch_up(&writer->appender, err) < 0) {
			wss_append_unlock(writer->appender.fd, WSS_LOCK_APPEND);
			return drop_interval(writer, err);
		}
		writer->locked = true;
		writer->start = writer->appender.end;
		writer->start_sequence = writer->appender.sequence;
	}
	if (wss_append_frame(&writer->appender, WSS_FRAME_INTERVAL, writer->flags | flags,
			     writer->data, writer->payload.length, err) < 0)
		return drop_interval(writer, err);
	return 0;
}

int wss_recwriter_change(struct wss_recwriter *writer, enum wss_change change, uint64_t gfn,
			 uint64_t n, struct wss_error *err)
{
	if (!n)
		return 0;
	if (writer->payload.size - writer->payload.length < TOKEN_ROOM) {
		if (flush_payload(writer, 0, err) < 0)
			return -1;
		start_payload(writer, 0);
	}
	wss_token_put_run(&writer->payload, &writer->tokens, change, gfn, n);
	return 0;
}

int wss_recwriter_room(struct wss_recwriter *writer, struct wss_run run, struct wss_error *err)
{
	if (wss_pageset_note_parts(&writer->parts, run) <= WSS_REC_PARTS_MAX)
		return 0;
	wss_error_set(err, WSS_ERR_FAILED,
		      "its pages are scattered over more than 4 TiB: no more fit");
	return drop_interval(writer, err);
}

int wss_recwriter_end(struct wss_recwriter *writer, uint64_t touched, uint64_t written,
		      uint64_t ballooned, struct wss_error *err)
{
	const uint64_t counts[3] = {touched, written, ballooned};

	if (writer->payload.size - writer->payload.length < TOKEN_ROOM) {
		if (flush_payload(writer, 0, err) < 0)
			return -1;
		start_payload(writer, 0);
	}
	wss_token_put_counts(&writer->payload, counts);
	if (flush_payload(writer, WSS_FRAME_LAST, err) < 0)
		return -1;
	wss_append_unlock(writer->appender.fd, WSS_LOCK_APPEND);
	writer->locked = writer->open = false;
	writer->intervals++;
	return 0;
}

uint64_t wss_recwriter_bytes(const struct wss_recwriter *writer)
{
	return (uint64_t)writer->appender.end;
}

int wss_recwriter_end_file(struct wss_recwriter *writer, uint64_t end_ns, struct wss_error *err)
{
	int r;

	start_payload(writer, 0);
	wss_buffer_number(&writer->payload,
			  end_ns > writer->last_end_ns ? end_ns : writer->last_end_ns);
	r = append_payload(writer, WSS_FRAME_END, 0, err);
	if (r == 0 && fsync(writer->appender.fd) < 0)
		r = wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot write to it");
	return r < 0 ? wss_error_prefix(err, "%s", writer->path) : 0;
}

int wss_recwriter_finish(struct wss_recwriter *writer, uint64_t end_ns, struct wss_error *err)
{
	int r = wss_recwriter_end_file(writer, end_ns, err);

	wss_recwriter_free(writer);
	return r;
}

void wss_recwriter_free(struct wss_recwriter *writer)
{
	if (!writer)
		return;
	if (writer->open)
		drop_interval(writer, NULL);
	wss_file_close_locked(&writer->replaced);
	wss_newfile_release(&writer->file);
	free(writer->path);
	free(writer);
}
