/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error value: owned by the caller, last parameter of every function that
 * can fail, set once where the error arises, prefixed by callers that know
 * more, printed only by commands.
 */
#ifndef WSS_BASE_ERROR_H
#define WSS_BASE_ERROR_H

#include <stdarg.h>

#include "base/text.h"

enum wss_error_code {
	WSS_OK = 0,
	WSS_ERR_FAILED,	     /* it was tried and did not work */
	WSS_ERR_USAGE,	     /* what the user typed is wrong */
	WSS_ERR_CONNECT,     /* no connection to libvirt or QMP */
	WSS_ERR_UNSUPPORTED, /* cannot work here: method, kernel, host, privilege */
	WSS_ERR_TIMEOUT,     /* a deadline passed */
	WSS_ERR_GONE,	     /* the guest or its process vanished */
	WSS_ERR_BUSY,	     /* a job, or another controller, has the guest; another process a file */
	WSS_ERR_INTERRUPTED, /* a signal asked us to stop */
	WSS_ERR_NO_MEMORY,
};

struct wss_error {
	enum wss_error_code code;
	char text[512]; /* one line, no final newline; printable whatever arrived from outside */
};

#define WSS_ERROR_INIT { WSS_OK, "" }

/*
 * Sets code and text; a text that does not fit is cut, control characters become '?'.
 * Always returns -1, so that a function can say: return wss_error_set(err, ...).
 * err may be NULL: then nothing is stored.
 */
int wss_error_set(struct wss_error *err, enum wss_error_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * As wss_error_set, with ": " and the text of errnum (an errno value) behind it. ENOMEM makes it
 * WSS_ERR_NO_MEMORY, whatever code says.
 */
int wss_error_errno(struct wss_error *err, enum wss_error_code code, int errnum, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

/* Puts "what: " before the text of an error that is set; returns -1. */
int wss_error_prefix(struct wss_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Back to WSS_OK with an empty text. */
void wss_error_clear(struct wss_error *err);

#endif
