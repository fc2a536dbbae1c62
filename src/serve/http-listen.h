/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Listening sockets for HTTP: UNIX sockets, and TCP at loopback addresses. Addresses that other hosts
 * can reach are refused, because the pages describe guests, and there is neither encryption nor
 * authentication.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/error.h"

#define WSS_HTTP_LISTENERS_MAX 8
/* Room for the text of an address with its final NUL: a UNIX socket's path is the longest. */
#define WSS_HTTP_ADDRESS_TEXT_MAX 128

struct wss_http_address {
	struct sockaddr_storage addr;
	socklen_t len;
};

/*
 * Parses "unix:PATH", "127.0.0.1:PORT" (any address of 127.0.0.0/8) or "[::1]:PORT"; port 0 is
 * any free one. what names the option in the error. WSS_ERR_USAGE for anything else.
 */
int wss_http_address_parse(const char *text, const char *what, struct wss_http_address *ret_address,
			   struct wss_error *err);

/* Formats it as wss_http_address_parse() takes it. ret_text: WSS_HTTP_ADDRESS_TEXT_MAX bytes. */
void wss_http_address_format(const struct wss_http_address *address, char *ret_text);

struct wss_http_listener {
	int fd;
	char name[WSS_HTTP_ADDRESS_TEXT_MAX]; /* "unix:PATH", "127.0.0.1:19177" */
	bool made;			      /* by us, so that its file is ours to remove */
	/* With its port, and its file's directory without links; len 0: passed to us. */
	struct wss_http_address address;
	dev_t dev; /* of that file */
	ino_t ino;
};

/*
 * Listens at the address. The file of a UNIX socket on which nobody listens any more is
 * replaced; mode 0660. WSS_ERR_BUSY: somebody listens there. WSS_ERR_FAILED, also if others can
 * write to the directory of that file (wss_place_resolve_private()). For wss_http_listener_close().
 */
int wss_http_listen(const struct wss_http_address *address, struct wss_http_listener *ret_listener,
		    struct wss_error *err);

/*
 * Checks whether wss_http_listen() could succeed, as far as that is possible without listening: an address where a
 * service already listens is good. Its errors; WSS_ERR_GONE: the directory of a UNIX socket does not exist.
 */
int wss_http_listen_check(const struct wss_http_address *address, struct wss_error *err);

/*
 * Takes the sockets that a service manager passes (sd_listen_fds(3)), and removes the
 * variables that announce them: *ret_n of them, at most max, 0 if there are none.
 * WSS_ERR_USAGE for sockets that do not listen, or that other hosts can reach.
 */
int wss_http_listen_activated(struct wss_http_listener *ret_listeners, size_t max, size_t *ret_n,
			      struct wss_error *err);

/* Whether it still accepts connections: anybody who has the socket can shut it down. */
bool wss_http_listener_works(const struct wss_http_listener *listener);

/* Whether it comes from wss_http_listen_activated(). */
bool wss_http_listener_is_passed(const struct wss_http_listener *listener);

/*
 * Listens again at the same address, and shuts the old socket down for all who have it. Its descriptor is -1 on
 * failure, and the next call tries again. One that a service manager passed is only closed: WSS_ERR_FAILED at the first
 * call, -1 without an error later. Other errors are those of wss_http_listen().
 */
int wss_http_listen_again(struct wss_http_listener *listener, struct wss_error *err);

/* Closes it, and removes the file that wss_http_listen() made. */
void wss_http_listener_close(struct wss_http_listener *listener);
