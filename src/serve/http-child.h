/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The process that speaks HTTP. It has no rights (http-confine.h), knows neither libvirt nor
 * guests, and serves pages that the service has rendered (http-pages.h).
 *
 * Theory of operation. The service runs its own program again, with WSS_HTTP_CHILD as the
 * first word and no environment. Descriptor WSS_HTTP_CHANNEL is one end of a pair of sockets
 * on which pages come, a message with one descriptor each; one byte goes back for each
 * message. The listening sockets follow. The end of the channel is the end of the process.
 *
 * One thread serves all connections. Each is for one request, and has WSS_HTTP_REQUEST_NS for
 * all of it, however much it sends meanwhile. There is always room for another one: when all
 * slots are taken the oldest connection is closed. So clients that are slow, or many, lose
 * their own connections; another one needs a slot for as long as it takes to read a request
 * and answer it from memory.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"

/* Name of the program as the service starts it; its words: user, group, number of sockets. */
#define WSS_HTTP_CHILD "virt-wss-http"
#define WSS_HTTP_CHANNEL 3

#define WSS_HTTP_REQUEST_NS (10 * WSS_NS_PER_S)
/* Age at which pages are no longer as new as they should be. */
#define WSS_HTTP_FRESH_NS (60 * WSS_NS_PER_S)

/* Whether these are the words of main() in such a process. */
bool wss_http_child_is(int argc, char **argv);

/* Returns the version of libmicrohttpd; static. */
const char *wss_http_child_version(void);

/* Its main function: the exit status. */
int wss_http_child_main(int argc, char **argv);
