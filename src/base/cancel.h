/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancel tokens: work that may wait checks its token, through which whoever started the work
 * can request its end. Tokens form chains: a request to a parent also applies to its children.
 * The root of every chain is the stop signal (base/stop.h), also represented by a NULL token.
 */
#pragma once

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wss_cancel {
	const struct wss_cancel *parent; /* NULL: the stop signal alone */
	atomic_bool requested;
	int fd; /* an eventfd, readable once requested; -1: released */
};

/* Tokens in a chain, the stop signal included. */
#define WSS_CANCEL_CHAIN_MAX 4

#define WSS_CANCEL_INIT  \
	{                \
		.fd = -1 \
	}

/*
 * Initializes a token that has not been requested. parent, which may be NULL, must outlive it.
 * Returns 0, or -1 with WSS_ERR_FAILED if no descriptor is left or the chain would be too
 * long.
 */
int wss_cancel_open(struct wss_cancel *cancel, const struct wss_cancel *parent,
		    struct wss_error *err);

/* Releases a token; accepts WSS_CANCEL_INIT and a token that has been released. */
void wss_cancel_close(struct wss_cancel *cancel);

/* Requests the end of the work. Any thread may call this, but not a signal handler. */
void wss_cancel_request(struct wss_cancel *cancel);

/* Whether the token, one of its parents or the stop signal has been requested. */
bool wss_cancel_requested(const struct wss_cancel *cancel);

/*
 * Fills ret_fds, which has room for WSS_CANCEL_CHAIN_MAX entries, with descriptors that become
 * readable on a request. Returns their number.
 */
size_t wss_cancel_poll_fds(const struct wss_cancel *cancel, struct pollfd *ret_fds);

/*
 * Sleeps until when_ns, a time of wss_clock_now_ns(). Returns 0, or -1 as soon as the token
 * has been requested.
 */
int wss_cancel_sleep_until_ns(const struct wss_cancel *cancel, uint64_t when_ns);

/*
 * The same, but returns 1 as soon as fd can be read or has failed; -1: no descriptor. A request comes before
 * that. With an injected clock fd is not looked at.
 */
int wss_cancel_sleep_on_fd(const struct wss_cancel *cancel, int fd, uint64_t when_ns);
