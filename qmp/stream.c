/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/privilege.h"

#define FIRST_BYTES ((size_t)4096)
#define KEEP_BYTES ((size_t)64 << 10)
#define CONNECT_RETRY_NS (10 * WSS_NS_PER_MS)

static int cancel_error(struct wss_error *err)
{
	return wss_error_set(err, WSS_ERR_INTERRUPTED, "interrupted");
}

/* Waits until the socket is ready for events (POLLIN or POLLOUT) or broken. */
static int stream_wait_ready(const struct qmp_stream *stream, short events, uint64_t deadline_ns,
			     struct wss_error *err)
{
	struct pollfd pfds[1 + WSS_CANCEL_CHAIN_MAX] = {{.fd = stream->fd, .events = events}};
	nfds_t n = 1 + wss_cancel_poll_fds(stream->cancel, pfds + 1);

	for (;;) {
		int ready;

		if (wss_cancel_requested(stream->cancel))
			return cancel_error(err);
		ready = poll(pfds, n, wss_clock_poll_ms(deadline_ns));
		if (ready < 0 && errno != EINTR)
			return wss_error_errno(err, WSS_ERR_FAILED, errno, "poll");
		if (wss_cancel_requested(stream->cancel))
			return cancel_error(err);
		if (ready > 0 && pfds[0].revents)
			return 0;
		if (wss_clock_now_ns() >= deadline_ns)
			return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
	}
}

static int set_address(struct sockaddr_un *addr, const char *path, struct wss_error *err)
{
	size_t len = strlen(path);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (!len)
		return wss_error_set(err, WSS_ERR_USAGE, "the socket path is empty");
	if (len >= sizeof(addr->sun_path))
		return wss_error_set(err, WSS_ERR_USAGE,
				     "socket path has %zu characters, limit %zu", len,
				     sizeof(addr->sun_path) - 1);
	memcpy(addr->sun_path, path, len + 1);
	return 0;
}

/* Explains why nobody listens at path; connect() gives the same error for a file that is no socket. */
static int connect_refused(const char *path, int errnum, struct wss_error *err)
{
	struct stat st;

	if (errnum == ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return wss_error_set(err, WSS_ERR_CONNECT, "it is a %s, not a UNIX socket",
				     wss_file_kind(st.st_mode));
	return wss_error_errno(err, WSS_ERR_GONE, errnum, "cannot connect");
}

int qmp_stream_connect(const char *path, uint64_t deadline_ns, const struct wss_cancel *cancel,
		       int *ret_fd, struct wss_error *err)
{
	wss_auto_close int fd = -1;
	struct sockaddr_un addr;

	if (set_address(&addr, path, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "socket");
	while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		/* EAGAIN: the listener's queue is full, and poll() cannot wait for room in it. */
		if (errno == ENOENT || errno == ECONNREFUSED)
			return connect_refused(path, errno, err);
		if (errno != EAGAIN && errno != EINTR)
			return wss_privilege_errno(err, WSS_ERR_CONNECT, errno, WSS_CAPS_FILE,
						   "cannot connect");
		if (wss_clock_now_ns() >= deadline_ns)
			return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
		if (wss_cancel_sleep_until_ns(cancel, wss_clock_now_ns() + CONNECT_RETRY_NS) < 0)
			return cancel_error(err);
	}
	*ret_fd = wss_steal_fd(&fd);
	return 0;
}

int qmp_stream_init(struct qmp_stream *stream, int fd, size_t max_bytes,
		    const struct wss_cancel *cancel, struct wss_error *err)
{
	int flags;

	*stream = (struct qmp_stream){.fd = fd, .max_bytes = max_bytes, .cancel = cancel};
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "fcntl");
	return 0;
}

void qmp_stream_close(struct qmp_stream *stream)
{
	if (stream->fd >= 0)
		close(stream->fd);
	free(stream->buf);
	*stream = (struct qmp_stream){.fd = -1};
}

static int socket_error(struct wss_error *err, const char *what)
{
	if (errno == EPIPE || errno == ECONNRESET)
		return wss_error_set(err, WSS_ERR_GONE, "the peer closed the connection");
	return wss_error_errno(err, WSS_ERR_FAILED, errno, "%s", what);
}

