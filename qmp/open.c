/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/deadline.h"
#include "client.h"
#include "jsonline.h"

int qmp_peer(const struct qmp *qmp, struct qmp_peer *ret_peer, struct wss_error *err)
{
	if (qmp->ops)
		return wss_error_set(err, WSS_ERR_UNSUPPORTED,
				     "the process behind the QMP connection is unknown over %s",
				     qmp->ops->name);
	if (qmp->peer.pid <= 0)
		return wss_error_set(
			err, WSS_ERR_UNSUPPORTED,
			"the process behind the QMP socket is not in this pid namespace");
	*ret_peer = qmp->peer;
	return 0;
}

static const struct wss_deadline *deadline_of(const struct qmp_limits *limits)
{
	return limits ? limits->deadline : NULL;
}

/* Without random numbers, as early in boot, the time is one that no other client has had. */
static uint64_t invent_id(void)
{
	uint64_t id;

	return getrandom(&id, sizeof(id), GRND_NONBLOCK) == (ssize_t)sizeof(id)
		       ? id
		       : wss_clock_now_ns();
}

static struct qmp *qmp_new(const struct qmp_limits *limits, struct wss_error *err)
{
	static const struct qmp_limits defaults = QMP_LIMITS_DEFAULT;
	struct qmp *qmp = calloc(1, sizeof(*qmp));

	if (!qmp) {
		wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
		return NULL;
	}
	qmp->limits = limits ? *limits : defaults;
	qmp->first_id = qmp->limits.first_id ? qmp->limits.first_id : invent_id();
	qmp->stream.fd = -1;
	return qmp;
}

void qmp_close(struct qmp *qmp)
{
	int saved = errno;

	if (!qmp)
		return;
	if (qmp->ops && qmp->ops->close)
		qmp->ops->close(qmp->opaque);
	qmp_stream_close(&qmp->stream);
	free(qmp);
	errno = saved;
}

/* Turns most errors that occur while opening into WSS_ERR_CONNECT. Returns -1. */
static int no_connection(const struct wss_deadline *deadline, struct wss_error *err)
{
	/* A peer that answers too slowly exists: this stays a timeout. */
	if (err->code == WSS_ERR_TIMEOUT && wss_deadline_check(deadline, err) < 0)
		return wss_error_prefix(err, "connecting to QMP");
	if (err->code != WSS_ERR_INTERRUPTED && err->code != WSS_ERR_NO_MEMORY &&
	    err->code != WSS_ERR_USAGE)
		err->code = WSS_ERR_CONNECT;
	return -1;
}

static int read_greeting(struct qmp *qmp, uint64_t deadline_ns, struct wss_error *err)
{
	qmp_auto_json struct json_object *greeting = NULL;
	struct json_object *inner = NULL;

	if (qmp_read_object(qmp, deadline_ns, &greeting, err) == 0 &&
	    qmp_get_object(greeting, "QMP", &inner, err) == 0)
		return 0;
	if (err->code == WSS_ERR_TIMEOUT)
		return wss_error_set(
			err, WSS_ERR_TIMEOUT,
			"no QMP greeting in time: QEMU serves one client at a time, and "
			"another may be connected");
	return wss_error_prefix(err, "no QMP greeting");
}

static int check_peer(struct qmp *qmp, int fd, struct wss_error *err)
{
	if (!qmp->limits.check_peer)
		return 0;
	qmp_peer_read(fd, &qmp->peer);
	return qmp->limits.check_peer(&qmp->peer, qmp->limits.check_opaque, err);
}

/* Takes over fd, reads the greeting and negotiates by the deadline. */
static int open_stream(int fd, unsigned int timeout_ms, uint64_t deadline_ns,
		       const struct qmp_limits *limits, struct qmp **ret_qmp, struct wss_error *err)
{
	qmp_auto struct qmp *qmp = qmp_new(limits, err);
	const struct wss_deadline *deadline = deadline_of(limits);

	if (!qmp) {
		close(fd);
		return -1;
	}
	if (qmp_stream_init(&qmp->stream, fd, qmp->limits.reply_bytes,
			    wss_deadline_cancel(deadline), err) < 0)
		return no_connection(deadline, err);
	if (check_peer(qmp, fd, err) < 0)
		return -1;
	if (read_greeting(qmp, deadline_ns, err) < 0)
		return no_connection(deadline, err);
	/* A peer that has sent its greeting has accepted the connection. */
	qmp_peer_read(fd, &qmp->peer);
	if (qmp_run(qmp, "qmp_capabilities", NULL, timeout_ms, deadline_ns, NULL, err) < 0)
		return no_connection(deadline, err);
	*ret_qmp = wss_steal_ptr(qmp);
	return 0;
}

int qmp_open_fd(int fd, unsigned int timeout_ms, const struct qmp_limits *limits,
		struct qmp **ret_qmp, struct wss_error *err)
{
	struct wss_error unwanted = WSS_ERROR_INIT;

	return open_stream(fd, timeout_ms, qmp_end_ns(deadline_of(limits), timeout_ms), limits,
			   ret_qmp, err ? err : &unwanted);
}

int qmp_open_unix(const char *path, unsigned int timeout_ms, const struct qmp_limits *limits,
		  struct qmp **ret_qmp, struct wss_error *err)
{
	struct wss_error unwanted = WSS_ERROR_INIT;
	const struct wss_deadline *deadline = deadline_of(limits);
	uint64_t deadline_ns = qmp_end_ns(deadline, timeout_ms);
	int fd;

	if (!err)
		err = &unwanted;
	if (qmp_stream_connect(path, deadline_ns, wss_deadline_cancel(deadline), &fd, err) < 0) {
		if (err->code == WSS_ERR_TIMEOUT)
			wss_error_set(err, WSS_ERR_TIMEOUT,
				      "QEMU has not accepted the connection within %u ms",
				      timeout_ms);
		return no_connection(deadline, err);
	}
	return open_stream(fd, timeout_ms, deadline_ns, limits, ret_qmp, err);
}

int qmp_open_transport(const struct qmp_transport_ops *ops, void *opaque,
		       const struct qmp_limits *limits, struct qmp **ret_qmp, struct wss_error *err)
{
	struct qmp *qmp = qmp_new(limits, err);

	if (!qmp) {
		if (ops->close)
			ops->close(opaque);
		return -1;
	}
	qmp->ops = ops;
	qmp->opaque = opaque;
	*ret_qmp = qmp;
	return 0;
}
