/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void error_set_text(struct wss_error *err, enum wss_error_code code, const char *fmt,
			   va_list ap)
{
	err->code = code;
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
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
	va_list ap;
	size_t len;

	if (!err)
		return -1;
	va_start(ap, fmt);
	/*
	 * Overrides the caller's code, so that ENOMEM never looks like a host that lacks a
	 * feature.
	 */
	error_set_text(err, errnum == ENOMEM ? WSS_ERR_NO_MEMORY : code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(errnum));
	wss_text_sanitize(err->text);
	return -1;
}

int wss_error_prefix(struct wss_error *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list ap;
	size_t len;

	if (!err)
		return -1;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	error_set_text(err, err->code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %.*s",
		 (int)(sizeof(err->text) - len), old);
	wss_text_sanitize(err->text);
	return -1;
}

void wss_error_clear(struct wss_error *err)
{
	if (err) {
		err->code = WSS_OK;
		err->text[0] = '\0';
	}
}
