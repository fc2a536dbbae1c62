/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "client/service.h"

#include <string.h>

#include "qmp/stream.h"

/* Without keep-alive, so that the end of the reply is that of the connection. */
#define REQUEST "GET /api/v1/guests HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"

static void stream_cleanup(struct qmp_stream *stream)
{
	qmp_stream_close(stream);
}

static int ask(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
	       struct wss_guests *ret_guests, struct wss_error *err)
{
	struct qmp_stream stream __attribute__((cleanup(stream_cleanup))) = {.fd = -1};
	const char *reply;
	size_t len;
	int fd;

	if (qmp_stream_connect(path, deadline_ns, cancel, &fd, err) < 0)
		return -1;
	if (qmp_stream_init(&stream, fd, WSS_GUESTS_REPLY_MAX, cancel, err) < 0 ||
	    qmp_stream_send(&stream, REQUEST, strlen(REQUEST), deadline_ns, err) < 0 ||
	    qmp_stream_rest(&stream, deadline_ns, &reply, &len, err) < 0) {
		/* There is a service, but it breaks connections. */
		if (err->code == WSS_ERR_GONE)
			err->code = WSS_ERR_FAILED;
		return -1;
	}
	return wss_guests_read(reply, len, ret_guests, err);
}

int wss_service_guests(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
		       struct wss_guests *ret_guests, struct wss_error *err)
{
	struct wss_error unseen = WSS_ERROR_INIT;

	if (!err)
		err = &unseen;
	if (ask(path, deadline_ns, cancel, ret_guests, err) < 0)
		return wss_error_prefix(err, "service at %s", path);
	return 0;
}
