/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancel tokens: a piece of work that may wait looks at its token, and whoever has started the
 * work requests that it ends. Tokens form chains: a request to a parent holds for its children,
 * and at the root of every chain is the stop signal (base/stop.h), which a NULL token stands for.
 */
#ifndef WSS_BASE_CANCEL_H
#define WSS_BASE_CANCEL_H

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

#define WSS_CANCEL_INIT { .fd = -1 }

/*
 * Makes a token that has not been requested. parent, which may be NULL, must outlive it. Returns 0,
 * or -1 with WSS_ERR_FAILED where there is no descriptor left, or the chain is too long.
 */
int wss_cancel_open(struct wss_cancel *cancel, const struct wss_cancel *parent,
		    struct wss_error *err);

/* Takes one that has been released, or is WSS_CANCEL_INIT, too. */
void wss_cancel_close(struct wss_cancel *cancel);

/* From any thread; not from a signal handler. */
void wss_cancel_request(struct wss_cancel *cancel);

/* Has the token, one of its parents or the stop signal been requested? */
bool wss_cancel_requested(const struct wss_cancel *cancel);

/*
 * Fills ret_fds, which has room for WSS_CANCEL_CHAIN_MAX, with what poll() has to watch to see a
 * request. Returns how many.
 */
size_t wss_cancel_poll_fds(const struct wss_cancel *cancel, struct pollfd *ret_fds);

/*
 * Sleeps until when_ns, a time of wss_clock_now_ns(). Returns 0, or -1 as soon as a request is
 * there.
 */
int wss_cancel_sleep_until_ns(const struct wss_cancel *cancel, uint64_t when_ns);

#endif
