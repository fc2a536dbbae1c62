/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a request gets: pure functions of its first lines. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "serve/http-pages.h"

/*
 * Returns the weight of a type ("text/plain") in an Accept header, in thousandths, 0 to 1000: that of
 * the most specific range that matches (RFC 9110, 12.5.1). version is the version that is offered, or
 * NULL: a range that names another version does not match. Without a header (NULL) every type has
 * full weight. *ret_named, if not NULL: whether a range names this very type.
 */
unsigned wss_http_accept(const char *accept, const char *type, const char *version,
			 bool *ret_named);

/*
 * Whether a Host header is "localhost" or an IP address, with or without a port. A web page from
 * elsewhere can make its own name resolve to a loopback address and have the browser read our
 * answers (DNS rebinding); the browser then sends that name.
 */
bool wss_http_host_is_local(const char *host);

struct wss_http_request {
	const char *method;
	const char *path;   /* without the query */
	const char *accept; /* NULL: no such header */
	const char *host;
	bool by_network; /* by TCP, as a browser may */
	bool fresh;	 /* the pages are as new as they should be */
};

struct wss_http_answer {
	unsigned status;
	const char *type;   /* Content-Type */
	bool varies;	    /* by the Accept header */
	const char *policy; /* Content-Security-Policy; NULL: nothing is allowed */
	const char *text;   /* static; NULL: page or name */
	size_t text_size;
	const char *name; /* of a named page, part of the request's path; NULL: page */
	enum wss_http_page page;
};

/* For a name that no page has. */
#define WSS_HTTP_NO_GUEST_TEXT "no such guest, or nothing is known of its past yet\n"
#define WSS_HTTP_NO_GUEST                                                                        \
	{                                                                                        \
		.status = 404, .type = "text/plain; charset=utf-8",                              \
		.text = WSS_HTTP_NO_GUEST_TEXT, .text_size = sizeof(WSS_HTTP_NO_GUEST_TEXT) - 1, \
	}

/* For an address with more parameters than there is room for. */
#define WSS_HTTP_URI_TOO_LONG_TEXT "no page takes parameters, and these are too many\n"
#define WSS_HTTP_URI_TOO_LONG                                        \
	{                                                            \
		.status = 414, .type = "text/plain; charset=utf-8",  \
		.text = WSS_HTTP_URI_TOO_LONG_TEXT,                  \
		.text_size = sizeof(WSS_HTTP_URI_TOO_LONG_TEXT) - 1, \
	}

#define WSS_HTTP_NO_HOST_TEXT "a request of HTTP/1.1 must have a Host header\n"
#define WSS_HTTP_NO_HOST                                                                           \
	{                                                                                          \
		.status = 400, .type = "text/plain; charset=utf-8", .text = WSS_HTTP_NO_HOST_TEXT, \
		.text_size = sizeof(WSS_HTTP_NO_HOST_TEXT) - 1,                                    \
	}

struct wss_http_answer wss_http_route(const struct wss_http_request *request);
