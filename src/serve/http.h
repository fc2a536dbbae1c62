/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The service's side of HTTP: the listening sockets, and the process that serves them
 * (http-child.h). The service hands it pages, never waits for it, and starts it again when it
 * dies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "serve/http-listen.h"

/* User that the process runs as where the service is root. */
#define WSS_HTTP_USER "nobody"

struct wss_http_options {
	struct wss_http_address addresses[WSS_HTTP_LISTENERS_MAX];
	size_t n_addresses;
	const char *user; /* NULL: WSS_HTTP_USER */
};

struct wss_http;

/*
 * Whether the process could run as that user (NULL: WSS_HTTP_USER). WSS_ERR_USAGE: there is no such user, or it is
 * root. Only root can run it as another user: for anybody else all names do.
 */
int wss_http_check_user(const char *name, struct wss_error *err);

/*
 * Listens at the addresses, and at the sockets that a service manager has passed; *ret_http is
 * NULL if there is neither. The process starts with the first wss_http_step(). Errors: those
 * of wss_http_listen() and wss_http_listen_activated(); WSS_ERR_USAGE: there is no such user,
 * or it is root; WSS_ERR_NO_MEMORY.
 */
int wss_http_new(const struct wss_http_options *options, struct wss_http **ret_http,
		 struct wss_error *err);

/*
 * Starts the process, restarts it after it has died (with growing pauses), and kills it if it has not
 * taken its pages for 30 s. Call this about every second, in a thread that lives as long as the
 * service: the process dies with that thread.
 */
void wss_http_step(struct wss_http *http);

/* Whether the process has taken the pages that were published before. */
bool wss_http_ready(const struct wss_http *http);

/* Hands over pages (serve/http-pages.h). Takes ownership of the descriptor. Never waits. */
void wss_http_publish(struct wss_http *http, int fd);

/*
 * Sets the named pages (serve/http-named.h) that go with the pages from the next wss_http_publish() on. Takes
 * ownership of the descriptor.
 */
void wss_http_set_named(struct wss_http *http, int fd);

/* Returns how often the process was started, and whether it runs and has taken pages. */
uint64_t wss_http_starts(const struct wss_http *http);
bool wss_http_runs(const struct wss_http *http);

/* Why HTTP is not served: what went wrong since it last was. NULL: nothing did, or it is. Valid until the next wss_http_step(). */
const char *wss_http_why_not(const struct wss_http *http);

/* Ends the process, and stops listening. Takes NULL. */
void wss_http_free(struct wss_http *http);
