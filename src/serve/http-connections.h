/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Limits the number of connections of the HTTP process, and the time that each takes. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct MHD_Connection;
struct MHD_Daemon;

struct wss_http_slot {
	TAILQ_ENTRY(wss_http_slot) link;
	int fd;
	uint64_t since_ns; /* wss_clock_now_ns() */
};

TAILQ_HEAD(wss_http_slots, wss_http_slot);

struct wss_http_connections {
	struct wss_http_slot *all;
	struct wss_http_slots open;   /* the oldest first */
	struct wss_http_slots ending; /* shut; the daemon closes them in its next run */
	struct wss_http_slots unused;
	size_t n_open, most;
};

/* Connections that are closing, besides those that are open. */
#define WSS_HTTP_ENDING_MAX 256

/* For at most `most` open connections. -1: out of memory. */
int wss_http_connections_open(struct wss_http_connections *connections, size_t most);

/* MHD_NotifyConnectionCallback: keeps the list. cls is the connections. */
void wss_http_connections_notify(void *cls, struct MHD_Connection *connection, void **context,
				 int code);

/*
 * Accepts some of the connections that wait at the listening socket, and closes the oldest ones to
 * make room. Run the daemon after each call.
 */
void wss_http_connections_accept(struct wss_http_connections *connections,
				 struct MHD_Daemon *daemon, int listener);

/* Ends connections that have had their time. */
void wss_http_connections_expire(struct wss_http_connections *connections);

/* Returns the time when that is due next; UINT64_MAX: there is no connection. */
uint64_t wss_http_connections_due_ns(const struct wss_http_connections *connections);
