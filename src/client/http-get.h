/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gets documents from an HTTP server that is not trusted: with a deadline, a size limit,
 * verified TLS, and no redirects, which could carry a secret elsewhere. A proxy of the environment is asked for
 * public addresses and for names only; of https it sees no more than the host's name.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wss_http_get_options {
	const char *url; /* where paths start: "https://host:9090", "https://host/prometheus" */
	const char *token_file; /* of a bearer token, or NULL */
	const char *
		user_file; /* of USER:PASSWORD for basic authentication, or NULL; not beside token_file */
	const char *header_file; /* of further headers, a line each, or NULL */
	const char *ca_file;	 /* certificates to trust instead of the system's, or NULL */
	uint64_t deadline_ns;	 /* of all requests together, a time of wss_clock_now_ns() */
	uint64_t timeout_ns;	 /* the same as the time that was allowed, for messages */
	size_t most_bytes;	 /* longest body */
};

struct wss_http_get;

/*
 * Checks the URL and reads the files of secrets: token, password, headers. They are sent by https only, or to this
 * machine, which is localhost, 127.0.0.0/8 and ::1.
 * WSS_ERR_USAGE: the URL is not one of http or https, has a password, a query or a
 * fragment, or would get secrets without encryption. WSS_ERR_FAILED: a file cannot be read, is accessible to others than its
 * owner, or has not what it should. WSS_ERR_NO_MEMORY. options and its texts must outlive the result.
 */
int wss_http_get_open(const struct wss_http_get_options *options, struct wss_http_get **ret_http,
		      struct wss_error *err);

/*
 * Gets "PATH?NAME=VALUE" with more at its end. path begins with a slash; value is escaped here, more ("" or
 * "&...") is not. *ret_body has *ret_len bytes and a final NUL, and is valid until the next call. Returns 0
 * with the HTTP status in *ret_status, from 200 to 599 but no redirect. Errors name the URL.
 * WSS_ERR_CONNECT: no connection, or no trust. WSS_ERR_FAILED: the answer is too long, broken,
 * or a redirect. WSS_ERR_TIMEOUT, WSS_ERR_INTERRUPTED, WSS_ERR_NO_MEMORY.
 */
int wss_http_get(struct wss_http_get *http, const char *path, const char *name, const char *value,
		 const char *more, const char **ret_body, size_t *ret_len, long *ret_status,
		 struct wss_error *err);

/* Accepts NULL. */
void wss_http_get_close(struct wss_http_get *http);

/* Returns the version of libcurl, static: "libcurl 7.88.1". */
const char *wss_http_get_version(void);
