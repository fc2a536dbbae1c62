/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-connections.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "serve/http-child.h"

/* Connections that are accepted between two runs of the daemon; less than WSS_HTTP_ENDING_MAX. */
#define ACCEPTED_AT_ONCE 64

int wss_http_connections_open(struct wss_http_connections *connections, size_t most)
{
	size_t n = most + WSS_HTTP_ENDING_MAX;

	connections->all = calloc(n, sizeof(*connections->all));
	if (!connections->all)
		return -1;
	TAILQ_INIT(&connections->open);
	TAILQ_INIT(&connections->ending);
	TAILQ_INIT(&connections->unused);
	for (size_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&connections->unused, &connections->all[i], link);
	connections->n_open = 0;
	connections->most = most;
	return 0;
}

static void slot_begin(struct wss_http_connections *connections, struct MHD_Connection *connection,
		       void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct wss_http_slot *slot = TAILQ_FIRST(&connections->unused);

	/* The daemon has no more connections than there are slots. */
	if (!slot || !info)
		return;
	TAILQ_REMOVE(&connections->unused, slot, link);
	slot->fd = info->connect_fd;
	slot->since_ns = wss_clock_now_ns();
	TAILQ_INSERT_TAIL(&connections->open, slot, link);
	connections->n_open++;
	*context = slot;
}

static void slot_end(struct wss_http_connections *connections, struct wss_http_slot *slot)
{
	if (slot->fd < 0) {
		TAILQ_REMOVE(&connections->ending, slot, link);
	} else {
		TAILQ_REMOVE(&connections->open, slot, link);
		connections->n_open--;
	}
	TAILQ_INSERT_HEAD(&connections->unused, slot, link);
}

void wss_http_connections_notify(void *cls, struct MHD_Connection *connection, void **context,
				 int code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		slot_begin(cls, connection, context);
	else if (*context)
		slot_end(cls, *context);
}

/* The daemon reads the end of the connection, and closes it. */
static void oldest_shut(struct wss_http_connections *connections)
{
	struct wss_http_slot *slot = TAILQ_FIRST(&connections->open);

	if (!slot)
		return;
	/* Where libc calls it by socketcall(2), the filter cannot tell descriptors apart. */
	syscall(SYS_shutdown, slot->fd, SHUT_RDWR);
	slot->fd = -1;
	TAILQ_REMOVE(&connections->open, slot, link);
	connections->n_open--;
	TAILQ_INSERT_TAIL(&connections->ending, slot, link);
}

void wss_http_connections_accept(struct wss_http_connections *connections,
				 struct MHD_Daemon *daemon, int listener)
{
	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
		socklen_t len = sizeof(addr);
		int fd = accept4(listener, (struct sockaddr *)&addr, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* The next one waits until there is a descriptor or memory for it. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				oldest_shut(connections);
			return;
		}
		if (MHD_add_connection(daemon, fd, (struct sockaddr *)&addr, len) != MHD_YES)
			return;
		while (connections->n_open > connections->most)
			oldest_shut(connections);
	}
}

void wss_http_connections_expire(struct wss_http_connections *connections)
{
	uint64_t now_ns = wss_clock_now_ns();

	while (wss_http_connections_due_ns(connections) <= now_ns)
		oldest_shut(connections);
}

uint64_t wss_http_connections_due_ns(const struct wss_http_connections *connections)
{
	const struct wss_http_slot *slot = TAILQ_FIRST(&connections->open);

	return slot ? slot->since_ns + WSS_HTTP_REQUEST_NS : UINT64_MAX;
}
