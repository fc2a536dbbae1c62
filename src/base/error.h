/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The error value is owned by the caller, passed as the last parameter of every function that can
 * fail, set once where the error arises, prefixed by callers that know more, and printed only by
 * commands and the service.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

#include "base/text.h"

enum wss_error_code {
	WSS_OK = 0,
	WSS_ERR_FAILED,	     /* the operation was tried and failed */
	WSS_ERR_USAGE,	     /* the user's input is wrong */
	WSS_ERR_CONNECT,     /* no connection to libvirt or QMP */
	WSS_ERR_UNSUPPORTED, /* not possible here: method, kernel, host, privilege */
	WSS_ERR_TIMEOUT,     /* a deadline passed */
	WSS_ERR_GONE,	     /* the guest or its process vanished */
	WSS_ERR_BUSY,	     /* a job or another controller has the guest */
	WSS_ERR_INTERRUPTED, /* a signal asked the process to stop */
	WSS_ERR_NO_MEMORY,
	WSS_ERR_AMBIGUOUS, /* a word matches two guests; a UUID would be unambiguous */
	WSS_ERR_DAMAGED,   /* a file is not what its format allows: it must be replaced */
	WSS_ERR_STOPPED,   /* QEMU is stopped (SIGSTOP, a debugger) or frozen, and cannot answer */
};

struct wss_error {
	enum wss_error_code code;
	char text[512]; /* one line without a newline; always printable */
	bool shared;	/* of something that all guests have, as a file, so that once says it */
};

#define WSS_ERROR_INIT            \
	{                         \
		WSS_OK, "", false \
	}

/*
 * Sets code and text, as an error that is not shared. Of a text that does not fit, part is left out; control characters become '?'.
 * err may be NULL: nothing is stored then. Always returns -1, so that a function can end with
 * "return wss_error_set(err, ...)".
 */
int wss_error_set(struct wss_error *err, enum wss_error_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Like wss_error_set(), followed by ": " and the text of errnum (an errno value). ENOMEM turns
 * any code into WSS_ERR_NO_MEMORY.
 */
int wss_error_errno(struct wss_error *err, enum wss_error_code code, int errnum, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

/* Prefixes the text of an error that is set with "what: ". Returns -1. */
int wss_error_prefix(struct wss_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Resets err to WSS_OK and an empty text. */
void wss_error_clear(struct wss_error *err);
