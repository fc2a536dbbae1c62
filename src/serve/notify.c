/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "serve/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

#define NS_PER_US 1000ULL
/* sd_watchdog_enabled(3) recommends twice as often as the manager wants; once may come late.
 */
#define ALIVE_PER_PERIOD 4

/* Returns false if the message is to be sent again: the manager's queue is full, as it may be while a host boots. */
static bool notify_send(const struct wss_notify *notify, const char *text)
{
	return notify->fd < 0 ||
	       send(notify->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS);
}

static int notify_connect(struct wss_notify *notify, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(address.sun_path)) {
		errno = EINVAL;
		return -1;
	}
	memcpy(address.sun_path, path, len);
	/* An abstract socket: its name is not terminated. */
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return notify->fd < 0 ? -1
			      : connect(notify->fd, (const struct sockaddr *)&address,
					(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
						    (path[0] == '/')));
}

/* The period that is meant for this process; 0: none. */
static uint64_t watchdog_period_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t number, us = 0;

	if (pid && (wss_number_parse(pid, 1, INT32_MAX, "WATCHDOG_PID", &number, NULL) < 0 ||
		    number != (uint64_t)getpid()))
		return 0;
	if (usec)
		wss_number_parse(usec, 1, UINT64_MAX / NS_PER_US, "WATCHDOG_USEC", &us, NULL);
	return us * NS_PER_US;
}

void wss_notify_open(struct wss_notify *notify)
{
	const char *path = getenv("NOTIFY_SOCKET");

	*notify = (struct wss_notify)WSS_NOTIFY_INIT;
	if (path && notify_connect(notify, path) < 0) {
		wss_warn("cannot notify the service manager at '%s': %s", path, strerror(errno));
		wss_notify_close(notify);
	}
	notify->watchdog_ns = watchdog_period_ns();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void wss_notify_ready(struct wss_notify *notify)
{
	if (!notify->ready)
		notify->ready = notify_send(notify, "READY=1");
}

void wss_notify_reloading(struct wss_notify *notify)
{
	struct timespec now;
	char text[64];

	/* The manager compares it with its own CLOCK_MONOTONIC. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 (uint64_t)((uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / NS_PER_US));
	notify_send(notify, text);
}

/* A service that was not ready before stays so. */
void wss_notify_reloaded(struct wss_notify *notify)
{
	if (notify->ready)
		notify->ready = notify_send(notify, "READY=1");
}

void wss_notify_stopping(struct wss_notify *notify)
{
	notify_send(notify, "STOPPING=1");
}

void wss_notify_status(struct wss_notify *notify, const char *status)
{
	char text[sizeof(notify->status) + 16];

	if (notify->fd < 0 || !strcmp(notify->status, status))
		return;
	snprintf(text, sizeof(text), "STATUS=%s", status);
	if (notify_send(notify, text))
		snprintf(notify->status, sizeof(notify->status), "%s", status);
}

void wss_notify_alive(struct wss_notify *notify)
{
	uint64_t now_ns = wss_clock_now_ns();

	if (!notify->watchdog_ns ||
	    now_ns - notify->alive_ns < notify->watchdog_ns / ALIVE_PER_PERIOD)
		return;
	if (notify_send(notify, "WATCHDOG=1"))
		notify->alive_ns = now_ns;
}

void wss_notify_close(struct wss_notify *notify)
{
	if (notify->fd >= 0)
		close(notify->fd);
	notify->fd = -1;
}
