/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "out/width.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/text.h"

#define ELLIPSIS "\xe2\x80\xa6"

/*
 * Locale with the Unicode widths, independent of the caller's locale. 0: this system has none.
 */
static locale_t utf8_locale;
static pthread_once_t utf8_locale_once = PTHREAD_ONCE_INIT;

static void open_utf8_locale(void)
{
	utf8_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Returns the columns of the character of len bytes (1-4) at s. */
static int character_width(const char *s, int len)
{
	wchar_t code = (wchar_t)wss_text_code(s, len);
	locale_t before;
	int width;

	if (code < 0x80)
		return 1;
	pthread_once(&utf8_locale_once, open_utf8_locale);
	if (!utf8_locale)
		return 1;
	before = uselocale(utf8_locale);
	width = wcwidth(code);
	uselocale(before);
	return width < 0 ? 1 : width;
}

/* Returns the next character; adds the columns of this one to *width. */
static const char *character_next(const char *s, int *width)
{
	int len = wss_text_character(s);

	*width += len ? character_width(s, len) : 1;
	return s + (len ? len : 1);
}

int wss_text_width(const char *text)
{
	int width = 0;

	while (*text) {
		/* Most texts are plain ASCII. */
		if (*text >= ' ' && *text <= '~') {
			width++;
			text++;
		} else {
			text = character_next(text, &width);
		}
	}
	return width;
}

/* Returns the number of bytes of text whose characters fit into width columns. */
static size_t fitting_bytes(const char *text, int width)
{
	const char *end = text;
	int used = 0;

	while (*end) {
		const char *next = character_next(end, &used);

		if (used > width)
			break;
		end = next;
	}
	return (size_t)(end - text);
}

void wss_text_cut(char *text, size_t size, int width)
{
	size_t len;

	if (wss_text_width(text) <= width)
		return;
	len = fitting_bytes(text, width - 1);
	if (len + sizeof(ELLIPSIS) <= size)
		memcpy(text + len, ELLIPSIS, sizeof(ELLIPSIS));
	else
		text[len] = '\0';
}

size_t wss_text_line(const char *text, int width)
{
	size_t len = fitting_bytes(text, width), at;
	int unused = 0;

	if (!text[len] || text[len] == ' ')
		return len;
	for (at = len; at > 0; at--)
		if (text[at - 1] == ' ')
			return at - 1 ? at - 1 : 1;
	return len ? len : (size_t)(character_next(text, &unused) - text);
}
