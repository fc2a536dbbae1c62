/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"

#include <stdio.h>
#include <string.h>

/* Length of the UTF-8 sequence at s (2-4), or 0 where it is not one. */
static int utf8_sequence(const unsigned char *s)
{
	int len = s[0] >= 0xc2 && s[0] <= 0xdf ? 2
		  : (s[0] & 0xf0) == 0xe0      ? 3
		  : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
						 : 0;

	for (int i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* C1 control characters move the cursor on some terminals. */
	if (len == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return 0;
	return len;
}

void wss_text_sanitize(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s;) {
		int len = *s >= 0x80 ? utf8_sequence(s) : 0;

		if (len) {
			s += len;
			continue;
		}
		if (*s < 0x20 || *s >= 0x7f)
			*s = '?';
		s++;
	}
}

static void set_text(struct wss_error *err, enum wss_error_code code, const char *fmt, va_list ap)
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
	set_text(err, code, fmt, ap);
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
	set_text(err, code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(errnum));
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
	set_text(err, err->code, fmt, ap);
	va_end(ap);
	len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %.*s",
		 (int)(sizeof(err->text) - len), old);
	return -1;
}

void wss_error_clear(struct wss_error *err)
{
	if (err) {
		err->code = WSS_OK;
		err->text[0] = '\0';
	}
}
