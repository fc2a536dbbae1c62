/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes lines on a stream socket, with a deadline and a size limit. For qmp/ and
 * client/ only. err is never NULL here. deadline_ns is a time of wss_clock_now_ns().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/error.h"

/*
 * Unread data is buf[start, end). buf[start, scanned) contains no newline: it is not searched
 * again when a peer sends byte by byte.
 */
struct qmp_stream {
	int fd; /* non-blocking; -1 when closed */
	char *buf;
	size_t cap, start, end, scanned;
	size_t max_bytes; /* upper limit of cap */
	/* Cancels each wait; NULL: only the stop signal does. */
	const struct wss_cancel *cancel;
};

/*
 * Connects to a UNIX stream socket. WSS_ERR_GONE: nobody listens there. Otherwise it fails as
 * qmp_open_unix() does.
 */
int qmp_stream_connect(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
		       int *ret_fd, struct wss_error *err);

/* Initializes a stream on a connected socket, which it takes over and makes non-blocking. */
int qmp_stream_init(struct qmp_stream *stream, int fd, size_t max_bytes,
		    const struct wss_cancel *cancel, struct wss_error *err);

/* Writes len bytes. Fails with WSS_ERR_TIMEOUT, _INTERRUPTED, _GONE or _FAILED. */
int qmp_stream_send(struct qmp_stream *stream, const char *text, size_t len, uint64_t deadline_ns,
		    struct wss_error *err);

/*
 * Reads one line without its newline: *ret_line points into the buffer and is valid until the
 * next call. A line that is already buffered is returned even after the deadline. Fails as
 * qmp_stream_send() does, and with WSS_ERR_FAILED if the line is longer than max_bytes.
 */
int qmp_stream_line(struct qmp_stream *stream, uint64_t deadline_ns, const char **ret_line,
		    size_t *ret_len, struct wss_error *err);

/*
 * Reads all that comes until the peer closes the connection: *ret_rest points into the buffer,
 * until the stream is closed. Fails as qmp_stream_send() does, and with WSS_ERR_FAILED if
 * that is max_bytes or more.
 */
int qmp_stream_rest(struct qmp_stream *stream, uint64_t deadline_ns, const char **ret_rest,
		    size_t *ret_len, struct wss_error *err);

/* Closes the socket and frees the buffer; may be called twice. */
void qmp_stream_close(struct qmp_stream *stream);
