/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads and writes lines on a stream socket, with a deadline and a size limit. Private to
 * qmp/. err is never NULL here. deadline_ns is a time of wss_clock_now_ns().
 */
#ifndef QMP_STREAM_H
#define QMP_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/cancel.h"
#include "base/error.h"

/*
 * Buffered data is buf[start, end). buf[start, scanned) has no newline, so a peer that sends
 * byte by byte does not make us search the line again each time.
 */
struct qmp_stream {
	int fd; /* non-blocking; -1 when closed */
	char *buf;
	size_t cap, start, end, scanned;
	size_t max_bytes; /* cap never exceeds it */
	const struct wss_cancel *cancel; /* ends each wait; NULL: the stop signal alone */
};

/* Connects to a UNIX stream socket. Errors as of qmp_open_unix(). */
int qmp_stream_connect(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
		       int *ret_fd, struct wss_error *err);

/* Starts on a connected socket, which it takes over and makes non-blocking. */
int qmp_stream_init(struct qmp_stream *stream, int fd, size_t max_bytes,
		    const struct wss_cancel *cancel, struct wss_error *err);

/* Writes len bytes. Fails with WSS_ERR_TIMEOUT, _INTERRUPTED, _GONE or _FAILED. */
int qmp_stream_send(struct qmp_stream *stream, const char *text, size_t len,
		    uint64_t deadline_ns, struct wss_error *err);

/*
 * Reads one line without its newline: *ret_line points into the buffer and is valid until the
 * next call. WSS_ERR_FAILED if the line is longer than max_bytes, else as above. A line that
 * is already buffered is returned even past the deadline.
 */
int qmp_stream_line(struct qmp_stream *stream, uint64_t deadline_ns, const char **ret_line,
		    size_t *ret_len, struct wss_error *err);

/* Closes the socket and frees the buffer; may be called twice. */
void qmp_stream_close(struct qmp_stream *stream);

#endif
