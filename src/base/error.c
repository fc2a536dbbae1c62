/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Texts are formatted as long as this, and then shortened. A name may have thousands of characters. */
#define LONGEST 4096

static void error_set_text(struct wss_error *err, enum wss_error_code code, const char *fmt,
			   va_list ap)
{
	char text[LONGEST];

	err->code = code;
	err->shared = false;
	vsnprintf(text, sizeof(text), fmt, ap);
	wss_text_fit(text, err->text, sizeof(err->text));
	wss_text_sanitize(err->text);
}

int wss_error_set(struct wss_error *err, enum wss_error_code code, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	error_set_text(err, code, fmt, ap);
	va_end(ap);
	return -1;
}

int wss_error_errno(struct wss_error *err, enum wss_error_code code, int errnum, const char *fmt,
		    ...)
{
	char what[LONGEST];
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	/*
	 * Overrides the caller's code, so that ENOMEM never looks like a host that lacks a
	 * feature.
	 */
	return wss_error_set(err, errnum == ENOMEM ? WSS_ERR_NO_MEMORY : code, "%s: %s", what,
			     strerror(errnum));
}

int wss_error_prefix(struct wss_error *err, const char *fmt, ...)
{
	char what[LONGEST];
	bool shared;
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	shared = err->shared;
	wss_error_set(err, err->code, "%s: %s", what, err->text);
	err->shared = shared;
	return -1;
}

void wss_error_clear(struct wss_error *err)
{
	if (err) {
		err->code = WSS_OK;
		err->text[0] = '\0';
		err->shared = false;
	}
}
