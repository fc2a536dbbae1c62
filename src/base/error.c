/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "base/error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/*
 * Length of the UTF-8 sequence at s (2-4) as RFC 3629 allows it: no overlong form, no surrogate,
 * nothing above U+10FFFF. 0 where it is none.
 */
static int utf8_sequence(const unsigned char *s)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high;
		int len;
	} forms[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (s[0] < forms[i].first_low || s[0] > forms[i].first_high ||
		    s[1] < forms[i].second_low || s[1] > forms[i].second_high)
			continue;
		for (int k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

int wss_text_character(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	return *s < 0x80 ? 1 : utf8_sequence(s);
}

int wss_text_control(const char *text, unsigned *ret_code)
{
	static const struct {
		unsigned first, last;
	} controls[] = {
		{ 0x7f, 0x9f },	    { 0x61c, 0x61c },	{ 0x200e, 0x200f },
		{ 0x202a, 0x202e }, { 0x2066, 0x2069 },
	};
	const unsigned char *s = (const unsigned char *)text;
	int len = wss_text_character(text);

	/* None of four bytes is among them. */
	if (len == 0 || len == 4)
		return 0;
	*ret_code = len == 1 ? s[0] : s[0] & (0xffU >> (len + 1));
	for (int k = 1; k < len; k++)
		*ret_code = *ret_code << 6 | (s[k] & 0x3f);
	for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
		if (*ret_code >= controls[i].first && *ret_code <= controls[i].last)
			return len;
	return 0;
}

void wss_text_sanitize(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s;) {
		int len = *s >= 0x80 ? utf8_sequence(s) : 0;
		unsigned code;

		if (len && !wss_text_control((const char *)s, &code)) {
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
	set_text(err, err->code, fmt, ap);
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