int qmp_stream_send(struct qmp_stream *stream, const char *text, size_t len, uint64_t deadline_ns,
		    struct wss_error *err)
{
	while (len) {
		ssize_t n;

		if (stream_wait_ready(stream, POLLOUT, deadline_ns, err) < 0)
			return -1;
		n = send(stream->fd, text, len, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return socket_error(err, "send");
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Frees the memory that a large reply took, and moves unread data to the front. */
static void stream_compact(struct qmp_stream *s)
{
	size_t unread = s->end - s->start;

	if (s->start) {
		memmove(s->buf, s->buf + s->start, unread);
		s->scanned -= s->start;
		s->start = 0;
		s->end = unread;
	}
	if (s->cap > KEEP_BYTES && unread <= FIRST_BYTES) {
		char *smaller = realloc(s->buf, FIRST_BYTES);

		if (smaller) {
			s->buf = smaller;
			s->cap = FIRST_BYTES;
		}
	}
}

static int stream_make_room(struct qmp_stream *s, struct wss_error *err)
{
	size_t cap = s->cap ? s->cap * 2 : FIRST_BYTES;
	char *larger;

	if (s->end < s->cap)
		return 0;
	if (s->cap >= s->max_bytes)
		return wss_error_set(err, WSS_ERR_FAILED, "the reply is larger than %zu bytes",
				     s->max_bytes);
	if (cap > s->max_bytes)
		cap = s->max_bytes;
	larger = realloc(s->buf, cap);
	if (!larger)
		return wss_error_set(err, WSS_ERR_NO_MEMORY, "out of memory");
	s->buf = larger;
	s->cap = cap;
	return 0;
}

/* Receives into the room that there is: 1, also if nothing came; 0: the peer has closed; -1. */
static int stream_receive(struct qmp_stream *s, uint64_t deadline_ns, struct wss_error *err)
{
	ssize_t n;

	if (stream_wait_ready(s, POLLIN, deadline_ns, err) < 0)
		return -1;
	n = recv(s->fd, s->buf + s->end, s->cap - s->end, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (n < 0)
		return socket_error(err, "receive");
	s->end += (size_t)n;
	return n > 0;
}

static bool stream_take_line(struct qmp_stream *s, const char **ret_line, size_t *ret_len)
{
	char *newline;

	if (s->scanned == s->end)
		return false;
	newline = memchr(s->buf + s->scanned, '\n', s->end - s->scanned);
	if (!newline) {
		s->scanned = s->end;
		return false;
	}
	*ret_line = s->buf + s->start;
	*ret_len = (size_t)(newline - *ret_line);
	s->start += *ret_len + 1;
	s->scanned = s->start;
	return true;
}

int qmp_stream_line(struct qmp_stream *stream, uint64_t deadline_ns, const char **ret_line,
		    size_t *ret_len, struct wss_error *err)
{
	bool waited = false;
	int received;

	while (!stream_take_line(stream, ret_line, ret_len)) {
		/* poll() never times out on a peer that always has another byte ready. */
		if (waited && wss_clock_now_ns() >= deadline_ns)
			return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
		waited = true;
		stream_compact(stream);
		if (stream_make_room(stream, err) < 0)
			return -1;
		received = stream_receive(stream, deadline_ns, err);
		if (received < 0)
			return -1;
		if (!received)
			return wss_error_set(
				err, WSS_ERR_GONE, "the peer closed the connection%s",
				stream->end > stream->start ? " in the middle of a reply" : "");
	}
	return 0;
}

int qmp_stream_rest(struct qmp_stream *stream, uint64_t deadline_ns, const char **ret_rest,
		    size_t *ret_len, struct wss_error *err)
{
	int received;

	do {
		if (stream_make_room(stream, err) < 0)
			return -1;
		received = stream_receive(stream, deadline_ns, err);
		if (received > 0 && wss_clock_now_ns() >= deadline_ns)
			return wss_error_set(err, WSS_ERR_TIMEOUT, "timed out");
	} while (received > 0);
	if (received < 0)
		return -1;
	*ret_rest = stream->buf + stream->start;
	*ret_len = stream->end - stream->start;
	return 0;
}
