/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Adds frames to a recording that several processes may add to: see recording/writer.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "recording/codec.h"

struct wss_appender {
	int fd;
	uint32_t seed;	   /* checksum of the header */
	uint32_t sequence; /* number of the next frame */
	off_t end;	   /* end of the last complete frame */
	uint64_t marks;	   /* number of marks before that */
	bool ended;	   /* the last frame was the end of the recording */
};

/* The locks, named after what their owner is doing. */
enum wss_append_lock { WSS_LOCK_RECORDING, WSS_LOCK_APPEND };

/*
 * Takes a lock. WSS_ERR_BUSY if another process holds it, at once or, with wait, after 10 s;
 * WSS_ERR_INTERRUPTED 200 ms after a stop request.
 */
int wss_append_lock(int fd, enum wss_append_lock lock, bool wait, struct wss_error *err);
void wss_append_unlock(int fd, enum wss_append_lock lock);

/* Whether another process holds it. Returns 1, 0, or -1. */
int wss_append_locked(int fd, enum wss_append_lock lock, struct wss_error *err);

/*
 * With the append lock held: moves to the end of other processes' additions, and cuts off the
 * unfinished addition of a killed writer. WSS_ERR_FAILED also if anything else follows: the
 * file is damaged there, and left as it is.
 */
int wss_append_catch_up(struct wss_appender *appender, struct wss_error *err);

/*
 * With the append lock held: adds a frame. data has room for its head, WSS_REC_FRAME_BYTES,
 * followed by a payload of length bytes. On failure the file is as before.
 */
int wss_append_frame(struct wss_appender *appender, enum wss_frame_type type, uint8_t flags,
		     uint8_t *data, size_t length, struct wss_error *err);

/* With the append lock held: removes all frames from that end and sequence on. */
int wss_append_take_back(struct wss_appender *appender, off_t end, uint32_t sequence,
			 struct wss_error *err);
