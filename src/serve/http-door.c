/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/http-door.h"

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

int wss_http_door_open(struct wss_http_door *door, size_t most)
{
	size_t n = most + WSS_HTTP_ENDING_MAX;

	door->all = calloc(n, sizeof(*door->all));
	if (!door->all)
		return -1;
	TAILQ_INIT(&door->open);
	TAILQ_INIT(&door->ending);
	TAILQ_INIT(&door->unused);
	for (size_t i = 0; i < n; i++)
		TAILQ_INSERT_TAIL(&door->unused, &door->all[i], link);
	door->n_open = 0;
	door->most = most;
	return 0;
}

static void slot_begin(struct wss_http_door *door, struct MHD_Connection *connection,
		       void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct wss_http_slot *slot = TAILQ_FIRST(&door->unused);

	/* The daemon has no more connections than there are slots. */
	if (!slot || !info)
		return;
	TAILQ_REMOVE(&door->unused, slot, link);
	slot->fd = info->connect_fd;
	slot->since_ns = wss_clock_now_ns();
	TAILQ_INSERT_TAIL(&door->open, slot, link);
	door->n_open++;
	*context = slot;
}

static void slot_end(struct wss_http_door *door, struct wss_http_slot *slot)
{
	if (slot->fd < 0) {
		TAILQ_REMOVE(&door->ending, slot, link);
	} else {
		TAILQ_REMOVE(&door->open, slot, link);
		door->n_open--;
	}
	TAILQ_INSERT_HEAD(&door->unused, slot, link);
}

void wss_http_door_notify(void *cls, struct MHD_Connection *connection, void **context,
			  int code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		slot_begin(cls, connection, context);
	else if (*context)
		slot_end(cls, *context);
}

/* The daemon reads the end of the connection, and closes it. */
static void oldest_shut(struct wss_http_door *door)
{
	struct wss_http_slot *slot = TAILQ_FIRST(&door->open);

	if (!slot)
		return;
	/* Where libc calls it by socketcall(2), the filter cannot tell descriptors apart. */
	syscall(SYS_shutdown, slot->fd, SHUT_RDWR);
	slot->fd = -1;
	TAILQ_REMOVE(&door->open, slot, link);
	door->n_open--;
	TAILQ_INSERT_TAIL(&door->ending, slot, link);
}

void wss_http_door_accept(struct wss_http_door *door, struct MHD_Daemon *daemon, int listener)
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
				oldest_shut(door);
			return;
		}
		if (MHD_add_connection(daemon, fd, (struct sockaddr *)&addr, len) != MHD_YES)
			return;
		while (door->n_open > door->most)
			oldest_shut(door);
	}
}

void wss_http_door_expire(struct wss_http_door *door)
{
	uint64_t now_ns = wss_clock_now_ns();

	while (wss_http_door_due_ns(door) <= now_ns)
		oldest_shut(door);
}

uint64_t wss_http_door_due_ns(const struct wss_http_door *door)
{
	const struct wss_http_slot *slot = TAILQ_FIRST(&door->open);

	return slot ? slot->since_ns + WSS_HTTP_REQUEST_NS : UINT64_MAX;
}
