/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/cancel.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stop.h"

int wss_cancel_open(struct wss_cancel *cancel, const struct wss_cancel *parent,
		    struct wss_error *err)
{
	size_t length = 2;

	for (const struct wss_cancel *above = parent; above; above = above->parent)
		length++;
	if (length > WSS_CANCEL_CHAIN_MAX)
		return wss_error_set(err, WSS_ERR_FAILED,
				     "a chain of %zu cancel tokens is too long", length);
	cancel->parent = parent;
	cancel->requested = false;
	cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cancel->fd < 0)
		return wss_error_errno(err, WSS_ERR_FAILED, errno, "cannot make a cancel token");
	return 0;
}

void wss_cancel_close(struct wss_cancel *cancel)
{
	if (cancel->fd >= 0)
		close(cancel->fd);
	cancel->fd = -1;
}

void wss_cancel_request(struct wss_cancel *cancel)
{
	cancel->requested = true;
	if (cancel->fd >= 0)
		eventfd_write(cancel->fd, 1);
}

bool wss_cancel_requested(const struct wss_cancel *cancel)
{
	for (; cancel; cancel = cancel->parent)
		if (cancel->requested)
			return true;
	return wss_stop_requested();
}

size_t wss_cancel_poll_fds(const struct wss_cancel *cancel, struct pollfd *ret_fds)
{
	size_t n = 0;

	/* poll() ignores the descriptor while it is -1, before the handlers are installed. */
	ret_fds[n++] = (struct pollfd){.fd = wss_stop_fd(), .events = POLLIN};
	for (; cancel; cancel = cancel->parent)
		ret_fds[n++] = (struct pollfd){.fd = cancel->fd, .events = POLLIN};
	return n;
}

int wss_cancel_sleep_on_fd(const struct wss_cancel *cancel, int fd, uint64_t when_ns)
{
	struct pollfd fds[WSS_CANCEL_CHAIN_MAX + 1];
	size_t n = wss_cancel_poll_fds(cancel, fds);
	struct pollfd *own = &fds[n];

	/* poll() ignores a descriptor of -1. */
	*own = (struct pollfd){.fd = fd, .events = POLLIN};
	if (!wss_cancel_requested(cancel) && wss_clock_sleep_injected(when_ns))
		return wss_cancel_requested(cancel) ? -1 : 0;
	/* The descriptors stay readable, so a request just before the sleep is not lost. */
	for (uint64_t now = wss_clock_now_ns(); now < when_ns; now = wss_clock_now_ns()) {
		struct timespec ts = {.tv_sec = (time_t)((when_ns - now) / WSS_NS_PER_S),
				      .tv_nsec = (long)((when_ns - now) % WSS_NS_PER_S)};

		if (wss_cancel_requested(cancel) || own->revents)
			break;
		if (!wss_clock_poll_injected(fds, n + 1, when_ns - now))
			ppoll(fds, n + 1, &ts, NULL);
	}
	if (wss_cancel_requested(cancel))
		return -1;
	return own->revents != 0;
}

int wss_cancel_sleep_until_ns(const struct wss_cancel *cancel, uint64_t when_ns)
{
	return wss_cancel_sleep_on_fd(cancel, -1, when_ns);
}
